"""Read and write the records of one user.

Code that accesses records receives a store that is bound to its user, so it cannot reach another user's records. There
is one writer at a time. Writes that arrive during a commit are committed together next. Callers are answered after COMMIT.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
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
from vademecum.engines.duckdb.segments import (
    Entry,
    NewChecksum,
    RowLocations,
    SegmentName,
    SegmentPlan,
    StoredRowHead,
)
from vademecum.engines.duckdb.user_database import (
    ERASURE_DUE,
    SEQ_JUMP,
    UserDatabase,
    needs_erasure,
    new_epoch,
    new_id_key,
)
from vademecum.errors import Broken, not_now
from vademecum.fair_queue import activity
from vademecum.model.memory import job_triggers
from vademecum.model.memory.jobs import Job
from vademecum.model.schema.collections import Collection
from vademecum.model.sync.quotas import Usage
from vademecum.model.sync.transaction import WAITING, Change, RowIndex, Transaction, purges_tombstones

T = TypeVar("T")
OnCommit = Callable[["UserStore", list[Change]], None]
GROUP_MAX = 8  # writes in one commit: more would hold the GIL and the event loop for long at a time
COMPACT_BATCH = 32  # segments
CHECKSUM_BATCH = 32  # segments
TURNS_AT_ONCE = 256
READ_ATTEMPTS = 8  # then a read takes the writer's turn
_LOST = "Rows of this account cannot be found in its file. Nothing was changed. Have `vademecum doctor` look at it."
MOVED_LOG = ".wal.moved"
_log = structlog.get_logger("vademecum.store")


def _live_bodies(tx: Transaction, keys: Sequence[str]) -> dict[str, bytes]:
    """Return the bodies of the rows that exist in the writer's turn, in which nothing moves."""
    found = {}
    for key in keys:
        if tx.head(key) is not None:
            with suppress(KeyError):  # it is missing in the file
                found[key] = tx.body(key)
    return found


async def _attempts() -> AsyncIterator[None]:
    """Yield once for each read attempt, with a growing pause: a commit may move rows between lookup and read."""
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


class UserStore:
    """Reads and writes of one user. `pins` keeps the file attached while an operation is in progress. While `is_unusable`
    is set, the file must be attached again before it is used."""

    def __init__(
        self,
        user_id: str,
        folder: Path,
        instance: Instance,
        opened: UserDatabase,
        collections: Mapping[str, Collection],
        ledger: ErasureLedger,
        clock: Callable[[], str],
        on_commit: OnCommit,
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
        self._on_commit = on_commit
        self._raise_mark = raise_mark
        self._invalid: set[SegmentName] = set()  # segments with an invalid row; they get no checksum
        self._queue: list[_Write] = []
        self._writer: asyncio.Task[None] | None = None

    @property
    def alias(self) -> str:
        return self._opened.alias

    @property
    def epoch(self) -> str:
        return self._opened.meta.epoch

    @property
    def forgotten_at(self) -> str:
        """Return when the user last forgot everything, or an empty string."""
        return self._opened.meta.forgotten_at

    @property
    def row_index(self) -> RowIndex:
        return self._opened.row_index

    # -- checkpoints --------------------------------------------------------------------------------------------

    def was_never_assigned(self, seq: int) -> bool:
        """Return whether no row of this file can have had `seq` in this epoch."""
        return self._opened.meta.was_never_assigned(seq, self.seq)

    def checkpoint_id(self, lwt: int) -> str:
        """Return the `id` of a checkpoint: `{epoch}.{mac}`, or the epoch alone if `lwt` was never given out."""
        return self.epoch if self.was_never_assigned(lwt) else f"{self.epoch}.{self._mac(lwt)}"

    def proves_rollback(self, lwt: int, checkpoint_id: str) -> bool:
        """Return whether this server gave out the checkpoint in this epoch and its file knows nothing of it."""
        if not self.was_never_assigned(lwt):
            return False
        return hmac.compare_digest(checkpoint_id.encode(), f"{self.epoch}.{self._mac(lwt)}".encode())

    def _mac(self, lwt: int) -> str:
        digest = hmac.digest(self._opened.mac_key.encode(), f"{self.epoch}:{lwt}".encode(), "sha256")
        return base64.urlsafe_b64encode(digest[:15]).decode()

    # -- reading ------------------------------------------------------------------------------------------------

    @property
    def seq(self) -> int:
        return self.row_index.seq

    @property
    def usage(self) -> Usage:
        return self.row_index.totals.usage

    def is_live(self, key: str) -> bool:
        head = self.row_index.rows.get(key)
        return head is not None and not head.deleted and head.seq > 0

    def entries_after(self, collection: str, seq: int, limit: int) -> list[Entry]:
        """Return (seq, key) of at most `limit` rows after `seq`, with tombstones, in the order of seq."""
        return self._opened.segment_index.after(collection, seq, limit, self.row_index)

    def latest_seq(self, collection: str) -> int:
        """Return the highest seq that a row of this collection has taken, or 0."""
        seqs = self._opened.segment_index[collection].seqs
        return seqs[-1] if seqs else 0

    async def read_page(self, collection: str, after: int, limit: int) -> list[tuple[int, bytes]]:
        """Return (seq, JSON) of the next rows. The JSON may be newer than the seq."""
        entries = self.entries_after(collection, after, limit)
        found = await self.read_bodies([key for _, key in entries])
        return [(seq, found[key]) for seq, key in entries]

    async def read_bodies(self, keys: Sequence[str]) -> dict[str, bytes]:
        """Return the current bodies of those keys that exist. Raises Broken if the file lacks a row."""
        found = self._opened.body_cache.find(keys, self.row_index)
        if found:
            await asyncio.sleep(0)  # a caller that loops must yield to others, as when the file is read
        async for _ in _attempts():
            missing = [k for k in keys if k not in found and k in self.row_index.rows]
            if not missing:
                return found
            found |= await self._read(self._opened.locate_rows(missing))
        # A user's calls run one after the other, so each read may have come behind a commit that moved the rows.
        missing = [k for k in keys if k not in found and k in self.row_index.rows]
        found |= await self.write(lambda tx: _live_bodies(tx, missing))
        if any(k not in found and k in self.row_index.rows for k in missing):
            raise Broken(_LOST)
        return found

    async def _read(self, places: RowLocations) -> dict[str, bytes]:
        """Read rows in a thread. The locations come from the event loop: memory may change meanwhile."""
        segment_index = self._opened.segment_index
        return await self._run(lambda c: segments.read_bodies(c, self.alias, places, segment_index))

    def blocks_without_vectors(self, model: str) -> list[str]:
        """Return the ids of live blocks without vectors of `model`, oldest first."""
        blocks = [
            (head.seq, key.partition("/")[2])
            for key, head in self.row_index.rows.items()
            if head.chunks and head.seq != WAITING and head.model != model
        ]
        return [block_id for _, block_id in sorted(blocks)]

    def chunk_count(self, document_id: str, model: str | None = None) -> int:
        """Return the number of chunks of a document, or of those with vectors of `model`."""
        names = self.row_index.dependents.get(f"documents/{document_id}", ())
        heads = [self.row_index.rows[name] for name in names]
        return sum(head.chunks for head in heads if model is None or head.model == model)

    @property
    def open_jobs(self) -> Mapping[str, Job]:
        """Return the jobs that are not done, by id."""
        return self._opened.jobs.open

    async def survey_jobs(self, most: int) -> tuple[list[Job], dict[str, int]]:
        """Return the newest jobs and the number of jobs in each state."""
        return await self._run(lambda c: job_table.list_jobs(c, self.alias, most))

    async def has_ingested_events(self) -> bool:
        """Return whether ids of ingested events are stored."""
        return await self._run(lambda c: ingested_events.is_any(c, self.alias))

    def llm_requests_on(self, day: str) -> int:
        """How many questions jobs have asked a language model on this day."""
        return self._opened.jobs.llm_requests_on(day)

    # -- jobs of turns ------------------------------------------------------------------------------------------

    async def set_extraction(self, *, extracts: bool) -> None:
        """Set whether new turns cause jobs; existing jobs do not change.

        A failed write is logged and not raised: it must not keep users from their rows."""
        if extracts == (self.followed is not None):
            return

        def turn(tx: Transaction) -> None:
            tx.jobs.extracted_up_to_seq = tx.seq if extracts else None

        try:
            await self.create_jobs_for_new_turns()
            await self.write(turn)
        except Exception as error:
            _log.error("which turns are to be extracted is not noted", exc_info=error)
            if extracts:  # in memory at least: it is noted when the next turns are taken up
                self._opened.jobs.extracted_up_to_seq = self.seq

    async def create_jobs_for_new_turns(self) -> None:
        """Create the jobs of turns that arrived since the last call."""
        while turns := self.new_turns():
            await self.write(partial(job_triggers.take_up, turns=turns))

    @property
    def followed(self) -> int | None:
        """Up to which seq turns have been taken up; None: they cause no jobs."""
        return self._opened.jobs.extracted_up_to_seq

    def new_turns(self) -> list[Entry]:
        """Return the next turns without jobs, in the order of seq."""
        return (
            []
            if self.followed is None
            else self.entries_after(job_triggers.TURNS, self.followed, TURNS_AT_ONCE)
        )

    # -- writing ------------------------------------------------------------------------------------------------

    async def write(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` in a transaction on the newest state; its changes are durable when this returns.

        `work` runs in another thread, does no I/O, and may raise: then nothing of it is stored.
        """
        return await self._write(work, ())

    async def begin_epoch(self, rolled_back: tuple[str, int] | None = None) -> None:
        """Begin a new epoch: devices start from zero and push what they hold. With `rolled_back`, the epoch and `lwt` of a
        checkpoint that proves a rollback, only if it still does."""

        def work(tx: Transaction) -> None:
            epoch, lwt = rolled_back or (tx.meta.epoch, 0)
            if tx.meta.epoch == epoch and (rolled_back is None or tx.meta.was_never_assigned(lwt, tx.seq)):
                tx.begin_epoch(new_epoch(), max(tx.seq, lwt) + SEQ_JUMP)

        await self.write(work)

    async def _write(
        self,
        work: Callable[[Transaction], T],
        compact: Sequence[SegmentName],
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
        """Notify subscribers of a commit. Errors are logged: the commit is already acknowledged."""
        try:
            self._on_commit(self, changes)
        except Exception as error:
            _log.error("work behind a commit was not begun", exc_info=error)

    def _commit(
        self, cursor: Cursor, group: list[_Write]
    ) -> tuple[Transaction, dict[str, SegmentPlan] | None, list[Any]]:
        tx = self._opened.begin_transaction(cursor, self.collections, self._clock())
        results: list[Any] = []
        for write in group:
            undo = tx.savepoint()
            try:
                results.append(write.work(tx))
            except duckdb.Error:  # no fault of this work's: the file cannot be read
                raise
            except Exception as error:
                undo()
                results.append(error)
        job_triggers.cancel_stale_jobs(tx)
        forgotten = tx.meta.forgotten_at if tx.meta.forgotten_at != self.forgotten_at else ""
        if forgotten:  # the ids of tombstones must not disclose what was forgotten
            tx.meta = replace(tx.meta, id_key=new_id_key())
        meta = {}
        if purges_tombstones(tx.changes.values()) or tx.meta.epoch != self.epoch:
            meta["seq_floor"] = str(tx.seq)  # no row tells it any more, and none is given twice
        if not self._opened.erasure_due and needs_erasure(tx):
            meta[ERASURE_DUE] = "1"
        compact = {name for write in group for name in write.compact}
        if file_identity(self.folder / RECORDS_FILE) != self._identity:
            raise ReplacedError
        new_checksums = [add_checksums for write in group for add_checksums in write.new_checksums]
        plans = self._opened.commit(cursor, tx, meta, compact, new_checksums)
        if plans is not None:
            self._note(tx, forgotten)
            self._raise_mark(tx.seq if "seq_floor" in meta else tx.highest_stored_seq)
        return tx, plans, results

    def _note(self, tx: Transaction, forgotten: str) -> None:
        """Append to the erasure ledger. If that fails, the commit stands, and the next append or opening catches up."""
        try:
            self._ledger.append(tx.changes.values(), forgotten)
        except OSError as error:
            _log.error("the ledger is behind", exc_info=error)

    async def sync_ledger(self) -> None:
        """Write the missing lines of the ledger and fsync it. Raises OSError."""
        await self._run(lambda _: self._ledger.sync())

    async def compact(self) -> None:
        """Rewrite all segments that contain stale rows, a batch at a time.

        Rows that become stale meanwhile wait for the next call; otherwise it would not end during edits.
        """
        segments_to_compact = self._opened.segment_index.segments_to_compact()
        for at in range(0, len(segments_to_compact), COMPACT_BATCH):
            await self._write(lambda tx: None, segments_to_compact[at : at + COMPACT_BATCH])

    async def add_checksums(self) -> bool:
        """Add checksums to a batch of segments whose rows are all valid. Return False if none remain."""
        remaining = [
            segment
            for segment in self._opened.segment_index.without_checksum()
            if segment not in self._invalid
        ]
        some = set(remaining[:CHECKSUM_BATCH])
        if not some:
            return False
        runs = self._opened.segment_index.runs(some)
        new_checksums, invalid = await self._run(
            lambda c: segments.compute_checksums(c, self.alias, some, runs, self._is_valid)
        )
        for name, first in invalid:
            _log.error("a segment holds an invalid row", account=self.user_id, collection=name, segment=first)
        self._invalid.update(invalid)
        await self._write(lambda tx: None, (), new_checksums)
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
        """Detach the file, as `Instance.detach_safely` does; blocks. DETACH removes the log by its path, so the log of a file that has
        replaced this one is moved away in the meantime."""
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
        """Checkpoint the write-ahead log into the file. Pushes wait meanwhile."""

        def fold(cursor: Cursor) -> None:
            with self._instance.sized_deadline(self.folder / RECORDS_FILE):
                cursor.execute(f"CHECKPOINT {self.alias}")

        await self._run(fold)
