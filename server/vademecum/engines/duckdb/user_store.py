"""Read and write the records of one user.

Code that accesses records receives a store that is bound to its user, so it cannot reach another user's records. There
is one writer at a time. Writes that arrive during a commit are committed together after it. A write returns after
COMMIT.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import msgspec
import structlog
from msgspec.structs import replace

from vademecum.engines.duckdb import ingested_events, job_table, segments
from vademecum.engines.duckdb.cursor import Cursor
from vademecum.engines.duckdb.damage import ReplacedError
from vademecum.engines.duckdb.erasure_ledger import ErasureLedger
from vademecum.engines.duckdb.instance import Instance
from vademecum.engines.duckdb.paths import RECORDS_FILE, file_identity
from vademecum.engines.duckdb.segment_index import SegmentName, SegmentPlan
from vademecum.engines.duckdb.segments import (
    NewChecksum,
    RowLocations,
    StoredRowHead,
)
from vademecum.engines.duckdb.user_database import (
    ERASURE_DUE,
    UserDatabase,
    needs_erasure,
    new_id_key,
)
from vademecum.errors import Broken, not_now
from vademecum.fair_queue import activity
from vademecum.model.memory.jobs import Job, StoredJobs
from vademecum.model.records.store_interface import (
    Entry,
    StoreHooks,
    UserStore,
    VersionConflict,
    retry_conflicts,
)
from vademecum.model.schema.collections import Collection
from vademecum.model.sync.transaction import Change, RecordsMeta, RowIndex, Transaction, purges_tombstones

T = TypeVar("T")
GROUP_MAX = 8  # maximum number of writes per commit; more would block the GIL and the event loop for too long
COMPACT_BATCH = 32  # maximum number of segments that one commit compacts
CHECKSUM_BATCH = 32  # maximum number of segments that get checksums in one commit
READ_ATTEMPTS = 8  # after this many failed attempts a read is queued as a write
_MISSING_ROWS = (
    "Some rows of this account are missing from its file. Nothing was changed. Run `vademecum doctor` on the "
    "server."
)
MOVED_LOG = ".wal.moved"
_log = structlog.get_logger("vademecum.store")


def _live_bodies(tx: Transaction, keys: Sequence[str]) -> dict[str, bytes]:
    """Map the keys of existing rows to their bodies.

    No commit can move the rows meanwhile, because the caller is a write.
    """
    bodies = {}
    for key in keys:
        if tx.head(key) is not None:
            with suppress(KeyError):  # skip a row that the file lacks
                bodies[key] = tx.body(key)
    return bodies


async def _attempts() -> AsyncIterator[None]:
    """Yield once per read attempt, with growing pauses.

    An attempt fails if a commit moves rows between lookup and read.
    """
    for attempt in range(READ_ATTEMPTS):
        yield
        await asyncio.sleep(attempt / 1000)


@dataclass(frozen=True, slots=True)
class _Write:
    """A queued write. Its commit also compacts the segments in `compact` and stores `new_checksums`."""

    work: Callable[[Transaction], Any]
    answer: asyncio.Future[Any]
    compact: Sequence[SegmentName]
    new_checksums: Sequence[NewChecksum] = ()


class DuckDBUserStore(UserStore):
    """Reads and writes of one user. `pins` keeps the file attached while an operation is in progress.

    While `is_unusable` is true, the file must be attached again before it is used.
    """

    def __init__(
        self,
        user_id: str,
        folder: Path,
        instance: Instance,
        opened: UserDatabase,
        collections: Mapping[str, Collection],
        ledger: ErasureLedger,
        clock: Callable[[], str],
        hooks: StoreHooks,
        raise_mark: Callable[[int], None],
    ) -> None:
        self.user_id = user_id
        self.folder = folder
        self.collections = collections
        self.pins = 0
        self.is_unusable = False
        self.idle = asyncio.Event()
        self.idle.set()
        self._identity = file_identity(folder / RECORDS_FILE)
        self._opened = opened
        self._instance = instance
        self._ledger = ledger
        self._clock = clock
        self._hooks = hooks
        self._raise_mark = raise_mark
        self._invalid: set[SegmentName] = set()  # segments with an invalid row; they get no checksum
        self._queue: list[_Write] = []
        self._writer: asyncio.Task[None] | None = None

    @property
    def alias(self) -> str:
        return self._opened.alias

    @property
    def row_index(self) -> RowIndex:
        return self._opened.row_index

    @property
    def jobs(self) -> StoredJobs:
        return self._opened.jobs

    @property
    def meta(self) -> RecordsMeta:
        return self._opened.meta

    @property
    def mac_key(self) -> str:
        return self._opened.mac_key

    # -- reading ------------------------------------------------------------------------------------------------

    def entries_after(self, collection: str, seq: int, limit: int) -> list[Entry]:
        return self._opened.segment_index.after(collection, seq, limit, self.row_index)

    def latest_seq(self, collection: str) -> int:
        seqs = self._opened.segment_index[collection].seqs
        return seqs[-1] if seqs else 0

    async def read_bodies(self, keys: Sequence[str]) -> dict[str, bytes]:
        """Return the bodies of these rows, as the interface defines. Raises Broken if the file lacks a row."""
        bodies = self._opened.body_cache.find(keys, self.row_index)
        if bodies:
            await asyncio.sleep(0)  # let other tasks run, even if the caller loops over cached reads
        async for _ in _attempts():
            missing = [k for k in keys if k not in bodies and k in self.row_index.rows]
            if not missing:
                return bodies
            bodies |= await self._read(self._opened.locate_rows(missing))
        # Read the remaining rows in a write. Each attempt may have waited for a commit that then moved its rows.
        missing = [k for k in keys if k not in bodies and k in self.row_index.rows]
        bodies |= await self.write(lambda tx: _live_bodies(tx, missing))
        if any(k not in bodies and k in self.row_index.rows for k in missing):
            raise Broken(_MISSING_ROWS)
        return bodies

    async def _read(self, locations: RowLocations) -> dict[str, bytes]:
        """Read rows in a thread.

        `locations` must be computed in the event loop, because commits change the indexes in the event loop.
        """
        segment_index = self._opened.segment_index
        return await self._run(lambda c: segments.read_bodies(c, self.alias, locations, segment_index))

    async def list_jobs(self, limit: int) -> tuple[list[Job], dict[str, int]]:
        return await self._run(lambda c: job_table.list_jobs(c, self.alias, limit))

    async def has_ingested_events(self) -> bool:
        return await self._run(lambda c: ingested_events.is_any(c, self.alias))

    # -- writing ------------------------------------------------------------------------------------------------

    async def _try_write(self, work: Callable[[Transaction], T]) -> T:
        return await self._enqueue(work)

    async def _enqueue(
        self,
        work: Callable[[Transaction], T],
        compact: Sequence[SegmentName] = (),
        new_checksums: Sequence[NewChecksum] = (),
    ) -> T:
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._queue.append(_Write(work, answer, compact, new_checksums))
        if self._writer is None:
            self.pin()
            self._writer = asyncio.create_task(self._drain())
        return await answer

    async def _drain(self) -> None:
        try:
            while self._queue:
                group = [write for write in self._queue[:GROUP_MAX] if not write.answer.cancelled()]
                del self._queue[:GROUP_MAX]
                began = time.monotonic()
                await self._write_group(group)
                if self._queue and (rest_s := activity.rest_s(self.user_id, time.monotonic() - began)):
                    await asyncio.sleep(rest_s)
        finally:
            self._writer = None
            self.unpin()

    async def _write_group(self, group: list[_Write]) -> None:
        try:
            tx, plans, results = await self._attempt(lambda c: self._commit(c, group))
        except BaseException as error:
            for write in group:
                if not write.answer.done():
                    write.answer.set_exception(error)
            if not isinstance(error, Exception):
                raise
            return
        if plans is not None:
            self._opened.apply_commit(tx, plans)
        for write, result in zip(group, results, strict=True):
            if write.answer.done():
                continue
            if isinstance(result, Exception):
                write.answer.set_exception(result)
            else:
                write.answer.set_result(result)
        if tx.changes:
            self._announce(list(tx.changes.values()))

    def _announce(self, changes: list[Change]) -> None:
        """Notify subscribers of a commit. Errors are only logged, because the commit is already acknowledged."""
        try:
            self._hooks.on_commit(self, changes)
        except Exception as error:
            _log.error("subscribers could not be notified of a commit", exc_info=error)

    def _commit(
        self, cursor: Cursor, group: list[_Write]
    ) -> tuple[Transaction, dict[str, SegmentPlan] | None, list[Any]]:
        tx = self._opened.begin_transaction(cursor, self.collections, self._clock())
        results: list[Any] = []
        for write in group:
            undo = tx.savepoint()
            try:
                results.append(write.work(tx))
            except duckdb.Error:  # the file cannot be read: fail all writes of the group
                raise
            except Exception as error:
                undo()
                results.append(error)
        self._hooks.before_commit(tx)
        forgotten = tx.meta.forgotten_at if tx.meta.forgotten_at != self.forgotten_at else ""
        if forgotten:  # use a new key, because ids of tombstones must not disclose what was forgotten
            tx.meta = replace(tx.meta, id_key=new_id_key())
        meta = {}
        if purges_tombstones(tx.changes.values()) or tx.meta.epoch != self.epoch:
            # Store the last seq, because the remaining rows may all have lower ones and no seq may be assigned twice.
            meta["seq_floor"] = str(tx.seq)
        if not self._opened.erasure_due and needs_erasure(tx):
            meta[ERASURE_DUE] = "1"
        compact = {name for write in group for name in write.compact}
        if file_identity(self.folder / RECORDS_FILE) != self._identity:
            raise ReplacedError
        new_checksums = [add_checksums for write in group for add_checksums in write.new_checksums]
        try:
            plans = self._opened.commit(cursor, tx, meta, compact, new_checksums)
        except duckdb.TransactionException as error:
            if "conflict" not in str(error).lower():
                raise
            raise VersionConflict from error
        if plans is not None:
            self._append_to_ledger(tx, forgotten)
            self._raise_mark(tx.seq if "seq_floor" in meta else tx.highest_stored_seq)
        return tx, plans, results

    def _append_to_ledger(self, tx: Transaction, forgotten: str) -> None:
        """Append to the erasure ledger.

        If the append fails, the commit stays valid. The missing lines are added at the next append, or when the account
        is next opened.
        """
        try:
            self._ledger.append(tx.changes.values(), forgotten)
        except OSError as error:
            _log.error("the erasure ledger could not be written", exc_info=error)

    async def sync_ledger(self) -> None:
        await self._run(lambda _: self._ledger.sync())

    async def compact(self) -> None:
        """Rewrite all segments that contain stale rows, a batch at a time.

        Rows that become stale during this call are left to the next one. Otherwise continuous edits could keep the call
        from ending.
        """
        segments_to_compact = self._opened.segment_index.segments_to_compact()
        for at in range(0, len(segments_to_compact), COMPACT_BATCH):
            batch = segments_to_compact[at : at + COMPACT_BATCH]
            await retry_conflicts(partial(self._enqueue, lambda tx: None, batch))

    async def add_checksums(self) -> bool:
        """Add checksums to a batch of segments whose rows are all valid. Return False if there is no such segment."""
        remaining = [
            segment
            for segment in self._opened.segment_index.without_checksum()
            if segment not in self._invalid
        ]
        batch = set(remaining[:CHECKSUM_BATCH])
        if not batch:
            return False
        runs = self._opened.segment_index.runs(batch)
        new_checksums, invalid = await self._run(
            lambda c: segments.compute_checksums(c, self.alias, batch, runs, self._is_valid)
        )
        for name, first in invalid:
            _log.error("a segment has an invalid row", account=self.user_id, collection=name, segment=first)
        self._invalid.update(invalid)
        await retry_conflicts(partial(self._enqueue, lambda tx: None, (), new_checksums))
        return True

    def _is_valid(self, name: str, head: StoredRowHead, body: bytes) -> bool:
        """Return whether a stored row matches its head and, if it is live, the schema."""
        try:
            row = msgspec.json.decode(body)
            if row["id"] != head.id or row.get("_deleted", False) != head.deleted:
                return False
            if not head.deleted:
                self.collections[name].validate(row)
        except (msgspec.MsgspecError, KeyError, TypeError, AttributeError, ValueError):
            return False
        return True

    # -- staying attached ---------------------------------------------------------------------------------------

    async def _run(self, work: Callable[[Cursor], T]) -> T:
        """Run blocking `work`. The file stays attached until the work ends, even if the caller is cancelled."""
        self.pin()
        task = asyncio.ensure_future(self._attempt(work))
        task.add_done_callback(lambda _: self.unpin())
        return await asyncio.shield(task)

    async def _attempt(self, work: Callable[[Cursor], T]) -> T:
        def attempt(cursor: Cursor) -> T:
            if self.is_unusable:
                raise not_now()
            try:
                return work(cursor)
            except duckdb.Error:
                self.is_unusable = not self._instance.is_usable(self.alias)
                raise

        return await self._instance.run(attempt, self.user_id)

    def pin(self) -> None:
        self.pins += 1
        self.idle.clear()

    def unpin(self) -> None:
        self.pins -= 1
        if self.pins == 0:
            self.idle.set()

    def detach_safely(self) -> None:
        """Detach the file as `Instance.detach_safely` does. Blocks.

        DETACH deletes the log by its path. If another file has replaced this one, the log of that file is moved away
        during the DETACH.
        """
        path = self.folder / RECORDS_FILE
        log, moved = (path.with_name(f"{RECORDS_FILE}{end}") for end in (".wal", MOVED_LOG))
        is_moved = file_identity(path) != self._identity and log.exists()
        with self._instance.sized_deadline(path):
            if is_moved:
                log.replace(moved)
            try:
                self._instance.detach_safely(self.alias)
            finally:
                if is_moved:
                    moved.replace(log)

    async def checkpoint(self) -> None:
        """Checkpoint the write-ahead log into the file. Pushes wait until this is done."""

        def run_checkpoint(cursor: Cursor) -> None:
            with self._instance.sized_deadline(self.folder / RECORDS_FILE):
                cursor.execute(f"CHECKPOINT {self.alias}")

        await self._run(run_checkpoint)


def remove_leftovers(data: Path) -> None:
    """Delete incomplete files that a crash left behind, and move logs back that `detach_safely` had moved away.

    Called once, when the server starts.
    """
    users = data / "users"
    for moved in users.glob(f"*/*/{RECORDS_FILE}{MOVED_LOG}"):
        log = moved.with_name(f"{RECORDS_FILE}.wal")
        if not log.exists():
            moved.replace(log)
    for pattern in ("*.new", "*.new.wal", "*.tmp"):
        for partial_file in users.glob(f"*/*/{pattern}"):
            try:
                partial_file.unlink(missing_ok=True)
            except OSError as error:  # only for one user, and opening the account reports it if necessary
                path = str(partial_file)
                _log.error("a partial file of a crash could not be deleted", path=path, exc_info=error)
