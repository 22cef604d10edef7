"""Recover the file of a fenced account in a separate process, which is killed if DuckDB hangs on a damaged file.

`python -m vademecum.engines.duckdb.recovery FILE NEW` reads every row of FILE and its log, and writes them to NEW. So
data that a failed fsync left only in memory is written again.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import duckdb
import structlog

from vademecum.engines.duckdb.cursor import Deadlines
from vademecum.engines.duckdb.fence import Fences
from vademecum.engines.duckdb.instance import Connection, connect, truncate_damaged_wal
from vademecum.engines.duckdb.paths import RECORDS_FILE
from vademecum.engines.duckdb.user_database import publish_file, staged
from vademecum.engines.duckdb.verification import verify_all

RETRY_S = 60.0  # wait before the next attempt; doubled after each attempt
RETRY_MAX_S = 3600.0
STABLE_S = 600.0  # an account that has worked for this long starts again with the shortest wait
_log = structlog.get_logger("vademecum.recovery")


class Recovery:
    """Recovers the files of fenced accounts.

    `detached` returns a context manager that keeps a user's file closed and yields the user's folder.
    """

    def __init__(self, fences: Fences, detached: Callable[[str], AbstractAsyncContextManager[Path]]) -> None:
        self._fences = fences
        self._detached = detached
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._attempts: dict[str, int] = {}  # number of consecutive attempts by user id
        self._recovered_at: dict[str, float] = {}  # time of the last success by user id (monotonic)
        self._not_before: dict[str, float] = {}  # earliest next attempt by user id (monotonic)
        self._turn = asyncio.Semaphore(1)
        self._is_closing = False
        self._children: set[asyncio.subprocess.Process] = set()

    def kill(self) -> None:
        """Kill the processes that recover files, because this process is about to end."""
        for child in self._children:
            with contextlib.suppress(ProcessLookupError):
                child.kill()

    def begin(self, user_id: str) -> None:
        """Try to recover a fenced account in the background, unless the last attempt was too recent.

        A success also delays the next attempt, so that a file that fails again at once is not copied repeatedly.
        """
        due = time.monotonic() >= self._not_before.get(user_id, 0.0)
        if due and user_id not in self._tasks and not self._is_closing:
            task = self._tasks[user_id] = asyncio.ensure_future(self._recover(user_id))
            task.add_done_callback(lambda _: self._tasks.pop(user_id, None))

    async def close(self) -> None:
        self._is_closing = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _recover(self, user_id: str) -> None:
        recovered_at = self._recovered_at.pop(user_id, None)
        if recovered_at is not None and time.monotonic() - recovered_at > STABLE_S:
            self._attempts.pop(user_id, None)
        try:
            async with self._turn, self._detached(user_id) as folder:
                if self._fences.reason(user_id) is None:  # nothing to recover: a restore has lifted the fence
                    return
                await recover(folder / RECORDS_FILE, self._children)
                self._fences.lift(user_id)
            self._recovered_at[user_id] = time.monotonic()
            self._delay_next_attempt(user_id)
        except Exception as error:
            delay_s = self._delay_next_attempt(user_id)
            _log.error(
                "a fenced account could not be recovered", account=user_id, retry_s=delay_s, exc_info=error
            )

    def _delay_next_attempt(self, user_id: str) -> float:
        """Delay the next attempt of this user, and return the delay in seconds."""
        attempts = self._attempts[user_id] = self._attempts.get(user_id, 0) + 1
        delay_s = min(RETRY_S * 2.0 ** min(attempts - 1, 10), RETRY_MAX_S)
        self._not_before[user_id] = time.monotonic() + delay_s
        return delay_s


async def recover(path: Path, children: set[asyncio.subprocess.Process]) -> None:
    """Replace a detached file with a complete copy. A damaged log is truncated, as when a file is opened.

    `children` contains the child process while it runs. Raises OSError.
    """
    log = path.with_name(f"{path.name}.wal")
    size = sum(one.stat().st_size for one in (path, log) if one.exists())
    with staged(path) as new:
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            __name__,
            str(path),
            str(new),
            stdin=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        children.add(child)
        try:
            async with asyncio.timeout(2 * Deadlines().by_size(size)):
                _, stderr = await child.communicate()
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
            await child.wait()
            raise
        finally:
            children.discard(child)
        if child.returncode != 0:
            raise OSError(
                stderr.decode(errors="replace").strip().rpartition("\n")[2] or "the process was killed"
            )
        if stderr:
            _log.warning("a log was cut", file=str(path), notice=stderr.decode(errors="replace").strip())
        await asyncio.to_thread(_publish, new, path, log)


def _publish(new: Path, path: Path, log: Path) -> None:
    publish_file(new, path)
    log.unlink(missing_ok=True)


def _copy(path: str, new: str) -> None:
    target = new.replace("'", "''")
    with connect(":memory:") as connection:
        _attach_source(connection, Path(path))
        verify_all(connection, "source")
        connection.execute(f"ATTACH '{target}' AS target")
        connection.execute("COPY FROM DATABASE source TO target")
        if Path(f"{path}.wal.damaged").exists():
            # Commits of the truncated log may be missing. Delete the epoch, so that the next opening starts a new one
            # and devices upload the missing rows. Look for the `.damaged` file instead of a notice, because an earlier
            # attempt may have truncated the log and failed later.
            connection.execute("DELETE FROM target.main.meta WHERE name = 'epoch'")
        connection.execute("DETACH target")
    if Path(f"{new}.wal").exists():
        raise OSError(f"{new} was not written completely")


def _attach_source(connection: Connection, path: Path) -> None:
    """Attach the file read-only, so that it stays unchanged if it cannot be read.

    Print a notice if its log is truncated.
    """
    source = str(path).replace("'", "''")
    statement = f"ATTACH '{source}' AS source (TYPE duckdb, READ_ONLY)"
    try:
        connection.execute(statement)
    except duckdb.Error as error:
        notice = truncate_damaged_wal(path, error)
        if notice is None:
            raise
        print(notice, file=sys.stderr)
        connection.execute(statement)


if __name__ == "__main__":
    try:
        _copy(*sys.argv[1:])
    except Exception as error:
        sys.exit(f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}")
