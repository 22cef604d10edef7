"""The layout of rows in segments: deleted rows leave immediately, and outdated rows at the next
compaction.
"""

import asyncio
import json
import threading
from contextlib import contextmanager

import pytest

from property.rows import fact
from property.sync_wire import send
from server.in_process_server import house, run
from vademecum.engines.duckdb import body_cache
from vademecum.model.sync import cascade


@pytest.fixture(autouse=True)
def from_the_file(monkeypatch):
    """Disable the body cache, so that reads come from the file."""
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


def in_a_house(tmp_path, scenario, **settings):
    async def whole():
        async with house(tmp_path, **settings) as h:
            await scenario(h, await h.person())

    run(whole)


def test_commit_is_stored_as_one_segment(tmp_path):
    async def scenario(h, ada):
        await send(ada, "facts", *((row, None) for row in rows(50)))
        [(first, count, _)] = await packs(h, ada)
        assert (first, count) == (1, 50)

    in_a_house(tmp_path, scenario)


def test_large_commit_is_split_into_segments(tmp_path):
    async def scenario(h, ada):
        large = [{**row, "value": "x" * 100_000} for row in rows(10)]
        await send(ada, "facts", *((row, None) for row in large))
        found = await packs(h, ada)
        assert [count for _, count, _ in found] == [2, 2, 2, 2, 2]
        assert set(await ada.live("facts")) == {row["id"] for row in large}

    in_a_house(tmp_path, scenario)


def test_deleted_row_content_leaves_its_segment_immediately(tmp_path):
    async def scenario(h, ada):
        made = rows(50)
        await send(ada, "facts", *((row, None) for row in made))
        await send(ada, "facts", ({**made[7], "_deleted": True}, made[7]))
        found = await packs(h, ada)
        assert [(first, count) for first, count, _ in found] == [(1, 49), (51, 1)]
        assert "value 7" not in "".join(bodies for _, _, bodies in found)
        assert len(await ada.live("facts")) == 49

    in_a_house(tmp_path, scenario, erase_delay_s=60)


def test_segment_is_compacted_when_half_is_stale(tmp_path):
    async def scenario(h, ada):
        made = rows(10)
        await send(ada, "facts", *((row, None) for row in made))
        for number in range(6):
            await send(ada, "facts", ({**made[number], "value": "new"}, made[number]))
            (first, count, _), *_ = await packs(h, ada)
            assert (first, count) == (1, 10 if number < 5 else 4)
        assert len(await ada.pull("facts")) == 10

    in_a_house(tmp_path, scenario)


def test_repeated_edits_leave_no_stale_rows(tmp_path):
    async def scenario(h, ada):
        row = fact("f", value="0")
        await send(ada, "facts", (row, None))
        for number in range(1, 40):
            new = {**row, "value": str(number)}
            await send(ada, "facts", (new, row))
            row = new
        assert [count for _, count, _ in await packs(h, ada)] == [1]

    in_a_house(tmp_path, scenario)


def test_erasure_removes_every_stale_row(tmp_path):
    async def scenario(h, ada):
        made = rows(30)
        await send(ada, "facts", *((row, None) for row in made))
        await send(ada, "facts", ({**made[3], "value": "new"}, made[3]))
        assert "value 3" in (await packs(h, ada))[0][2]
        await h.services.users.rewrite(ada.id)
        assert [count for _, count, _ in await packs(h, ada)] == [29, 1]

    in_a_house(tmp_path, scenario)


def test_seq_stays_monotonic_when_rewrite_follows_purge(tmp_path):
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

    in_a_house(tmp_path, scenario)


def test_reopening_the_file_preserves_pages(tmp_path):
    async def scenario():
        async with house(tmp_path) as h:
            ada = await h.person()
            made = rows(300)
            for at in range(0, 300, 20):
                await send(ada, "facts", *((row, None) for row in made[at : at + 20]))
            for number in range(0, 300, 3):
                await send(ada, "facts", ({**made[number], "value": "new"}, made[number]))
            for number in range(0, 300, 7):
                await send(ada, "facts", ({**made[number], "_deleted": True}, None))
            before = await ada.pull("facts")
        async with house(tmp_path) as h:
            ada.client._transport.app = h.app
            assert await ada.pull("facts") == before
            assert len(before) == 300

    run(scenario)


@contextmanager
def held_up(h):
    """Block all statements until the block ends. Then each person's statements run in order."""
    gate = threading.Event()
    threads = asyncio.gather(*(h.services.instance.run(lambda _: gate.wait()) for _ in range(8)))
    try:
        yield
    finally:
        gate.set()
        threads.add_done_callback(lambda _: None)


async def with_stale_rows(person):
    """Create two segments of four rows each. One row of the first segment is stale."""
    made = [fact(f"f{number}", value=f"value {number}") for number in range(8)]
    for at in (0, 4):
        await send(person, "facts", *((row, None) for row in made[at : at + 4]))
    await send(person, "facts", ({**made[0], "value": "new"}, made[0]))
    return made


async def in_line(h, *works):
    """Start tasks that queue for the engine, or for its writer, in this order."""
    tasks = []
    for work in works:
        tasks.append(asyncio.ensure_future(work))
        for _ in range(100):  # turns of the loop; none of them waits for anything but the engine
            await asyncio.sleep(0)
    assert h.services.instance._threads.waiting() > 0
    return tasks


def test_queued_page_read_sees_later_deletes(tmp_path):
    async def scenario(h, ada):
        made = await with_stale_rows(ada)
        async with h.services.users.open(ada.id) as store:
            with held_up(h):
                deaths = [({**row, "_deleted": True}, None) for row in made[1:4]]
                keys = [key for _, key in store.entries_after("facts", 0, 100)]
                tasks = await in_line(h, send(ada, "facts", *deaths), store.read_bodies(keys))
            _, bodies = await asyncio.gather(*tasks)
            rows = {row["id"]: row for row in map(json.loads, bodies.values())}
            assert {i for i, row in rows.items() if row["_deleted"]} == {"f1", "f2", "f3"} and len(rows) == 8

    in_a_house(tmp_path, scenario, erase_delay_s=60)


def test_queued_body_read_sees_later_edits(tmp_path):
    async def scenario(h, ada):
        made = await with_stale_rows(ada)
        async with h.services.users.open(ada.id) as store:
            with held_up(h):
                edits = [({**row, "value": "newer"}, row) for row in made[1:4]]
                tasks = await in_line(
                    h, send(ada, "facts", *edits), store.read_bodies(["facts/f1", "facts/f5"])
                )
            _, bodies = await asyncio.gather(*tasks)
            assert b"newer" in bodies["facts/f1"] and b"value 5" in bodies["facts/f5"]

    in_a_house(tmp_path, scenario, erase_delay_s=60)


def test_deletes_before_queued_compaction_cause_no_errors(tmp_path):
    async def scenario(h, ada):
        made = await with_stale_rows(ada)
        async with h.services.users.open(ada.id) as store:
            with held_up(h):
                deaths = [({**row, "_deleted": True}, None) for row in made[1:4]]
                tasks = await in_line(h, send(ada, "facts", *deaths), store.compact())
            answer, _ = await asyncio.gather(*tasks)
            assert answer == []
        assert [count for _, count, _ in await packs(h, ada)] == [4, 1, 3]
        assert len(await ada.pull("facts")) == 8

    in_a_house(tmp_path, scenario, erase_delay_s=60)


def edit(person, row):
    return send(person, "facts", ({**row, "value": "newer"}, row))


def test_concurrent_compactions_finish_during_an_edit(tmp_path):
    async def scenario(h, ada):
        made = await with_stale_rows(ada)
        async with h.services.users.open(ada.id) as store:
            with held_up(h):
                tasks = await in_line(h, store.compact(), store.compact(), edit(ada, made[1]))
            async with asyncio.timeout(60):
                await asyncio.gather(*tasks)
        assert len(await ada.pull("facts")) == 8

    in_a_house(tmp_path, scenario, erase_delay_s=60)


def test_compaction_ignores_segments_that_become_stale_later(tmp_path):
    async def scenario(h, ada):
        made = await with_stale_rows(ada)
        async with h.services.users.open(ada.id) as store:
            with held_up(h):
                tasks = await in_line(h, edit(ada, made[1]), store.compact(), edit(ada, made[5]))
            await asyncio.gather(*tasks)
        assert [count for _, count, _ in await packs(h, ada)] == [2, 4, 1, 1, 1]

    in_a_house(tmp_path, scenario, erase_delay_s=60)


def test_missing_segment_rows_end_read_with_error(tmp_path):
    async def scenario(h, ada):
        await with_stale_rows(ada)
        async with h.services.users.open(ada.id) as store:
            await h.services.instance.run(lambda c: c.execute(f"DELETE FROM {store.alias}.main.packs"))
        answer = await ada.call("GET", "/v1/sync/facts/0/pull?limit=100")
        assert answer.status_code == 500 and "doctor" in answer.text

    in_a_house(tmp_path, scenario, erase_delay_s=60)
