"""The engine's threads: deadlines of statements, one thread per account, and threads that do not return."""

from __future__ import annotations

import asyncio
import itertools
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from vademecum.engines.duckdb import cursor as cursors
from vademecum.engines.duckdb import instance as instances
from vademecum.engines.duckdb.cursor import Cursor, Deadlines
from vademecum.engines.duckdb.instance import Instance
from vademecum.errors import Busy
from vademecum.settings import Settings

NUMBERS = itertools.count()
ENDLESS = "SELECT sum(range) FROM range(10000000000000)"  # needs hours and little memory


def one(cursor: Cursor) -> int:
    (number,) = cursor.execute("SELECT 1").fetchone()
    return int(number)


def endless(cursor: Cursor) -> list[object]:
    return cursor.execute(ENDLESS).fetchall()


@asynccontextmanager
async def opened(threads: int = 2, **limits: float) -> AsyncIterator[Instance]:
    instance = Instance(threads, Deadlines(**limits))
    try:
        async with asyncio.timeout(60):
            yield instance
    finally:
        await asyncio.to_thread(instance.close)


def deaf(gate: threading.Event) -> Callable[[Cursor], object]:
    """Return a statement that no interrupt ends, because DuckDB waits inside a Python function."""

    def wait(_: int) -> int:
        gate.wait(60)
        return 1

    def work(cursor: Cursor) -> object:
        name = f"wait_{next(NUMBERS)}"
        cursor._raw.create_function(name, wait, ["BIGINT"], "BIGINT")  # type: ignore[list-item, arg-type]
        return cursor.execute(f"SELECT {name}(1)").fetchall()

    return work


def test_read_is_interrupted_only_after_its_deadline() -> None:
    async def scenario() -> None:
        async with opened(1, read_s=0.2) as instance:
            with pytest.raises(Busy):
                await instance.run(endless, "ada")
            assert [await instance.run(one, "ada") for _ in range(20)] == [1] * 20

    asyncio.run(scenario())


def test_write_past_its_deadline_is_rolled_back() -> None:
    async def scenario() -> None:
        def write(cursor: Cursor) -> None:
            cursor.execute("BEGIN")
            try:
                cursor.execute("INSERT INTO t VALUES (1)")
                cursor.execute(f"INSERT INTO t {ENDLESS}")
            finally:
                cursor.execute("ROLLBACK")

        async with opened(1, write_s=0.2) as instance:
            await instance.run(lambda c: c.execute("CREATE TABLE t (x HUGEINT)").fetchall())
            with pytest.raises(Busy):
                await instance.run(write)
            assert await instance.run(lambda c: c.execute("SELECT * FROM t").fetchall()) == []

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("statements", "interrupted"),
    [
        (["SELECT 1"], True),
        (["BEGIN", "INSERT INTO t VALUES (1)"], True),
        (["BEGIN", "INSERT INTO t VALUES (1)", "COMMIT"], False),
        (["INSERT INTO t VALUES (1)"], False),
        (["CHECKPOINT"], False),
    ],
)
def test_commit_is_never_interrupted(statements: list[str], interrupted: bool) -> None:
    """The deadline check runs during the last statement, long after its deadline."""

    class Raw:
        interrupts = 0

        def execute(self, statement: str) -> None:
            if statement is statements[-1]:
                cursor.check(float("inf"))

        def interrupt(self) -> None:
            self.interrupts += 1

    raw = Raw()
    cursor = Cursor(raw, Deadlines())  # type: ignore[arg-type]
    for statement in statements:
        cursor.execute(statement)
    cursor.check(float("inf"))  # even now, because no statement is running
    assert raw.interrupts == interrupted


def test_default_write_deadline_grows_with_database_size() -> None:
    settings = Settings()
    deadlines = Deadlines(settings.statement_read_s, settings.statement_write_s)
    assert (deadlines.read_s, deadlines.by_size(0), deadlines.by_size(60 * 2**20)) == (10, 30, 90)


def test_sized_deadline_counts_file_and_log_and_ends_with_its_block(tmp_path: Path) -> None:
    """1 MB of file and log allow one second more. DuckDB runs an endless statement until it is interrupted."""
    path = tmp_path / "records.duckdb"
    for name in (path, tmp_path / "records.duckdb.wal"):
        with name.open("wb") as file:
            file.truncate(2**19)

    async def scenario() -> None:
        async with opened(1, read_s=0.1, write_s=0.1) as instance:

            def sized(cursor: Cursor) -> list[object]:
                with instance.sized_deadline(path):
                    return endless(cursor)

            waited = []
            for work in (sized, endless):
                began = time.monotonic()
                with pytest.raises(Busy):
                    await instance.run(work, "ada")
                waited.append(time.monotonic() - began)
            assert waited[0] >= 1.1 and waited[1] < waited[0]

    asyncio.run(scenario())


def test_calls_for_one_account_use_one_thread() -> None:
    async def scenario() -> None:
        gate = threading.Event()
        async with opened(2) as instance:
            waiting = [asyncio.create_task(instance.run(lambda _: gate.wait(60), "ada")) for _ in range(8)]
            try:
                assert await instance.run(one, "bob") == 1
            finally:
                gate.set()
            assert await asyncio.gather(*waiting) == [True] * 8

    asyncio.run(scenario())


def test_stuck_thread_is_replaced_and_its_account_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cursors, "GRACE_S", 0.2)

    async def scenario() -> None:
        gate, damaged = threading.Event(), []
        async with opened(1, read_s=0.2) as instance:
            instance.on_damage = lambda owner, reason: damaged.append(owner) is None
            calls = [asyncio.create_task(instance.run(work, "ada")) for work in (deaf(gate), one)]
            for call in calls:
                with pytest.raises(Busy):
                    await call
            assert set(damaged) == {"ada"} and instance.is_stuck("ada")
            with pytest.raises(Busy):
                await instance.run(one, "ada")
            assert await instance.run(one, "bob") == 1
            gate.set()
            while instance.is_stuck("ada"):
                await asyncio.sleep(0.01)
            assert await instance.run(one, "ada") == 1

    asyncio.run(scenario())


def test_too_many_stuck_threads_end_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cursors, "GRACE_S", 0.2)

    async def scenario() -> None:
        gate = threading.Event()
        async with opened(1, read_s=0.2) as instance:
            ended = asyncio.get_running_loop().create_future()
            instance.end = ended.set_result
            try:
                calls = [instance.run(deaf(gate), owner) for owner in ("ada", "bob", "carl")]
                answers = await asyncio.gather(*calls, return_exceptions=True)
                assert [type(one) for one in answers] == [Busy] * 3
                assert "do not end" in await ended
            finally:
                gate.set()

    asyncio.run(scenario())


def test_rebuild_waits_until_memory_is_released(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        gate, events = threading.Event(), []
        async with opened(1) as instance:
            monkeypatch.setattr(instance, "_is_invalid", lambda: True)
            monkeypatch.setattr(instance, "_reconnect", lambda: events.append("reconnected"))
            monkeypatch.setattr(instance, "_shrink", lambda: (gate.wait(60), events.append("shrunk")))
            await instance.run(one)
            instance.release_memory()
            rebuild = asyncio.create_task(instance._rebuild())
            done, _ = await asyncio.wait([rebuild], timeout=0.2)
            gate.set()
            await rebuild
            assert not done and events == ["shrunk", "reconnected"]

    asyncio.run(scenario())


class Ended(BaseException):
    """Stands for the end of the process."""


def end_of_test(reason: str) -> None:
    raise Ended(reason)


def test_rebuild_ends_the_process_if_a_statement_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instances, "REBUILD_S", 0.2)

    async def scenario() -> None:
        gate = threading.Event()
        async with opened(2) as instance:
            instance.end = end_of_test
            monkeypatch.setattr(instance, "_is_invalid", lambda: True)
            running = asyncio.create_task(instance.run(deaf(gate), "ada"))
            try:
                await asyncio.sleep(0)
                with pytest.raises(Ended, match="a statement does not end"):
                    await instance._rebuild()
            finally:
                gate.set()
            await running

    asyncio.run(scenario())


def test_process_ends_with_status_70_and_the_reason() -> None:
    command = "from vademecum.engines.duckdb.instance import end_process; end_process('the reason')"
    ended = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=False)
    assert ended.returncode == 70 and "the reason" in ended.stdout + ended.stderr
