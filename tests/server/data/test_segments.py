"""Rows in segments: content of deleted rows is removed immediately, and outdated rows at the next compaction."""

import asyncio
import json
import threading
from contextlib import contextmanager

import pytest

from property.rows import fact
from property.sync_wire import send
from server.in_process_server import reconnect, run, serve
from vademecum.engines.duckdb import body_cache
from vademecum.model.sync import cascade


@pytest.fixture(autouse=True)
def from_the_file(monkeypatch):
    """Disable the cache of row contents, so that reads come from the file."""
    monkeypatch.setattr(body_cache, "CACHE_BYTES_MAX", 0)


async def raw(h, person, statement):
    """Run a statement on the fact segments of the person's file."""
    async with h.services.users.open(person.id) as store:
        return await h.services.instance.run(
            lambda c: c.execute(
                statement.format(f"(FROM {store.alias}.main.packs WHERE collection = 'facts')")
            ).fetchall()
        )


async def packs(h, person):
    return await raw(h, person, "SELECT first, json_array_length(seqs), bodies FROM {} ORDER BY first")


def rows(count, **more):
    return [fact(f"f{number}", value=f"value {number}", **more) for number in range(count)]


def run_on_server(tmp_path, scenario, **settings):
    async def whole():
        async with serve(tmp_path, **settings) as h:
            await scenario(h, await h.person())

    run(whole)


def test_commit_is_stored_as_one_segment(tmp_path):
    async def scenario(h, ada):
        await send(ada, "facts", *((row, None) for row in rows(50)))
        [(first, count, _)] = await packs(h, ada)
        assert (first, count) == (1, 50)

    run_on_server(tmp_path, scenario)


def test_large_commit_is_stored_as_several_segments(tmp_path):
    async def scenario(h, ada):
        large = [{**row, "value": "x" * 100_000} for row in rows(10)]
        await send(ada, "facts", *((row, None) for row in large))
        found = await packs(h, ada)
        assert [count for _, count, _ in found] == [2, 2, 2, 2, 2]
        assert set(await ada.live("facts")) == {row["id"] for row in large}

    run_on_server(tmp_path, scenario)


def test_deleted_row_content_leaves_its_segment_immediately(tmp_path):
    async def scenario(h, ada):
        made = rows(50)
        await send(ada, "facts", *((row, None) for row in made))
        await send(ada, "facts", ({**made[7], "_deleted": True}, made[7]))
        found = await packs(h, ada)
        assert [(first, count) for first, count, _ in found] == [(1, 49), (51, 1)]
        assert "value 7" not in "".join(bodies for _, _, bodies in found)
        assert len(await ada.live("facts")) == 49

    run_on_server(tmp_path, scenario, erase_delay_s=60)


def test_segment_is_compacted_when_over_half_of_its_rows_are_stale(tmp_path):
    async def scenario(h, ada):
        made = rows(10)
        await send(ada, "facts", *((row, None) for row in made))
        for number in range(6):
            await send(ada, "facts", ({**made[number], "value": "new"}, made[number]))
            (first, count, _), *_ = await packs(h, ada)
            assert (first, count) == (1, 10 if number < 5 else 4)
        assert len(await ada.pull("facts")) == 10

    run_on_server(tmp_path, scenario)


def test_repeated_edits_of_a_row_leave_no_stale_rows(tmp_path):
    async def scenario(h, ada):
        row = fact("f", value="0")
        await send(ada, "facts", (row, None))
        for number in range(1, 40):
            new = {**row, "value": str(number)}
            await send(ada, "facts", (new, row))
            row = new
        assert [count for _, count, _ in await packs(h, ada)] == [1]

    run_on_server(tmp_path, scenario)


def test_erasure_removes_every_stale_row_from_segments(tmp_path):
    async def scenario(h, ada):
        made = rows(30)
        await send(ada, "facts", *((row, None) for row in made))
        await send(ada, "facts", ({**made[3], "value": "new"}, made[3]))
        assert "value 3" in (await packs(h, ada))[0][2]
        await h.services.users.rewrite(ada.id)
        assert [count for _, count, _ in await packs(h, ada)] == [29, 1]

    run_on_server(tmp_path, scenario)


def test_file_rewrite_after_tombstone_purge_preserves_seq(tmp_path):
    async def scenario(h, ada):
        await send(ada, "facts", *((row, None) for row in rows(3)))
        async with h.services.users.open(ada.id) as store:
            rewriting = asyncio.create_task(h.services.users.rewrite(ada.id))
            await asyncio.sleep(0.3)
            await store.write(lambda tx: cascade.delete_with_dependents(tx, "facts/f2"))
            await store.write(lambda tx: tx.purge("facts/f2"))
            given = store.seq
        await rewriting
        async with h.services.users.open(ada.id) as store:
            assert store.seq == given > 3

    run_on_server(tmp_path, scenario)


def test_reopening_an_accounts_file_preserves_its_pull_pages(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            made = rows(300)
            for at in range(0, 300, 20):
                await send(ada, "facts", *((row, None) for row in made[at : at + 20]))
            for number in range(0, 300, 3):
                await send(ada, "facts", ({**made[number], "value": "new"}, made[number]))
            for number in range(0, 300, 7):
                await send(ada, "facts", ({**made[number], "_deleted": True}, None))
            before = await ada.pull("facts")
        async with serve(tmp_path) as h:
            reconnect(h, ada)
            assert await ada.pull("facts") == before
            assert len(before) == 300

    run(scenario)


@contextmanager
def delay_statements(h):
    """Delay all database statements until the block ends. Then the statements of each person run in their order."""
    gate = threading.Event()
    threads = asyncio.gather(*(h.services.instance.run(lambda _: gate.wait()) for _ in range(8)))
    try:
        yield
    finally:
        gate.set()
        threads.add_done_callback(lambda _: None)


async def create_stale_rows(person):
    """Create two segments of four rows each, then edit one row, so that the first segment has a stale row."""
    made = [fact(f"f{number}", value=f"value {number}") for number in range(8)]
    for at in (0, 4):
        await send(person, "facts", *((row, None) for row in made[at : at + 4]))
    await send(person, "facts", ({**made[0], "value": "new"}, made[0]))
    return made


async def queue_tasks(h, *works):
    """Start one task per coroutine, so that they queue for the engine or its writer in this order."""
    tasks = []
    for work in works:
        tasks.append(asyncio.ensure_future(work))
        for _ in range(100):  # enough turns of the event loop for the task to reach the engine's queue
            await asyncio.sleep(0)
    assert h.services.instance._threads.waiting() > 0
    return tasks


def test_queued_page_read_sees_deletes_committed_before_it_runs(tmp_path):
    async def scenario(h, ada):
        made = await create_stale_rows(ada)
        async with h.services.users.open(ada.id) as store:
            with delay_statements(h):
                deaths = [({**row, "_deleted": True}, None) for row in made[1:4]]
                keys = [key for _, key in store.entries_after("facts", 0, 100)]
                tasks = await queue_tasks(h, send(ada, "facts", *deaths), store.read_bodies(keys))
            _, bodies = await asyncio.gather(*tasks)
            rows = {row["id"]: row for row in map(json.loads, bodies.values())}
            assert {i for i, row in rows.items() if row["_deleted"]} == {"f1", "f2", "f3"} and len(rows) == 8

    run_on_server(tmp_path, scenario, erase_delay_s=60)


def test_queued_body_read_sees_edits_committed_before_it_runs(tmp_path):
    async def scenario(h, ada):
        made = await create_stale_rows(ada)
        async with h.services.users.open(ada.id) as store:
            with delay_statements(h):
                edits = [({**row, "value": "newer"}, row) for row in made[1:4]]
                tasks = await queue_tasks(
                    h, send(ada, "facts", *edits), store.read_bodies(["facts/f1", "facts/f5"])
                )
            _, bodies = await asyncio.gather(*tasks)
            assert b"newer" in bodies["facts/f1"] and b"value 5" in bodies["facts/f5"]

    run_on_server(tmp_path, scenario, erase_delay_s=60)


def test_compaction_succeeds_if_rows_of_its_segment_were_deleted_meanwhile(tmp_path):
    async def scenario(h, ada):
        made = await create_stale_rows(ada)
        async with h.services.users.open(ada.id) as store:
            with delay_statements(h):
                deaths = [({**row, "_deleted": True}, None) for row in made[1:4]]
                tasks = await queue_tasks(h, send(ada, "facts", *deaths), store.compact())
            answer, _ = await asyncio.gather(*tasks)
            assert answer == []
        assert [count for _, count, _ in await packs(h, ada)] == [4, 1, 3]
        assert len(await ada.pull("facts")) == 8

    run_on_server(tmp_path, scenario, erase_delay_s=60)


def edit(person, row):
    return send(person, "facts", ({**row, "value": "newer"}, row))


def test_concurrent_compactions_finish_during_an_edit(tmp_path):
    async def scenario(h, ada):
        made = await create_stale_rows(ada)
        async with h.services.users.open(ada.id) as store:
            with delay_statements(h):
                tasks = await queue_tasks(h, store.compact(), store.compact(), edit(ada, made[1]))
            async with asyncio.timeout(60):
                await asyncio.gather(*tasks)
        assert len(await ada.pull("facts")) == 8

    run_on_server(tmp_path, scenario, erase_delay_s=60)


def test_compaction_skips_segments_that_become_stale_after_it_was_queued(tmp_path):
    async def scenario(h, ada):
        made = await create_stale_rows(ada)
        async with h.services.users.open(ada.id) as store:
            with delay_statements(h):
                tasks = await queue_tasks(h, edit(ada, made[1]), store.compact(), edit(ada, made[5]))
            await asyncio.gather(*tasks)
        assert [count for _, count, _ in await packs(h, ada)] == [2, 4, 1, 1, 1]

    run_on_server(tmp_path, scenario, erase_delay_s=60)


def test_pull_fails_with_error_if_segments_are_missing(tmp_path):
    async def scenario(h, ada):
        await create_stale_rows(ada)
        async with h.services.users.open(ada.id) as store:
            await h.services.instance.run(lambda c: c.execute(f"DELETE FROM {store.alias}.main.packs"))
        answer = await ada.call("GET", "/v1/sync/facts/0/pull?limit=100")
        assert answer.status_code == 500 and "doctor" in answer.text

    run_on_server(tmp_path, scenario, erase_delay_s=60)
