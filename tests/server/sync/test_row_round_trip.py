"""A pull returns rows as the JSON text that was pushed, with all fields and the same spelling of numbers."""

import json
import re

import pytest

from property import rows as make
from property.sync_wire import COLLECTIONS, alone, send, stored


@pytest.mark.parametrize("number", ["1", "1.0", "1e-2", "0.1", "0", "0.0", "1E0", "0.30000000000000004"])
def test_number_is_pulled_with_the_pushed_spelling(tmp_path, number):
    async def scenario(ada):
        row = json.dumps(make.fact("f", confidence="N")).replace('"N"', number)
        answer = await ada.call("POST", "/v1/sync/facts/0/push", content=f'[{{"newDocumentState": {row}}}]')
        assert answer.text == "[]"
        text = (await ada.call("GET", "/v1/sync/facts/0/pull")).text
        assert re.search(r'"confidence":\s*([^,}\s]+)', text)[1] == number

    alone(tmp_path, scenario)


@pytest.mark.parametrize("text", [r"\u00e9", r"\ud83d\ude00", r"\/", r"\n\t\b", "é😀", r"é"])
def test_text_is_pulled_as_pushed(tmp_path, text):
    async def scenario(ada):
        row = json.dumps(make.fact("f", value="TEXT")).replace("TEXT", text)
        body = f'[{{"newDocumentState": {row}}}]'.encode()
        assert (await ada.call("POST", "/v1/sync/facts/0/push", content=body)).text == "[]"
        assert await stored(ada, "facts", "f") == json.loads(row)
        assumed = f'[{{"newDocumentState": {row.replace("user.name", "k")}, "assumedMasterState": {row}}}]'
        assert (await ada.call("POST", "/v1/sync/facts/0/push", content=assumed.encode())).text == "[]"

    alone(tmp_path, scenario)


def test_rows_of_each_collection_are_pulled_as_pushed(tmp_path):
    async def scenario(ada):
        rows = {
            "documents": make.document(ada.id, "d", pageCount=1, statusDetail="fine", activeSessions=["s"]),
            "vectorEmbeddings": make.block("d"),
            "projects": make.project("p", description="of it"),
            "sessions": make.session("s", projectId="p", externalId="e"),
            "episodes": make.episode(
                "e", "s", model="m", citations=[{"n": 1, "documentId": "d", "filename": "f", "page": 2}]
            ),
            "facts": make.fact("f", sourceDocumentId="d"),
            "memories": make.memory("m", projectId="p", sessionIds=["s"], supersedes="m0"),
            "entities": make.entity("n", "p", notes="note"),
            "relationships": make.relationship("r", "n", "n"),
            "summaries": make.summary("u", sessionId="s", projectId="p"),
        }
        assert tuple(rows) == COLLECTIONS
        for collection, row in rows.items():
            assert await send(ada, collection, (row, None)) == []
        for collection, row in rows.items():
            assert await ada.pull(collection) == [row]

    alone(tmp_path, scenario)


def test_lone_surrogate_is_replaced_and_row_returned(tmp_path):
    """A client may cut a title inside an emoji. JavaScript then writes the lone surrogate as an escape."""

    async def scenario(ada):
        path = "/v1/sync/sessions/1/push"
        whole, cut = make.session("whole", title="Ferry 🚢"), make.session("cut", title="HALF")

        def batch(*pairs):
            body = json.dumps(
                [
                    {"newDocumentState": new} | ({"assumedMasterState": old} if old else {})
                    for new, old in pairs
                ]
            )
            return body.replace("HALF", "Ferry \\ud83d").encode()

        shown = {**cut, "title": "Ferry \ufffd"}
        for _ in range(2):  # a client whose response was lost pushes again
            answer = await ada.call("POST", path, content=batch((whole, None), (cut, None)))
            assert (answer.status_code, answer.json()) == (200, [shown])
        assert await stored(ada, "sessions", "whole") == whole
        assert await stored(ada, "sessions", "cut") == shown
        named = {**cut, "title": "Named"}
        answer = await ada.call("POST", path, content=batch((named, cut)))
        assert (answer.json(), await stored(ada, "sessions", "cut")) == ([], named)
        answer = await ada.call("POST", path, content=b'[{"newDocumentState": {"id": "\\ud83d"')
        assert answer.status_code == 400

    alone(tmp_path, scenario)


def test_replacement_character_is_pulled_as_pushed(tmp_path):
    async def scenario(ada):
        rows = [make.session("a", title="\\ufffd"), make.session("b", title="\ufffd")]
        body = json.dumps([{"newDocumentState": row} for row in rows])  # ASCII with escape sequences
        answer = await ada.call("POST", "/v1/sync/sessions/1/push", content=body.encode())
        assert (answer.status_code, answer.json()) == (200, [])
        assert [await stored(ada, "sessions", row["id"]) for row in rows] == rows

    alone(tmp_path, scenario)


@pytest.mark.parametrize("depth", [500, 940, 1100, 100_000])
@pytest.mark.parametrize("field", ["odd", "value"])
def test_deeply_nested_row_is_rejected_and_other_rows_are_stored(tmp_path, depth, field):
    async def scenario(ada):
        deep = json.dumps(make.fact("deep", **{field: "DEEP"})).replace('"DEEP"', "[" * depth + "]" * depth)
        row = json.dumps(make.fact("f", value='a "[[{" in it\\'))
        for assumed in ("null", deep):
            body = (
                f'[{{"newDocumentState":{deep}}},{{"newDocumentState":{row},"assumedMasterState":{assumed}}}]'
            )
            answer = await ada.call("POST", "/v1/sync/facts/0/push", content=body.encode())
            assert [(refused["id"], refused["syncError"]["code"]) for refused in answer.json()][:1] == [
                ("deep", "INVALID")
            ]
            assert await stored(ada, "facts", "f") == json.loads(row)

    alone(tmp_path, scenario)


def test_push_with_deeply_nested_invalid_json_is_rejected(tmp_path):
    async def scenario(ada):
        for body in (b"[" * 5000, b"]" * 5000, b'[{"newDocumentState":' + b'["' * 5000, b"[" * (2**22 + 1)):
            answer = await ada.call("POST", "/v1/sync/facts/0/push", content=body)
            assert answer.status_code == 400 and "JSON array" in answer.json()["detail"]

    alone(tmp_path, scenario)
