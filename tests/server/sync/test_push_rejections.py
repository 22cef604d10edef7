"""Push, rule 2: an invalid row is returned with an error and does not block other rows."""

import json
import re

import pytest

from property.rows import OLD, block, dead, document, fact, session, unmarked
from property.sync_wire import alone, base, codes, send, stored
from server.in_process_server import run, serve

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def test_invalid_row_is_returned_as_sent_with_an_error(tmp_path):
    async def scenario(ada):
        bad = fact("bad", confidence=2)
        conflicts = await send(ada, "facts", (fact("a"), None), (bad, None), (fact("b"), None))
        assert [unmarked(row) for row in conflicts] == [bad] and codes(conflicts) == ["INVALID"]
        error = conflicts[0]["syncError"]
        assert error.keys() == {"code", "message", "at"} and error["message"] and TIME.fullmatch(error["at"])
        assert set(await ada.live("facts")) == {"a", "b"}

    alone(tmp_path, scenario)


@pytest.mark.parametrize("number", ["1e400", "-1e400", "1" * 5000], ids=["1e400", "-1e400", "5000 digits"])
def test_row_with_infinite_number_is_rejected_and_other_rows_are_stored(tmp_path, number):
    """JavaScript parses 1e400 as Infinity and serializes Infinity as null."""

    async def scenario(ada):
        bad = fact("bad", confidence="BAD")
        batch = [{"newDocumentState": row} for row in (fact("a"), bad, fact("b"))]
        batch.append(
            {"newDocumentState": fact("c"), "assumedMasterState": {**fact("c"), "confidence": "BAD"}}
        )
        batch.append({"newDocumentState": dead({**fact("a"), "confidence": "BAD"})})
        sent = json.dumps(batch).replace('"BAD"', number)
        answer = await ada.call("POST", "/v1/sync/facts/0/push", content=sent)
        assert answer.status_code == 200, answer.text
        tombstone, refused = answer.json()
        assert tombstone["_deleted"] and tombstone["id"] == "a"
        assert unmarked(refused) == {**bad, "confidence": None} and codes([refused]) == ["INVALID"]
        assert set(await ada.live("facts")) == {"b", "c"}

    alone(tmp_path, scenario)


def test_rejection_contains_the_assumed_state_if_it_is_stored(tmp_path):
    async def scenario(ada):
        await send(ada, "facts", (fact("f"), None))
        conflicts = await send(ada, "facts", (fact("f", confidence=2), fact("f")))
        assert conflicts[0]["syncError"]["base"] == await base(ada, "facts", "f")
        assert await stored(ada, "facts", "f") == fact("f")

    alone(tmp_path, scenario)


@pytest.mark.parametrize("assumes", [True, False], ids=["an older row", "nothing"])
def test_rejection_omits_an_assumed_state_that_is_not_stored(tmp_path, assumes):
    """Otherwise the device's next edit would assume that state and undo the change of another device."""

    async def scenario(ada):
        old = document(ada.id, "d")
        await send(ada, "documents", (old, None), ({**old, "activeSessions": ["s"], "accessCount": 1}, old))
        bad = {**old, "filename": "x" * 300}
        (rejected,) = await send(ada, "documents", (bad, old if assumes else None))
        assert codes([rejected]) == ["INVALID"] and "base" not in rejected["syncError"]
        await send(ada, "documents", ({**old, "filename": "short.txt"}, rejected))
        row = await stored(ada, "documents", "d")
        assert (row["activeSessions"], row["accessCount"]) == (["s"], 1)

    alone(tmp_path, scenario)


def test_pushed_document_that_names_another_user_is_rejected(tmp_path):
    async def scenario(ada):
        for user in ("somebody", ""):
            conflicts = await send(ada, "documents", (document(user, "d"), None))
            assert codes(conflicts) == ["INVALID"]
        assert await ada.pull("documents") == []

    alone(tmp_path, scenario)


def test_user_can_neither_read_nor_change_rows_of_another_user(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada, bob = await h.person(), await h.person()
            await send(ada, "facts", (fact("f", value="of Ada"), None))
            assert await bob.pull("facts") == []
            assert await send(bob, "facts", (fact("f", value="of Bob"), None)) == []
            assert await send(bob, "facts", (dead(fact("f")), None)) == []
            assert await stored(ada, "facts", "f") == fact("f", value="of Ada")

    run(scenario)


@pytest.mark.parametrize(
    "row",
    [
        block("d", id="d.1"),
        block("d", embedding="AAAA"),
        block("d" * 91),
        block("d", chunks=[]),
        block("d", number=-1),
    ],
    ids=["id of another block", "too few vectors", "long documentId", "no chunks", "negative block"],
)
def test_inconsistent_blocks_are_rejected(tmp_path, row):
    async def scenario(ada):
        assert codes(await send(ada, "vectorEmbeddings", (row, None))) == ["INVALID"]

    alone(tmp_path, scenario)


def test_rejection_does_not_block_later_rows(tmp_path):
    async def scenario(ada):
        pairs = [(fact(f"f{n}", confidence=2 if n % 2 else 1), None) for n in range(40)]
        conflicts = await send(ada, "facts", *pairs)
        assert [row["id"] for row in conflicts] == [f"f{n}" for n in range(1, 40, 2)]
        assert len(await ada.live("facts")) == 20

    alone(tmp_path, scenario)


def test_rows_with_invalid_ids_are_rejected(tmp_path):
    async def scenario(ada):
        good = ["a", "A-9._~z", "x" * 100, "constructors", "..."]
        assert await send(ada, "facts", *((fact(i), None) for i in good)) == []
        # Every JavaScript object has properties with the last two names, so a client would lose rows with such ids.
        for bad in ("", "x" * 101, "a b", "é", "a/b", "a\n", ".", "..", "constructor", "__proto__"):
            assert codes(await send(ada, "facts", (fact(bad), None))) == ["INVALID"]
        assert {r["createdAt"] for r in await ada.pull("facts")} == {OLD}

    alone(tmp_path, scenario)


def test_unique_value_can_move_between_rows_within_one_push(tmp_path):
    async def scenario(ada):
        first, second, third = (session("a", externalId=tag) for tag in "xyz")
        await send(ada, "sessions", (first, None))
        pairs = (second, first), (session("b", externalId="x"), None), (third, second)
        assert await send(ada, "sessions", *pairs) == []
        assert codes(await send(ada, "sessions", (session("c", externalId="x"), None))) == ["DUPLICATE"]
        assert await send(ada, "sessions", (session("c", externalId="y"), None)) == []

    alone(tmp_path, scenario)
