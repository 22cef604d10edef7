"""Push, rules 3 and 5: the server accepts a row that it has stored already, and an edit of the stored row."""

import json

import pytest

from property.rows import NEW, day, dead, document, episode, fact, marked, session, unmarked
from property.sync_wire import alone, base, codes, forget, send, seqs, stored


def test_repeated_push_of_a_row_takes_no_seq(tmp_path):
    async def scenario(ada):
        first, second = fact("f"), fact("f", value="Grace")
        for pair in ((first, None), (second, first)):
            assert await send(ada, "facts", pair) == []
            before = await seqs(ada)
            assert await send(ada, "facts", pair) == []
            assert await seqs(ada) == before

    alone(tmp_path, scenario)


def test_repeated_row_may_reorder_keys_or_respell_numbers(tmp_path):
    async def scenario(ada):
        row = fact("f", confidence=1, value="é")
        await send(ada, "facts", (row, None))
        before = await seqs(ada)
        other = json.dumps(dict(reversed(row.items()))).replace('"confidence": 1', '"confidence": 10e-1')
        assert "\\u00e9" in other and "10e-1" in other
        body = f'[{{"newDocumentState": {other}}}]'.encode()
        answer = await ada.call("POST", "/v1/sync/facts/0/push", content=body)
        assert answer.text == "[]" and await seqs(ada) == before

    alone(tmp_path, scenario)


def test_push_equal_to_stored_row_returns_it_without_sync_error(tmp_path):
    async def scenario(ada):
        await send(ada, "facts", (fact("f"), None))
        assert await send(ada, "facts", (marked(fact("f"), None), fact("f"))) == [fact("f")]

    alone(tmp_path, scenario)


@pytest.mark.parametrize("which", ["no stored row", "current base", "stale base"])
def test_push_of_unchanged_rejected_row_stores_no_row(tmp_path, which):
    async def scenario(ada):
        refused = fact("f", value="refused")
        row_base = None
        if which != "no stored row":
            await send(ada, "facts", (fact("f"), None))
            row_base = await base(ada, "facts", "f")
        if which == "stale base":
            await send(ada, "facts", (fact("f", value="newer"), fact("f")))
        rejected, before = marked(refused, row_base), await seqs(ada)
        assert await send(ada, "facts", (rejected, rejected)) == []
        assert await seqs(ada) == before
        assert "refused" not in json.dumps(await ada.pull("facts"))

    alone(tmp_path, scenario)


def test_edit_of_stored_row_is_accepted(tmp_path):
    async def scenario(ada):
        row = episode("e", "s", citations=[{"n": 1, "documentId": "d", "filename": "d.txt", "page": 1}])
        await send(ada, "sessions", (session("s"), None))
        await send(ada, "episodes", (row, None))
        assumed = {**dict(reversed(row.items())), "citations": [dict(reversed(row["citations"][0].items()))]}
        edited = {**row, "userMessage": "why?", "updatedAt": day(3)}
        assert await send(ada, "episodes", (edited, assumed)) == []
        assert await stored(ada, "episodes", "e") == edited

    alone(tmp_path, scenario)


def test_assumed_state_may_respell_numbers(tmp_path):
    async def scenario(ada):
        await send(ada, "facts", (fact("f", confidence=1), None))
        assert await send(ada, "facts", (fact("f", value="x"), fact("f", confidence=1.0))) == []

    alone(tmp_path, scenario)


def test_row_that_assumes_the_tombstone_revives_it(tmp_path):
    async def scenario(ada):
        await send(ada, "facts", (fact("f"), None))
        await send(ada, "facts", (dead(fact("f")), fact("f")))
        tombstone = await stored(ada, "facts", "f")
        again = fact("f", value="again")
        assert await send(ada, "facts", (again, tombstone)) == []
        assert await stored(ada, "facts", "f") == again

    alone(tmp_path, scenario)


def test_revival_of_row_from_before_a_forget_is_rejected(tmp_path):
    async def scenario(ada):
        await send(ada, "facts", (fact("f"), None), (dead(fact("f")), fact("f")))
        tombstone = await stored(ada, "facts", "f")
        await forget(ada)
        (rejected,) = await send(ada, "facts", (fact("f", value="again"), tombstone))
        assert codes([rejected]) == ["FORGOTTEN"] and unmarked(rejected) == fact("f", value="again")
        (rejected,) = await send(ada, "facts", (fact("f", value="edited"), rejected))
        assert codes([rejected]) == ["FORGOTTEN"] and await stored(ada, "facts", "f") == tombstone
        anew = fact("f", value="again", createdAt=NEW)
        assert await send(ada, "facts", (anew, rejected)) == []
        assert await stored(ada, "facts", "f") == anew

    alone(tmp_path, scenario)


def test_corrected_rejected_row_with_stored_base_is_accepted(tmp_path):
    async def scenario(ada):
        await send(ada, "sessions", (session("other", externalId="x"), None), (session("s"), None))
        refused = session("s", externalId="x", title="mine")
        (rejected,) = await send(ada, "sessions", (refused, session("s")))
        assert codes([rejected]) == ["DUPLICATE"]
        edited = session("s", externalId="y", title="mine")
        assert await send(ada, "sessions", (edited, rejected)) == []
        assert await stored(ada, "sessions", "s") == edited

    alone(tmp_path, scenario)


def test_corrected_rejected_row_is_accepted_if_no_row_is_stored(tmp_path):
    async def scenario(ada):
        (rejected,) = await send(ada, "facts", (fact("f", confidence=2), None))
        assert await send(ada, "facts", (fact("f"), rejected)) == []
        assert await stored(ada, "facts", "f") == fact("f")

    alone(tmp_path, scenario)


def test_accepted_row_is_stored_without_its_sync_error(tmp_path):
    async def scenario(ada):
        (rejected,) = await send(ada, "facts", (fact("f", confidence=2), None))
        edited = {**rejected, "confidence": 1}
        assert await send(ada, "facts", (edited, rejected)) == [fact("f")]
        assert await stored(ada, "facts", "f") == fact("f")

    alone(tmp_path, scenario)


def test_corrected_row_that_was_based_on_a_tombstone_revives_it(tmp_path):
    async def scenario(ada):
        await send(ada, "facts", (dead(fact("f")), None))
        tombstone = await stored(ada, "facts", "f")
        (rejected,) = await send(ada, "facts", (fact("f", confidence=2), tombstone))
        assert rejected["syncError"]["base"] == await base(ada, "facts", "f")
        assert await send(ada, "facts", (fact("f"), rejected)) == []
        assert await stored(ada, "facts", "f") == fact("f")

    alone(tmp_path, scenario)


def test_sync_error_in_assumed_state_is_ignored(tmp_path):
    async def scenario(ada):
        await send(ada, "facts", (fact("f"), None))
        assert await send(ada, "facts", (fact("f", value="x"), marked(fact("f"), "other:1"))) == []
        assert await stored(ada, "facts", "f") == fact("f", value="x")

    alone(tmp_path, scenario)


def test_frozen_field_keeps_its_first_value(tmp_path):
    async def scenario(ada):
        row = document(ada.id, "d", originSessionId="first")
        await send(ada, "documents", (row, None))
        edited = {**row, "originSessionId": "second", "filename": "renamed.txt"}
        edited_row = {**edited, "originSessionId": "first"}
        assert await send(ada, "documents", (edited, row)) == [edited_row]
        assert await stored(ada, "documents", "d") == edited_row

    alone(tmp_path, scenario)
