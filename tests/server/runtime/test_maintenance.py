"""Maintenance of idle databases: the server releases their cached memory and checkpoints their logs."""

import asyncio
import threading

import pytest
from structlog.testing import capture_logs

from property.rows import fact
from property.sync_wire import send
from server.data.test_full_disk import full
from server.in_process_server import run, serve
from vademecum.engines.duckdb import instance as engine
from vademecum.engines.duckdb import maintenance
from vademecum.engines.duckdb.instance import Instance
from vademecum.errors import Busy
from wait_until import soon

MB = 2**20


def cached(cursor):
    (found,) = cursor.execute(
        "SELECT memory_usage_bytes FROM duckdb_memory() WHERE tag = 'BASE_TABLE'"
    ).fetchone()
    return found


# Above the configured limit, because the measurement itself reads blocks into the cache.
KEPT_MAX = engine.CACHED_MAX + 2**20


def limit(cursor):
    return cursor.execute("SELECT current_setting('memory_limit')").fetchone()


def read_all(alias):
    return lambda cursor: cursor.execute(f"SELECT sum(length(text)) FROM {alias}.main.texts").fetchone()


@pytest.fixture
def long_file(tmp_path):
    """Return a database file with 40 MB to read."""
    made = engine.connect(tmp_path / "long.duckdb")
    made.execute("CREATE TABLE migrations (name VARCHAR)")
    made.execute("CREATE TABLE texts AS SELECT repeat('x', 4000) AS text FROM range(10000)")
    made.close()
    return tmp_path / "long.duckdb"


async def shrunk(instance):
    """Request a release of cached memory and wait until it is complete."""
    instance.release_memory()
    async with asyncio.timeout(20):
        while instance._is_shrink_due or instance._shrinking:
            await asyncio.sleep(0.001)


def test_idle_database_releases_cached_memory(long_file):
    async def scenario():
        instance = Instance(2)
        alias = await instance.run(lambda _: instance.attach(long_file))
        before = await instance.run(limit)
        assert await instance.run(read_all(alias)) == (40_000_000,)
        assert await instance.run(cached) > 3 * engine.CACHED_MAX
        await shrunk(instance)
        assert await instance.run(cached) <= KEPT_MAX
        assert await instance.run(limit) == before
        assert await instance.run(read_all(alias)) == (40_000_000,)
        instance.close()

    run(scenario)


def test_memory_release_keeps_rows_of_in_memory_tables(long_file):
    """The test creates in-memory rows that are larger than the cache limit. DuckDB cannot evict them."""

    async def scenario():
        instance = Instance(2)
        alias = await instance.run(lambda _: instance.attach(long_file))
        await instance.run(read_all(alias))
        await instance.run(
            lambda c: c.execute(
                f"INSERT INTO {alias}.main.texts SELECT repeat('y', 4000) FROM range(5000)"
            ).fetchall()
        )
        await shrunk(instance)
        assert await instance.run(cached) <= KEPT_MAX
        assert await instance.run(read_all(alias)) == (60_000_000,)
        instance.close()

    run(scenario)


def test_memory_release_waits_for_running_statements_and_delays_new_ones(long_file, monkeypatch):
    async def scenario():
        instance = Instance(2)
        alias = await instance.run(lambda _: instance.attach(long_file))
        order = []
        may_end, may_shrink = threading.Event(), threading.Event()
        whole = instance._shrink

        def release_memory():
            order.append("shrinks")
            assert may_shrink.wait(20)
            whole()
            order.append("shrunk")

        monkeypatch.setattr(instance, "_shrink", release_memory)

        def slow(cursor):
            assert may_end.wait(20)
            order.append("read")
            return read_all(alias)(cursor)

        reading = asyncio.create_task(instance.run(slow))
        await asyncio.sleep(0)
        instance.release_memory()
        assert order == []
        may_end.set()
        assert await reading == (40_000_000,)
        late = asyncio.create_task(instance.run(lambda _: order.append("late")))
        await asyncio.sleep(0.05)
        assert order == ["read", "shrinks"]
        may_shrink.set()
        await late
        assert order == ["read", "shrinks", "shrunk", "late"]
        instance.close()

    run(scenario)


def test_memory_release_waits_for_an_abandoned_statement(long_file, monkeypatch):
    async def scenario():
        instance = Instance(2)
        may_end, looks = threading.Event(), []
        monkeypatch.setattr(instance, "_shrink", lambda: looks.append(may_end.is_set()))
        begun = threading.Event()

        def slow(_):
            begun.set()
            assert may_end.wait(20)

        caller = asyncio.create_task(instance.run(slow))
        await asyncio.to_thread(begun.wait, 20)
        caller.cancel()
        await asyncio.wait([caller])
        instance.release_memory()
        await asyncio.sleep(0.05)
        assert looks == []
        may_end.set()
        await shrunk(instance)
        assert looks == [True]
        instance.close()

    run(scenario)


def test_memory_release_is_skipped_without_new_reads(long_file, monkeypatch):
    async def scenario():
        instance = Instance(1)
        looks = []
        monkeypatch.setattr(instance, "_shrink", lambda: looks.append(1))
        await instance.run(lambda c: c.execute("SELECT 1").fetchall())
        for _ in range(3):
            await shrunk(instance)
        assert looks == [1]
        instance.close()

    run(scenario)


def test_server_releases_memory_periodically(tmp_path, monkeypatch):
    monkeypatch.setattr(maintenance, "RELEASE_EVERY_S", 0.01)

    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            for number in range(30):
                rows = [fact(f"f{number}-{i}", value="x" * 100_000) for i in range(10)]
                assert await send(ada, "facts", *((row, None) for row in rows)) == []
            await h.services.users.checkpoint_idle()
            assert len(await ada.pull("facts")) == 300
            instance = h.services.instance
            async with asyncio.timeout(20):
                while await instance.run(cached) > engine.CACHED_MAX:
                    await asyncio.sleep(0.02)
            assert len(await ada.pull("facts")) == 300

    run(scenario)


def test_log_of_an_idle_file_is_checkpointed(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            for number in range(8):
                rows = [fact(f"f{number}-{i}", value="x" * 100_000) for i in range(10)]
                assert await send(ada, "facts", *((row, None) for row in rows)) == []
            [log] = tmp_path.glob("users/*/*/records.duckdb.wal")
            assert log.stat().st_size > 4 * MB
            await h.services.users.checkpoint_idle()
            assert not log.exists() or log.stat().st_size < 100_000
            assert len(await ada.pull("facts")) == 80

    run(scenario)


def test_checkpoint_of_oldest_short_logs_keeps_eviction_order(tmp_path, monkeypatch):
    async def scenario():
        async with serve(tmp_path) as h:
            people = [await h.person() for _ in range(4)]
            for person in people:
                assert await send(person, "facts", (fact("f", value="x" * 100_000), None)) == []
            users = h.services.users
            order = list(users._entries)
            logs = {p.id: next(tmp_path.glob(f"users/*/{p.id}")) / "records.duckdb.wal" for p in people}
            monkeypatch.setattr("vademecum.engines.duckdb.user_stores.LOGS_MAX", 250_000)
            await users.checkpoint_idle()
            long = [log.exists() and log.stat().st_size > 100_000 for log in logs.values()]
            assert long == [False, False, True, True]
            assert list(users._entries) == order
            assert len(await people[0].pull("facts")) == 1

    run(scenario)


def test_missing_account_folder_does_not_stop_other_checkpoints(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada, bob = await h.person(), await h.person()
            for person in (ada, bob):
                rows = [fact(f"f{i}", value="x" * 500_000) for i in range(10)]
                assert await send(person, "facts", *((row, None) for row in rows)) == []
            folder = next(tmp_path.glob(f"users/*/{ada.id}"))
            log = next(tmp_path.glob(f"users/*/{bob.id}")) / "records.duckdb.wal"
            away = folder.rename(folder.with_name("away"))
            folder.write_text("no folder")
            try:
                await h.services.users.checkpoint_idle()
                assert not log.exists() or log.stat().st_size < 100_000
            finally:
                folder.unlink()
                away.rename(folder)

    run(scenario)


def test_maintenance_corrects_accounts_file_after_failed_change(tmp_path, monkeypatch):
    monkeypatch.setattr(maintenance, "CHECKPOINT_EVERY_S", 0.05)

    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            accounts = h.services.accounts

            def tokens_in_file(cursor):
                return cursor.execute(f"SELECT count(*) FROM {accounts._attached()}.main.tokens").fetchone()

            before = await h.services.instance.run(tokens_in_file)
            with capture_logs(), full(10), pytest.raises(Busy):
                await accounts.revoke_tokens(accounts.tokens_of(ada.id))

            async def is_corrected():
                return await h.services.instance.run(tokens_in_file) == (before[0] - 1,)

            await soon(is_corrected)

    run(scenario)
