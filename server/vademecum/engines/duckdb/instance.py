"""Manage the one DuckDB instance of the process. Users' files are attached to it under numbered names.

These rules follow from measurements: Each thread has its own cursor. Never use `USE`: the cursor breaks if another
thread detaches the used file. So every statement names `alias.main.table`. An alias is never reused. Results are
fetched completely before a file may be detached. Files are not compressed, so that rows that this process wrote are
read ten times faster and a byte scan can prove an erasure.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import structlog

from vademecum.engines.duckdb import damage
from vademecum.engines.duckdb.cursor import Cursor, Deadlines
from vademecum.engines.duckdb.threads import StuckError, ThreadPool
from vademecum.errors import Broken, VademecumError, is_full, not_now

T = TypeVar("T")
Connection = duckdb.DuckDBPyConnection
_log = structlog.get_logger("vademecum.duckdb")

# Only these optimizer passes run. The statements are simple, and the other fifty passes take a quarter of a push's time.
OPTIMIZERS = ("expression_rewriter", "filter_pushdown", "in_clause", "row_group_pruner", "statistics_propagation",
              "unused_columns")  # fmt: skip


# Maximum number of bytes that DuckDB caches while no statement runs; the operating system caches files, too.
CACHED_MAX = 8 * 2**20
CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,  # a statement runs in the calling thread; statements of different users run in parallel
    # In bytes. With DuckDB's default block size, the file of a small user would take four times the space, at the same
    # speed.
    "default_block_size": 16_384,
    "memory_limit": "2GB",
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "force_compression": "uncompressed",
    # High, because a checkpoint within a push takes 100 ms or more. Maintenance checkpoints idle files instead.
    "checkpoint_threshold": "256MB",
    "temp_directory": "",
}


def connect(path: Path | str) -> Connection:
    """Open a database with the server's DuckDB settings."""
    connection = duckdb.connect(path, config=CONFIG)
    found = connection.execute("SELECT name FROM duckdb_optimizers()").fetchall()
    unused = ",".join(name for (name,) in found if name not in OPTIMIZERS)
    connection.execute(f"SET disabled_optimizers = '{unused}'")
    return connection


PARSED_MAX = 1024  # maximum number of cached statements; each takes 3 kB
PARSED_LENGTH = 400  # maximum characters of a cached statement; longer statements have hundreds of values
_parsed: dict[str, duckdb.Statement] = {}


def parse_cached(cursor: Cursor, sql: str) -> duckdb.Statement:
    """Return the parsed statement of `sql`, cached for all cursors: parsing takes a tenth of the time of an INSERT."""
    found = _parsed.get(sql)
    if found is None:
        (found,) = cursor.extract_statements(sql)
        if len(_parsed) >= PARSED_MAX:
            _parsed.clear()
        if len(sql) <= PARSED_LENGTH:
            _parsed[sql] = found
    return found


RESTORE = "otherwise restore it from a backup with `vademecum restore`"


STUCK_MAX = 3  # this many stuck threads end the process: each may occupy a core, and nothing else stops it
REBUILD_S = 15.0  # maximum wait for running calls to end before DuckDB is started again


def end_process(reason: str) -> None:
    """End the process without cleaning up, which a stuck thread would block. Acknowledged commits are on the disk."""
    _log.critical("the server ends", reason=reason)
    os._exit(70)


class Instance:
    """One DuckDB instance for all files. The callbacks run in the event loop.

    `owner` is the id of the user whose file a call uses, or a name for another file. `on_damage(owner, reason)` is
    called when a call finds damage. `on_damage` returns False if the whole process must end. `on_rebuilt` is called
    after DuckDB was started again, which detaches all files. `end` ends the process.
    """

    _numbers = itertools.count(1)

    def __init__(self, threads: int | None = None, deadlines: Deadlines | None = None) -> None:
        self.deadlines = deadlines or Deadlines()
        self.on_damage: Callable[[str, str], bool] = lambda owner, reason: True
        self.on_rebuilt: list[Callable[[], None]] = []
        self.end: Callable[[str], None] = end_process
        self.shared_files = "the data folder"  # named in errors of statements without an account
        self._connection = connect(":memory:")
        self._attached: set[str] = set()  # aliases of the attached files
        self._threads = ThreadPool(
            threads or min(8, 2 + (os.cpu_count() or 2)), self._new_cursor, self._stuck
        )
        self._calls: set[asyncio.Future[Any]] = set()
        self._has_run = False  # whether a statement has run since the cache was last measured
        self._is_shrink_due = False
        self._shrinking: asyncio.Future[None] | None = None
        self._rebuilding: asyncio.Task[None] | None = None

    def _new_cursor(self) -> Cursor:
        return Cursor(self._connection.cursor(), self.deadlines)

    async def run(self, work: Callable[[Cursor], T], owner: str = "") -> T:
        """Run blocking `work` with the cursor of a thread. Calls with the same `owner` run one after another.

        Work that has started is not cancelled. Raises Busy if the disk, DuckDB or a deadline made the call fail, not
        the statement itself.
        """
        while (pause := self._shrinking or self._rebuilding) is not None:
            await asyncio.wait([pause])
        self._has_run = True
        task = self._threads.submit(work, owner)
        self._calls.add(task)
        task.add_done_callback(lambda ended: self._ran(owner, ended))
        try:
            return await asyncio.shield(task)  # the work continues if the caller is cancelled
        except (duckdb.Error, StuckError) as error:
            if not isinstance(error, StuckError) and not damage.is_passing(error):
                raise
            _log.error("a statement failed", exc_info=error)
            raise not_now() from error

    def _ran(self, owner: str, ended: asyncio.Future[T]) -> None:
        self._calls.discard(ended)
        error = None if ended.cancelled() else ended.exception()
        if isinstance(error, Broken):  # from `attach`: examine the error of DuckDB that caused it
            error = error.__cause__
        if isinstance(error, duckdb.Error):
            if (reason := damage.reason(error)) is not None:
                self.on_damage(owner, reason)
            if damage.may_invalidate(error) and self._rebuilding is None:
                self._rebuilding = asyncio.ensure_future(self._rebuild())
        if self._is_shrink_due:
            self._begin_to_shrink()

    def _stuck(self, owner: str) -> None:
        """Fence the user of a thread that does not return. End the process if there are too many such threads."""
        if not owner:  # a statement outside the pool: the server cannot start or stop
            self.end(self._shared_reason())
            return
        stuck = self._threads.stuck()  # report all of them, because the process may end
        reported = [
            self.on_damage(one, "a statement did not end within its deadline") for one in {owner, *stuck}
        ]
        if not all(reported):
            self.end(self._shared_reason())
        elif len(stuck) >= STUCK_MAX:
            self.end(f"{len(stuck)} statements do not end")

    def _shared_reason(self) -> str:
        return f"a statement that all accounts need does not end. Check the disk of {self.shared_files}"

    def stuck_count(self) -> int:
        return len(self._threads.stuck())

    def is_stuck(self, owner: str) -> bool:
        """Return whether a statement of this owner is stuck. The owner's file can then be neither detached nor replaced."""
        return owner in self._threads.stuck()

    async def _rebuild(self) -> None:
        """Replace a DuckDB instance that has shut down after an error such as a failed fsync. Files are reattached on use."""
        try:
            if not await asyncio.to_thread(self._is_invalid):
                return
            running = {*self._calls, *([self._shrinking] if self._shrinking is not None else [])}
            if running:
                await asyncio.wait(running, timeout=REBUILD_S)
            # The files stay locked until all calls have returned.
            if not all(call.done() for call in running) or self._calls or self.stuck_count():
                self.end("DuckDB must be restarted, but a statement does not end")
            await asyncio.to_thread(self._reconnect)
            for follow in self.on_rebuilt:
                follow()
            _log.warning("DuckDB was restarted after a fatal error")
        except Exception as error:
            _log.critical("DuckDB cannot be restarted", exc_info=error)
            self.end("DuckDB cannot be restarted")
        finally:
            self._rebuilding = None

    def _is_invalid(self) -> bool:
        try:
            self._connection.execute("SELECT 1").fetchall()
        except duckdb.Error:
            return True
        return False

    def _reconnect(self) -> None:
        self._threads.close_cursors()
        self._connection.close()
        self._attached.clear()
        self._connection = connect(":memory:")
        self._connection.execute("SELECT 1").fetchall()

    # -- memory -------------------------------------------------------------------------------------------------

    def release_memory(self) -> None:
        """Evict all but `CACHED_MAX` bytes of cached data as soon as no statement is running.

        DuckDB caches everything that it reads, up to its memory limit, and only a lower limit makes it evict. A running
        statement could fail under the lower limit, so new statements wait until the eviction is done.
        """
        self._is_shrink_due = self._has_run
        if self._is_shrink_due:
            self._begin_to_shrink()

    def _begin_to_shrink(self) -> None:
        if self._calls or self._shrinking is not None or self._rebuilding is not None:
            return
        self._is_shrink_due = self._has_run = False
        self._shrinking = self._threads.submit(lambda _: self._shrink())
        self._shrinking.add_done_callback(self._shrunk)

    def _shrunk(self, ended: asyncio.Future[None]) -> None:
        self._shrinking = None
        if not ended.cancelled() and (error := ended.exception()) is not None:
            _log.error("cached data could not be evicted", exc_info=error)

    def _shrink(self) -> None:
        cursor = self.cursor()
        used = dict(cursor.execute("SELECT tag, memory_usage_bytes FROM duckdb_memory()").fetchall())
        excess = used["BASE_TABLE"] - CACHED_MAX
        if excess <= 0:
            return
        try:
            # The statement fails if more memory is in use than was counted, but only after DuckDB has evicted what it
            # can.
            with suppress(duckdb.OutOfMemoryException):
                cursor.execute(f"SET memory_limit = '{sum(used.values()) - excess}B'")
        finally:
            cursor.execute(f"SET memory_limit = '{CONFIG['memory_limit']}'")

    def cursor(self) -> Cursor:
        return self._threads.current()

    @contextmanager
    def sized_deadline(self, path: Path) -> Iterator[None]:
        """Give statements inside the block a deadline that grows with the size of the file and its log."""
        size = _size(path) + _size(path.with_name(f"{path.name}.wal"))
        with self.cursor().allowing(self.deadlines.by_size(size)):
            yield

    def attach(self, path: Path, cure: str = RESTORE) -> str:
        """Attach a file that was closed cleanly and return its alias.

        Raises Broken, whose message ends with `cure`, or Busy if disk space, memory or file handles are lacking.
        """
        try:
            return self._attach(path)
        except duckdb.Error as error:
            raise _cannot_be_opened(path, error, cure) from error

    def attach_repaired(self, path: Path, cure: str = RESTORE) -> tuple[str, str | None]:
        """Attach a file that may not have been closed cleanly. Raises the same errors as `attach`.

        Return two values: the alias, and a sentence if a damaged write-ahead log was truncated, else None.
        """
        try:
            return self._attach(path), None
        except duckdb.Error as error:
            notice = truncate_damaged_wal(path, error)
            if notice is None:
                raise _cannot_be_opened(path, error, cure) from error
            return self.attach(path, cure), notice

    def _attach(self, path: Path) -> str:
        alias = f"u{next(self._numbers)}"
        with self.sized_deadline(path):
            self.cursor().execute(f"ATTACH '{_quoted(path)}' AS {alias} (TYPE duckdb)")
        self._attached.add(alias)
        return alias

    def detach(self, alias: str) -> None:
        """Detach a file. Raises duckdb.Error if its log cannot be checkpointed; the file is detached in any case."""
        if alias in self._attached:  # otherwise a restart of DuckDB has already detached it
            self._attached.discard(alias)
            self.cursor().execute(f"DETACH {alias}")

    def detach_safely(self, alias: str) -> None:
        """Detach a file. If its log cannot be checkpointed, log the error; the log file stays beside the file."""
        try:
            self.detach(alias)
        except duckdb.Error as error:
            _log.error("a log could not be checkpointed into its file", exc_info=error)

    def is_usable(self, alias: str) -> bool:
        """Return whether the file can be read.

        After a failed CHECKPOINT the file must be detached and attached again.
        """
        try:
            self.cursor().execute(f"SELECT name FROM {alias}.main.migrations LIMIT 1").fetchall()
        except duckdb.Error:
            return False
        return True

    def copy_database(self, source: str, target: str) -> None:
        self.cursor().execute(f"COPY FROM DATABASE {source} TO {target}")

    def close(self) -> None:
        self._is_shrink_due = False
        self._threads.close()
        self._threads.close_cursors()
        if not self.stuck_count():  # otherwise closing would wait for the stuck threads
            self._connection.close()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")


def _cannot_be_opened(path: Path, error: duckdb.Error, cure: str) -> VademecumError:
    if is_full(error) or damage.is_scarce(error):
        return not_now()
    return Broken(
        f"The file {path.name} of folder {path.parent.name} cannot be opened ({error}). If another process uses it, "
        f"stop that process; if the server may not read and write it, change its permissions; {cure}."
    )


def truncate_damaged_wal(path: Path, error: duckdb.Error) -> str | None:
    """Copy the log and truncate it at the byte where its replay failed. Every commit before that byte is recovered.

    Return a sentence about the repair, or None if the damage is not in the log.
    """
    wal = path.with_name(path.name + ".wal")
    found = re.search(r"byte position (\d+)", str(error))
    # A crash during a rewrite may leave the log of the old file beside the new file, which already contains the commits
    # of the log.
    is_of_another_file = "WAL does not match database file" in str(error)
    if not (found or is_of_another_file) or not wal.exists():
        return None
    damaged_copy = wal.with_name(wal.name + ".damaged")
    shutil.copy2(wal, damaged_copy)
    position = int(found.group(1)) if found else 0
    size = wal.stat().st_size
    with wal.open("r+b") as file:
        file.truncate(position)
        os.fsync(file.fileno())
    return (
        f"The log {wal.name} of folder {path.parent.name} was damaged and was cut at byte {position} of {size}. The "
        f"commits before that are safe. The complete log is kept as {damaged_copy.name} until the next erasure."
    )
