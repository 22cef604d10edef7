"""Malformed and hostile push bodies get a 4xx with an explanation, or rejections of single rows, but never a 500."""

import json

import pytest

from property.rows import dead, fact, session
from server.in_process_server import T, check_problem, run, serve

PUSH_FACTS = "/v1/sync/facts/0/push"
GOOD = json.dumps({"newDocumentState": session("good")})
BAD_BODIES = [
    b"",
    b"{}",
    b"null",
    b"[1]",
    b"[{}]",
    b'[{"newDocumentState": null}]',
    b'[{"newDocumentState": {"id": 5}}]',
    b'[{"newDocumentState": {}}]',
    b"[" * 100_000,
    b'[{"newDocumentState": ' + b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b"}]",
    b'\xff\xfe["a"]',
    b'[{"newDocumentState": {"id": "a"}, "assumedMasterState": 7}]',
    b'[{"newDocumentState": {"id": "a", "mode": 1e400, "title": "\xed\xa0\x80"}}]',
]
BAD_ROWS = [
    {"id": "a"},
    {**session("a"), "title": 5},
    {**session("a"), "more": 1},
    {**session("a"), "mode": "other"},
    {**session("a b")},
    {**session("")},
    {**session("x" * 101)},
    {**session("a/../../b")},
    {**session("a"), "createdAt": "yesterday"},
    {**session("a"), "createdAt": T + "\n"},
    {**session("a"), "updatedAt": None},
    {**session("a"), "_deleted": "yes"},
    {**session("a"), "projectId": "no id"},
    {**session("a"), "externalId": ""},
    {**session("a"), "title": 10**400},
]


@pytest.mark.parametrize("body", BAD_BODIES, ids=range(len(BAD_BODIES)))
def test_malformed_push_body_stores_no_rows(tmp_path, body):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            answer = await ada.call("POST", "/v1/sync/sessions/1/push", content=body)
            check_problem(answer, 400, "BAD_REQUEST")
            assert await ada.pull("sessions") == []

    run(scenario)


def test_invalid_rows_are_rejected_and_valid_rows_of_push_stored(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            batch = [{"newDocumentState": row} for row in BAD_ROWS]
            answer = await ada.call(
                "POST", "/v1/sync/sessions/1/push", content=json.dumps([*batch, json.loads(GOOD)]).encode()
            )
            assert answer.status_code == 200, answer.text
            assert [row["syncError"]["code"] for row in answer.json()] == ["INVALID"] * len(BAD_ROWS)
            assert list(await ada.live("sessions")) == ["good"]

    run(scenario)


@pytest.mark.parametrize("text", [r"\ud800", r"\udfff\ud800", r"\u0000", "\\u2028", "𝔘", r"\"]}"])
def test_unusual_characters_round_trip_or_are_rejected(tmp_path, text):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            row = json.dumps(session("a", title="t")).replace('"t"', f'"{text}"')
            body = f'[{{"newDocumentState": {row}}}]'.encode()
            answer = await ada.call("POST", "/v1/sync/sessions/1/push", content=body)
            assert answer.status_code in (200, 400)
            stored = await ada.pull("sessions")
            told = answer.json() if answer.status_code == 200 else []
            assert stored == ([json.loads(row)] if answer.text == "[]" else told)
            assert await ada.push("sessions", session("next")) == []

    run(scenario)


def test_numbers_of_pushed_rows_keep_their_spelling(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            fact = {"id": "f", "createdAt": T, "updatedAt": T, "_deleted": False, "key": "k", "value": "v",
                    "sourceRemoved": False, "confirmed": True}  # fmt: skip
            body = json.dumps([{"newDocumentState": {**fact, "confidence": "NUMBER"}}])
            for number in ("0.30000000000000004", "1e-7", "1", "1.0", "5e-324"):
                sent = body.replace('"NUMBER"', number).replace('"f"', f'"f{number}"')
                answer = await ada.call("POST", "/v1/sync/facts/0/push", content=sent.encode())
                assert answer.text == "[]", answer.text
                page = (await ada.call("GET", "/v1/sync/facts/0/pull")).text
                assert f'"confidence": {number}' in page

    run(scenario)


def test_oversized_push_body_gets_a_problem_response(tmp_path):
    async def scenario():
        async with serve(tmp_path, body_max=10_000) as h:
            ada = await h.person()
            answer = await ada.call("POST", "/v1/sync/sessions/1/push", content=b"[" + b" " * 20_000 + b"]")
            check_problem(answer, 413, "TOO_LARGE")

    run(scenario)


BAD = {
    "NaN": b'"confidence":NaN',
    "Infinity": b'"confidence":-Infinity',
    "line break in a string": b'"confidence":1,"note":"a\nb"',
    "NUL in a string": b'"confidence":1,"note":"a\x00b"',
}


@pytest.mark.parametrize("wrong", BAD.values(), ids=BAD)
@pytest.mark.parametrize("at", [0, 1, 2])
def test_row_with_invalid_json_is_rejected_and_other_rows_are_stored(tmp_path, wrong, at):
    tricky = 'a "quoted" [bracket} NaN, \\" and Infinity'

    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            rows = [json.dumps({"newDocumentState": fact(f"f{n}", value=tricky)}).encode() for n in range(3)]
            rows[at] = rows[at].replace(b'"confidence": 1', wrong)
            assert wrong in rows[at], "the test did not change the row"
            answer = await ada.call("POST", PUSH_FACTS, content=b" [" + b" ,\n".join(rows) + b"]\n")
            assert answer.status_code == 200, answer.text
            [refused_row] = answer.json()
            assert (refused_row["id"], refused_row["syncError"]["code"]) == (f"f{at}", "INVALID")
            live = await ada.live("facts")
            assert live.keys() == {"f0", "f1", "f2"} - {f"f{at}"}
            assert {row["value"] for row in live.values()} == {tricky}

    run(scenario)


def test_delete_with_invalid_json_is_accepted(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            await ada.add("facts", fact("f1"))
            row = json.dumps({"newDocumentState": dead(fact("f1"))}).encode()
            row = row.replace(b'"confidence": 1', b'"confidence": NaN')
            assert (await ada.call("POST", PUSH_FACTS, content=b"[" + row + b"]")).json() == []
            assert await ada.live("facts") == {}

    run(scenario)


@pytest.mark.parametrize(
    "body", [b"[NaN]", b"NaN", b'[{"newDocumentState": NaN}]', b'[{"newDocumentState": {"id": NaN}}]', b"[{}, ",
             b'[{"newDocumentState": {"id": "a"}} {"newDocumentState": {"id": "b"}}]', b'{"a": NaN}', b"[{]}", b"]["],
)  # fmt: skip
def test_batch_that_cannot_be_split_into_rows_is_rejected(tmp_path, body):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            check_problem(await ada.call("POST", PUSH_FACTS, content=body), 400, "BAD_REQUEST")

    run(scenario)
