"""Push, rules 1 and 4: a delete is accepted unless it is outdated, and a deleted row stays deleted."""

import json
from pathlib import Path

import pytest

from property.rows import NEW, day, dead, episode, fact, marked, one_of_each, session
from property.sync_wire import COLLECTIONS, alone, codes, forget, page, send, seqs, stored
from vademecum.model.sync.conflict_rules import is_outdated_delete

OUTDATED_DELETES = json.loads(
    (Path(__file__).parents[2] / "conformance" / "outdated_deletes.json").read_text()
)


def test_delete_stores_blank_tombstone_and_returns_no_row(tmp_path):
    async def scenario(ada):
        row = session("s", title="secret", externalId="x-1", createdAt=day(1), updatedAt=day(2))
        assert await send(ada, "sessions", (row, None)) == []
        assert await send(ada, "sessions", (dead(row), row)) == []
        kept = await stored(ada, "sessions", "s")
        assert kept == {"id": "s", "createdAt": day(1), "updatedAt": day(2), "_deleted": True, "title": "",
                        "mode": "analysis", "documentScope": "chosen", "memory": "on"}  # fmt: skip

    alone(tmp_path, scenario)


def test_content_of_a_pushed_delete_is_dropped(tmp_path):
    async def scenario(ada):
        assert await send(ada, "facts", (dead(fact("f", value="secret")), None)) == []
        assert "secret" not in json.dumps((await page(ada, "facts"))["documents"])

    alone(tmp_path, scenario)


@pytest.mark.parametrize("assumed", ["none", "stale", "current"])
def test_delete_wins_over_any_assumed_state(tmp_path, assumed):
    async def scenario(ada):
        first, second = session("s"), session("s", title="edited elsewhere")
        await send(ada, "sessions", (first, None))
        await send(ada, "sessions", (second, first))
        base_row = {"none": None, "stale": first, "current": second}[assumed]
        assert await send(ada, "sessions", (dead(first), base_row)) == []
        assert (await stored(ada, "sessions", "s"))["_deleted"] is True

    alone(tmp_path, scenario)


@pytest.mark.parametrize("case", OUTDATED_DELETES, ids=lambda case: case["name"])
def test_outdated_deletes_match_the_shared_cases(case):
    deleted, row = {"updatedAt": case["deletedAt"]}, {"updatedAt": case["updatedAt"]}
    assert is_outdated_delete(deleted, row, "2026-06-01T00:00:00.000Z") is not case["deletes"]


def test_old_tombstone_without_assumed_state_does_not_delete_a_revived_row(tmp_path):
    """A client that starts from zero also pushes tombstones that it only pulled."""

    async def scenario(ada):
        first, other = session("s", updatedAt=day(1)), session("t", updatedAt=day(1))
        await send(ada, "sessions", (first, None), (other, None))
        await send(ada, "sessions", (dead(first), first))
        tombstone = await stored(ada, "sessions", "s")
        revived = session("s", title="revived", updatedAt=day(2))
        assert await send(ada, "sessions", (revived, tombstone)) == []
        turn = episode("e", "s")
        assert await send(ada, "episodes", (turn, None)) == []
        # The rest of the batch is stored, and its order is kept.
        rejected = session("u", unknown=1)
        answers = await send(ada, "sessions", (rejected, None), (tombstone, None), (dead(other), None))
        assert answers[0]["syncError"]["code"] == "INVALID"
        assert answers[1:] == [revived]
        assert await stored(ada, "sessions", "s") == revived and await stored(ada, "episodes", "e") == turn
        assert (await stored(ada, "sessions", "t"))["_deleted"] is True
        # A delete that knows the row, or is later than the row, deletes it.
        assert await send(ada, "sessions", (dead(revived | {"updatedAt": day(3)}), None)) == []
        assert (await stored(ada, "sessions", "s"))["_deleted"] is True

    alone(tmp_path, scenario)


@pytest.mark.parametrize("days", [(1, 3), (3, 1)])
def test_outdated_and_valid_delete_of_a_row_in_one_batch_delete_it_and_return_no_row(tmp_path, days):
    async def scenario(ada):
        row = session("s", updatedAt=day(2))
        await send(ada, "sessions", (row, None))
        deletes = [(dead(row | {"updatedAt": day(number)}), None) for number in days]
        assert await send(ada, "sessions", *deletes) == []
        assert (await stored(ada, "sessions", "s"))["_deleted"] is True

    alone(tmp_path, scenario)


def test_delete_of_unknown_row_is_stored(tmp_path):
    async def scenario(ada):
        assert await send(ada, "sessions", (dead(session("s")), None)) == []
        conflicts = await send(ada, "sessions", (session("s"), None))
        assert [(row["id"], row["_deleted"]) for row in conflicts] == [("s", True)]

    alone(tmp_path, scenario)


def test_delete_of_deleted_row_is_accepted(tmp_path):
    async def scenario(ada):
        await send(ada, "sessions", (session("s"), None))
        for assumed in (session("s"), None):
            assert await send(ada, "sessions", (dead(session("s")), assumed)) == []
        tombstone = await stored(ada, "sessions", "s")
        assert await send(ada, "sessions", (tombstone, tombstone)) == []

    alone(tmp_path, scenario)


def test_pushed_delete_may_violate_the_schema(tmp_path):
    async def scenario(ada):
        await send(ada, "facts", (fact("f"), None))
        assert await send(ada, "facts", ({"id": "f", "_deleted": True}, None)) == []
        assert (await stored(ada, "facts", "f"))["_deleted"] is True

    alone(tmp_path, scenario)


@pytest.mark.parametrize("collection", COLLECTIONS)
def test_pulled_tombstone_matches_its_schema_and_can_be_pushed_back(tmp_path, collection):
    """A pulled tombstone can be pushed back unchanged."""

    async def scenario(ada):
        row = one_of_each(ada.id)[collection]
        assert await send(ada, collection, (dead(row), None)) == []
        tombstone = (await page(ada, collection))["documents"][0]
        required = {k for k in row if k not in ("sessionId",) or collection == "episodes"}
        assert required <= tombstone.keys() and tombstone["_deleted"] is True
        for reference_field in ("documentId", "sessionId", "projectId", "fromId", "toId"):
            if reference_field in row and collection != "sessions":
                assert tombstone[reference_field] == row[reference_field]
        assert await send(ada, collection, (tombstone, tombstone)) == []

    alone(tmp_path, scenario)


def test_deletes_of_a_batch_are_applied_before_its_rows(tmp_path):
    async def scenario(ada):
        await send(ada, "sessions", (session("old", externalId="x"), None))
        new = session("new", externalId="x")
        assert await send(ada, "sessions", (new, None), (dead(session("old")), session("old"))) == []
        assert (await stored(ada, "sessions", "new"))["_deleted"] is False

    alone(tmp_path, scenario)


def test_rows_of_a_batch_without_deletes_keep_their_order(tmp_path):
    async def scenario(ada):
        conflicts = await send(ada, "sessions", *((session(i, externalId="x"), None) for i in "cab"))
        assert [row["id"] for row in conflicts] == ["a", "b"] and codes(conflicts) == ["DUPLICATE"] * 2
        first, second = session("s"), session("s", title="second")
        assert await send(ada, "sessions", (first, None), (second, first)) == []
        assert await stored(ada, "sessions", "s") == second

    alone(tmp_path, scenario)


def test_edit_that_does_not_assume_the_tombstone_returns_the_tombstone(tmp_path):
    async def scenario(ada):
        first = fact("f", createdAt=day(1))
        await send(ada, "facts", (first, None))
        await send(ada, "facts", (dead(first), first))
        tombstone, before = await stored(ada, "facts", "f"), await seqs(ada)
        for assumed in (first, None, marked(first, None), marked(first, "other:1")):
            assert await send(ada, "facts", (fact("f", value="stale"), assumed)) == [tombstone]
        assert await seqs(ada) == before

    alone(tmp_path, scenario)


def test_stale_device_cannot_revive_forgotten_rows(tmp_path):
    async def scenario(ada):
        row = fact("f", createdAt=NEW)
        await send(ada, "facts", (row, None))
        await forget(ada)
        conflicts = await send(ada, "facts", ({**row, "value": "stale"}, row))
        assert [(r["id"], r["_deleted"], r["value"]) for r in conflicts] == [("f", True, "")]

    alone(tmp_path, scenario)
