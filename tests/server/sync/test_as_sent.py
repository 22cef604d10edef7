"""Rows are given back as the JSON that was sent, field for field and number for number."""

import json
import re

import pytest

from property import rows as make
from property.wire import COLLECTIONS, alone, send, stored


@pytest.mark.parametrize("number", ["1", "1.0", "1e-2", "0.1", "0", "0.0", "1E0", "0.30000000000000004"])
def test_a_number_comes_back_as_it_was_sent(tmp_path, number):
    async def scenario(ada):
        row = json.dumps(make.fact("f", confidence="N")).replace('"N"', number)
        answer = await ada.call("POST", "/v1/sync/facts/0/push", content=f'[{{"newDocumentState": {row}}}]')
        assert answer.text == "[]"
        text = (await ada.call("GET", "/v1/sync/facts/0/pull")).text
        assert re.search(r'"confidence":\s*([^,}\s]+)', text)[1] == number

    alone(tmp_path, scenario)


@pytest.mark.parametrize("text", [r"\u00e9", r"\ud83d\ude00", r"\/", r"\n\t\b", "é😀", r"é"])
def test_a_text_comes_back_with_the_same_meaning(tmp_path, text):
    async def scenario(ada):
        row = json.dumps(make.fact("f", value="TEXT")).replace("TEXT", text)
        body = f'[{{"newDocumentState": {row}}}]'.encode()
        assert (await ada.call("POST", "/v1/sync/facts/0/push", content=body)).text == "[]"
        assert await stored(ada, "facts", "f") == json.loads(row)
        assumed = f'[{{"newDocumentState": {row.replace("user.name", "k")}, "assumedMasterState": {row}}}]'
        assert (await ada.call("POST", "/v1/sync/facts/0/push", content=assumed.encode())).text == "[]"

    alone(tmp_path, scenario)


def test_each_collection_gives_back_what_was_sent(tmp_path):
    async def scenario(ada):
        rows = {
            "documents": make.document(ada.id, "d", pageCount=1, statusDetail="fine", activeSessions=["s"]),
            "vectorEmbeddings": make.block("d"),
            "projects": make.project("p", description="of it"),
            "sessions": make.session("s", projectId="p", externalId="e"),
            "episodes": make.episode(
                "e", "s", model="m", citations=[{"documentId": "d", "filename": "f", "page": 2}]
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
