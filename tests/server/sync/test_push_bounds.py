"""Limits on what clients can make the server store: rows per push, and tombstones."""

import asyncio
import gzip
import itertools
import json

import pytest

from property.rows import NEW, document, fact, memory, session
from property.sync_wire import alone, codes, page, send, stored
from server.in_process_server import check_problem, run, serve
from server.sync.test_quotas import dead, small
from vademecum.model.sync.quotas import REFERENCE_BYTES, TOMBSTONE_BYTES
from vademecum.services.sync.push_decoding import ROWS_MAX


@pytest.fixture
def three_free(monkeypatch):
    """Set the number of tombstones that are not charged to three."""
    monkeypatch.setattr("vademecum.model.sync.quotas.TOMBSTONES_FREE", 3)


def unknown(*ids):
    return [(dead(fact(row_id)), None) for row_id in ids]


async def usage(person):
    return (await person.call("GET", "/v1/me")).json()["usage"]["bytes"]


async def tombstones(h, person):
    """Return two numbers of tombstones: the stored count, and the count of tombstones in the row index."""
    async with h.services.users.open(person.id) as store:
        return store.row_index.totals.tombstones, sum(head.deleted for head in store.row_index.rows.values())


def test_push_of_too_many_rows_is_rejected(tmp_path):
    async def scenario(ada):
        rows = [fact(f"f{number}") for number in range(ROWS_MAX + 1)]
        batch = [{"newDocumentState": row} for row in rows]
        answer = await ada.call("POST", "/v1/sync/facts/0/push", json=batch)
        assert answer.headers["content-type"] == "application/problem+json"
        problem = answer.json()
        assert (answer.status_code, problem["code"], problem["error"]) == (400, "BAD_REQUEST", True)
        assert f"at most {ROWS_MAX} rows" in problem["detail"] and "Nothing was changed" in problem["detail"]
        assert await ada.pull("facts") == []
        assert await send(ada, "facts", *((row, None) for row in rows[:ROWS_MAX])) == []
        assert len(await ada.pull("facts")) == ROWS_MAX

    alone(tmp_path, scenario)


@pytest.mark.parametrize("how", ["gzip", "br", "GZIP, identity"])
@pytest.mark.parametrize("path", ["/v1/sync/facts/0/push", "/v1/search", "/v1/documents"])
def test_request_with_compressed_body_is_rejected(tmp_path, path, how):
    async def scenario(ada):
        packed = gzip.compress(json.dumps([{"newDocumentState": fact("f1")}]).encode())
        answer = await ada.call("POST", path, content=packed, headers={"Content-Encoding": how})
        assert (answer.status_code, answer.json()["code"]) == (415, "UNSUPPORTED_MEDIA_TYPE")
        assert "Nothing was changed" in answer.json()["detail"]
        assert await ada.pull("facts") == []

    alone(tmp_path, scenario)


def test_push_with_identity_encoding_is_accepted(tmp_path):
    async def scenario(ada):
        body = json.dumps([{"newDocumentState": fact("f1")}])
        path = "/v1/sync/facts/0/push"
        answer = await ada.call("POST", path, content=body, headers={"Content-Encoding": "Identity"})
        assert answer.json() == [] and len(await ada.pull("facts")) == 1

    alone(tmp_path, scenario)


def test_pushed_rows_are_counted_before_they_are_decoded(tmp_path):
    async def scenario(ada):
        body = json.dumps([{"newDocumentState": "no row"}] * (ROWS_MAX + 1))
        answer = await ada.call("POST", "/v1/sync/facts/0/push", content=body.encode())
        assert answer.status_code == 400 and "at most" in answer.json()["detail"]

    alone(tmp_path, scenario)


@pytest.mark.usefixtures("three_free")
def test_deletes_of_unknown_rows_beyond_the_free_number_store_no_tombstones(tmp_path):
    async def scenario(ada):
        assert await send(ada, "facts", *unknown("a", "b")) == []
        assert await send(ada, "facts", *unknown("c", "d")) == []
        before = await page(ada, "facts")
        assert {row["id"] for row in before["documents"]} == {"a", "b", "c"}
        assert await send(ada, "facts", *unknown("e", "f", "a")) == []
        assert await page(ada, "facts") == before and await usage(ada) == 0
        assert await send(ada, "facts", (fact("d"), None)) == [], (
            "a row without a tombstone must be accepted as new"
        )
        assert (await send(ada, "facts", (fact("a"), None)))[0]["_deleted"] is True

    alone(tmp_path, scenario)


@pytest.mark.usefixtures("three_free")
def test_delete_of_known_row_is_always_stored(tmp_path):
    async def scenario(ada):
        row = fact("f")
        await send(ada, "facts", *unknown("a", "b", "c"), (row, None))
        assert await send(ada, "facts", (dead(row), row)) == []
        assert (await stored(ada, "facts", "f"))["_deleted"] is True
        assert (await send(ada, "facts", (row, None)))[0]["_deleted"] is True, (
            "the deleted row must not be revived"
        )

    alone(tmp_path, scenario)


@pytest.mark.usefixtures("three_free")
def test_repeated_creation_and_deletion_of_rows_fills_the_account(tmp_path):
    async def scenario(ada):
        for number in itertools.count():
            row = fact(f"f{number}")
            if answered := await send(ada, "facts", (row, None)):
                break
            assert await send(ada, "facts", (dead(row), row)) == []
            assert await usage(ada) == max(0, number + 1 - 3) * TOMBSTONE_BYTES
        assert codes(answered) == ["STORAGE_LIMIT"] and 3 < number < 60

    alone(tmp_path, scenario, **small(storage_bytes=10_000))


@pytest.mark.usefixtures("three_free")
def test_revived_row_frees_its_tombstone_slot(tmp_path):
    async def scenario(ada):
        await send(ada, "facts", *unknown("a", "b", "c"))
        tombstone = await stored(ada, "facts", "a")
        assert await send(ada, "facts", (fact("a", updatedAt=NEW), tombstone)) == []
        await send(ada, "facts", *unknown("d", "e"))
        assert await stored(ada, "facts", "d") and await stored(ada, "facts", "e") is None

    alone(tmp_path, scenario)


def test_tombstone_count_survives_failures_and_restarts(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            rows = [session("s"), session("t")]
            await send(ada, "sessions", *((row, None) for row in rows))
            await send(ada, "facts", (fact("f"), None), *unknown("a", "b"))
            await send(ada, "sessions", (dead(rows[0]), rows[0]))

            def fails(tx):
                tx.put_tombstone("facts/f", fact("f"))
                raise ValueError("halfway")

            async with h.services.users.open(ada.id) as store:
                # Both run in one commit.
                works = store.write(fails), store.write(lambda tx: tx.totals.tombstones)
                failed, counted = await asyncio.gather(*works, return_exceptions=True)
            assert isinstance(failed, ValueError) and counted == 3
            assert await tombstones(h, ada) == (3, 3)
            await ada.call("POST", "/v1/forget", json={"confirm": "forget everything"})
            assert await tombstones(h, ada) == (5, 5)
        async with serve(tmp_path) as h:
            assert await tombstones(h, ada) == (5, 5)

    run(scenario)


@pytest.mark.usefixtures("three_free")
def test_restore_stores_tombstones_of_erased_rows_beyond_the_free_number(tmp_path):
    async def scenario():
        async with serve(tmp_path / "data") as h:
            ada = await h.person()
            await send(ada, "sessions", (session("s"), None))
            await h.services.backup.create(tmp_path / "backup")
            rows = [fact(f"f{number}") for number in range(5)]
            await send(ada, "facts", *((row, None) for row in rows))
            await send(ada, "facts", *((dead(row), row) for row in rows))
            await h.services.restore.restore_all(tmp_path / "backup")
            assert [row["_deleted"] for row in await ada.pull("facts")] == [True] * 5

    run(scenario)


def test_document_with_most_sessions_cannot_be_borrowed(tmp_path):
    async def scenario(ada):
        full = document(ada.id, "d", activeSessions=[f"s{number}" for number in range(10_000)])
        assert await send(ada, "documents", (full, None)) == []
        problem = check_problem(await ada.call("PUT", "/v1/documents/d/sessions/more"), 409, "CONFLICT")
        assert "The maximum number of sessions" in problem["detail"]
        assert await stored(ada, "documents", "d") == full
        assert (await ada.call("PUT", "/v1/documents/d/sessions/s1")).status_code == 200, (
            "repeating an existing borrow must succeed"
        )
        await ada.call("DELETE", "/v1/documents/d/sessions/s1")
        assert (await ada.call("PUT", "/v1/documents/d/sessions/more")).status_code == 200

    alone(tmp_path, scenario)


def test_references_beyond_the_free_number_are_charged(tmp_path, monkeypatch):
    """References are charged for their memory: ten thousand in a row of 70 kB took more than five megabytes."""
    monkeypatch.setattr("vademecum.model.sync.quotas.REFERENCES_FREE", 5)

    def told(row_id, sessions):
        return memory(row_id, sessionIds=[f"s{number}" for number in range(sessions)])

    def size(*rows):
        return sum(len(json.dumps(row, separators=(",", ":"))) for row in rows)

    async def scenario(ada):
        free, more, fewer = told("a", 5), told("b", 10), told("b", 2)
        assert await send(ada, "memories", (free, None), (more, None)) == []
        assert await usage(ada) == size(free, more) + 10 * REFERENCE_BYTES
        assert codes(await send(ada, "memories", (told("c", 30), None))) == ["STORAGE_LIMIT"]
        assert await send(ada, "memories", (fewer, more)) == []
        assert await usage(ada) == size(free, fewer) + 2 * REFERENCE_BYTES
        assert await send(ada, "memories", (dead(free), None), (dead(fewer), None)) == []
        assert await usage(ada) == 0

    alone(tmp_path, scenario, **small(storage_bytes=8_000))
