"""Attach, pin and evict the files of all users. Eviction is LRU, bounded by the number of files and of rows.

`open` pins a user's file for as long as the caller needs it. A task must not open a user whose file it has already
opened: a rewrite waits for all pins, and new pins wait for the rewrite. Such a call raises RuntimeError instead of
deadlocking.
"""

from __future__ import annotations

import asyncio
import shutil
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

import duckdb
import structlog
from msgspec.structs import replace

from vademecum.engines.duckdb.account_store import ACCOUNTS
from vademecum.engines.duckdb.cursor import Cursor
from vademecum.engines.duckdb.erasure_ledger import ErasureLedger
from vademecum.engines.duckdb.erasure_replay import Rollback, detect_rollback, start_epoch_after_rollback
from vademecum.engines.duckdb.fence import Fences
from vademecum.engines.duckdb.marks import HighWaterMarks
from vademecum.engines.duckdb.paths import (
    RECORDS_FILE,
    remove_tree,
    room_to_rewrite,
    translate_disk_errors,
    user_ledger,
)
from vademecum.engines.duckdb.recovery import Recovery
from vademecum.engines.duckdb.threads import is_unowned
from vademecum.engines.duckdb.user_database import (
    DatabaseFactory,
    UserDatabase,
    new_epoch,
    new_id_key,
    publish_file,
    rewrite_file,
    rewrite_records,
    staged,
)
from vademecum.engines.duckdb.user_store import DuckDBUserStore
from vademecum.errors import Broken, Busy, Fenced, NotFound
from vademecum.model.records.paths import user_folder
from vademecum.model.records.store_interface import StoreHooks, UserStores
from vademecum.model.schema.collections import Registry
from vademecum.model.sync.transaction import Transaction

T = TypeVar("T")
IDLE_WAIT_S = 30
LOG_MAX = 4 * 2**20  # size in bytes above which the write-ahead log of an idle file is checkpointed
LOGS_MAX = 8 * 2**20  # total size in bytes of all logs above which shorter logs are checkpointed, too
_log = structlog.get_logger("vademecum.users")


def _log_size(store: DuckDBUserStore | None) -> int:
    """Return the length of the write-ahead log, or 0 if it cannot be read, which must not affect other accounts."""
    if store is None:
        return 0
    try:
        return (store.folder / f"{RECORDS_FILE}.wal").stat().st_size
    except OSError:
        return 0


async def _run_to_completion(work: Awaitable[T]) -> T:
    """Return the result of `work`, waiting for its end even if the caller is cancelled.

    Work in a thread cannot be cancelled. If its lock were released before the work ends, another caller could use the
    file at the same time.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    finally:
        while not task.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([task])


@dataclass(slots=True)
class _Entry:
    """The state of one user. `store` is set while the file is attached. `seq` is the highest seq at the last detach."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    store: DuckDBUserStore | None = None
    seq: int = 0
    failed_checkpoints: bool = False


class DuckDBUserStores(UserStores):
    def __init__(
        self,
        data: Path,
        files: DatabaseFactory,
        registry: Registry,
        account_exists: Callable[[str], bool],
        clock: Callable[[], str],
        hooks: StoreHooks,
        fences: Fences,
        attached_max: int = 256,
        attached_rows_max: int = 1_000_000,
    ) -> None:
        self._data = data
        self.files = files
        self._registry = registry
        self._clock = clock
        self._hooks = hooks
        self.fences = fences
        self.marks = HighWaterMarks(data)
        self.recovery = Recovery(fences, self.detached)
        # Users whose file is being replaced. Damage found by a replacement is in the new file, not in the current one.
        self._replacing: set[str] = set()
        files.instance.on_damage = self._fence
        files.instance.on_rebuilt.append(self._forget_files)
        self._attached_max = attached_max
        self._attached_rows_max = attached_rows_max
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._holders: set[tuple[asyncio.Task[object] | None, str]] = set()
        self._account_exists = account_exists
        self.unsigned_ahead: dict[str, int] = {}

    @asynccontextmanager
    async def open(self, user_id: str, *, touches_lru: bool = True) -> AsyncIterator[DuckDBUserStore]:
        with self._opened_by_this_task(user_id):
            try:
                store = await self._acquire(user_id, touches_lru=touches_lru)
            except (Busy, Broken, duckdb.Error):
                self.fences.check(user_id)
                raise
            try:
                yield store
            except (Busy, duckdb.Error):
                self.fences.check(user_id)  # raise Fenced instead if the error has fenced the account
                raise
            finally:
                store.unpin()
                if self._is_full():
                    await self._evict()

    @contextmanager
    def _opened_by_this_task(self, user_id: str) -> Iterator[None]:
        """Mark the user as opened by this task. Raises RuntimeError if the task has already opened the user."""
        holder = asyncio.current_task(), user_id
        if holder in self._holders:
            raise RuntimeError("A task opened the file of a user twice. Close the file first.")
        self._holders.add(holder)
        try:
            yield
        finally:
            self._holders.discard(holder)

    async def _acquire(self, user_id: str, *, touches_lru: bool) -> DuckDBUserStore:
        while True:
            if not self._account_exists(user_id):  # deleted; a task with the file open may finish
                raise NotFound("There is no such account.")
            if self.fences.reason(user_id) is not None and not self.files.instance.is_stuck(user_id):
                self.recovery.begin(user_id)
            self.fences.check(user_id)
            entry = self._entries.get(user_id)
            if entry is None:
                entry = self._entries[user_id] = _Entry()
            if touches_lru:
                self._entries.move_to_end(user_id)
            if entry.store is not None and not entry.store.is_unusable and not entry.lock.locked():
                entry.store.pin()
                return entry.store
            # Attach the file in a separate task, because a cancelled caller must not leave it half attached.
            await asyncio.shield(asyncio.ensure_future(self._fill(user_id, entry)))

    async def _fill(self, user_id: str, entry: _Entry) -> None:
        async with entry.lock:
            if self._entries.get(user_id) is not entry or not self._account_exists(user_id):
                return  # evicted or deleted while we waited
            if entry.store is not None and entry.store.is_unusable:
                await self._detach(entry)
            if entry.store is None and self.fences.reason(user_id) is None:
                entry.store = await self._attach(user_id, entry.seq)

    async def _attach(self, user_id: str, last_seq: int) -> DuckDBUserStore:
        folder = user_folder(self._data, user_id)
        ledger = user_ledger(self._data, user_id)
        with translate_disk_errors(user_id, "opened", folder):
            opened, rollback = await self._open_database(folder / RECORDS_FILE, ledger, last_seq)
        if opened.notice:
            self._hooks.on_notice(opened.notice)
        if opened.erasure_due:
            self._hooks.on_erasure_due(user_id)
        store = DuckDBUserStore(
            user_id,
            folder,
            self.files.instance,
            opened,
            self._registry,
            ledger,
            self._clock,
            self._hooks,
            partial(self.marks.raise_to, user_id),
        )
        if rollback is not None:
            await self._start_new_epoch(store, ledger, rollback)
        await self._hooks.on_attach(store)
        return store

    async def _start_new_epoch(
        self, store: DuckDBUserStore, ledger: ErasureLedger, rollback: Rollback
    ) -> None:
        """Start a new epoch for records that lack acknowledged commits, before other tasks use them."""
        self._hooks.on_new_epoch(store.user_id)
        try:
            erased = await store.write(lambda tx: start_epoch_after_rollback(tx, rollback))
        except BaseException:
            await self.files.instance.run(
                lambda _: self.files.instance.detach_safely(store.alias), store.user_id
            )
            raise
        self._hooks.on_new_epoch(store.user_id)  # again, for streams that were opened during the write
        evidence = {"seq": rollback.seq, "acknowledged_seq": rollback.mark, "erased_again": erased}
        _log.warning("records lack acknowledged changes", account=store.user_id, **evidence)
        await asyncio.to_thread(ledger.record_rollback, self._clock())

    async def _open_database(
        self, path: Path, ledger: ErasureLedger, last_seq: int
    ) -> tuple[UserDatabase, Rollback | None]:
        """Open a file. Return two values: the database, and evidence that it lacks acknowledged commits, or None."""
        if not path.exists() and ledger.path.exists():
            raise Broken(
                f"The file {path.name} of folder {path.parent.name} is missing. Nothing was changed, because with an "
                f"empty file devices would bring back erased rows, and the next backup would be empty. Put the file "
                f"back (check that all disks are mounted), restore a backup with `vademecum restore`, or delete "
                f"{ledger.path} to start again with the data of the devices."
            )
        user_id = path.parent.name
        opened = await self.files.instance.run(lambda _: self.files.open(path, last_seq), user_id)
        try:
            lines, mark = await asyncio.to_thread(ledger.read), self.marks.of(user_id)
            rollback = await asyncio.to_thread(detect_rollback, opened.row_index, lines, mark, self._registry)
            await asyncio.to_thread(ledger.catch_up, lines, opened.row_index, opened.meta.forgotten_at)
            await asyncio.to_thread(ledger.create_file)
            await asyncio.to_thread(self.marks.raise_to, user_id, opened.row_index.seq)
        except BaseException:
            await self.files.instance.run(lambda _: self.files.instance.detach_safely(opened.alias), user_id)
            raise
        return opened, rollback

    def _is_full(self) -> bool:
        """Return whether too many files or row heads are in memory.

        A single file may exceed the maximum number of rows. Otherwise the file would be loaded again for every request.
        """
        if len(self._entries) > self._attached_max:
            return True
        rows = sum(len(store.row_index.rows) for store in self.attached_stores())
        return rows > self._attached_rows_max and len(self._entries) > 1

    async def _evict(self) -> None:
        """Detach the least recently used files without pins until the bounds are met. Only log a failed detach."""
        for user_id in list(self._entries):
            if not self._is_full():
                return
            entry = self._entries.get(user_id)
            if entry is None or entry.lock.locked() or (entry.store is not None and entry.store.pins):
                continue
            if self.files.instance.is_stuck(user_id):
                continue  # its file stays attached until its thread returns
            async with entry.lock:
                try:
                    await self._detach(entry)
                except (Busy, Broken, duckdb.Error) as error:
                    _log.error("a file could not be detached", account=user_id, exc_info=error)
                    continue
                if self._entries.get(user_id) is entry:
                    del self._entries[user_id]

    def _fence(self, user_id: str, reason: str) -> bool:
        """Fence an account whose file is damaged, and start to recover it.

        Return False if the file does not belong to a single account. The process must then end, because all accounts
        need the file.
        """
        if is_unowned(user_id) or user_id == ACCOUNTS:
            return False
        if not self._account_exists(user_id):  # nothing to fence: the account has been deleted
            return True
        if user_id in self._replacing and not self.files.instance.is_stuck(user_id):
            return True
        self.fences.fence(user_id, reason)
        entry = self._entries.get(user_id)
        if entry is not None and entry.store is not None:
            entry.store.is_unusable = True
        if not self.files.instance.is_stuck(user_id):
            self.recovery.begin(user_id)
        return True

    def _forget_files(self) -> None:
        """Mark all stores as unusable after a restart of DuckDB, which detaches all files."""
        for store in self.attached_stores():
            store.is_unusable = True

    async def _detach(self, entry: _Entry) -> None:
        store = entry.store
        if store is not None:
            if self.files.instance.is_stuck(store.user_id):
                raise self.fences.refusal(
                    store.user_id, "a statement does not end, and the server must be restarted first"
                )
            while store.pins:
                await store.idle.wait()
            entry.store, entry.seq = None, store.seq
            await _run_to_completion(self.files.instance.run(lambda _: store.detach_safely(), store.user_id))

    @asynccontextmanager
    async def detached(self, user_id: str) -> AsyncIterator[Path]:
        with self._opened_by_this_task(user_id):
            while True:
                entry = self._entries.setdefault(user_id, _Entry())
                await self._wait_until_idle(entry)
                async with entry.lock:
                    if self._entries.get(user_id) is not entry:
                        continue  # evicted while we waited: another task may be attaching the file
                    await self._detach(entry)
                    yield user_folder(self._data, user_id)
                    return

    async def _wait_until_idle(self, entry: _Entry) -> None:
        """Wait until the file is not pinned, for at most `IDLE_WAIT_S`.

        Other tasks may still pin the file during the wait.
        """
        try:
            async with asyncio.timeout(IDLE_WAIT_S):
                while entry.store is not None and entry.store.pins:
                    await entry.store.idle.wait()
        except TimeoutError:
            return

    async def rewrite(self, user_id: str) -> None:
        async with self.open(user_id) as store:
            await store.compact()
        async with self.detached(user_id) as folder:
            with translate_disk_errors(user_id, "rewritten", folder):
                await _run_to_completion(
                    self.files.instance.run(
                        lambda _: rewrite_records(self.files.instance, folder / RECORDS_FILE), user_id
                    )
                )

    async def replace(
        self,
        user_id: str,
        source: Path,
        floor: int,
        work: Callable[[Transaction], T],
        before_opening: Callable[[], None],
    ) -> T:
        async with self.detached(user_id) as folder:
            above = max(floor, self._entries[user_id].seq, self.marks.of(user_id))
            self._replacing.add(user_id)
            try:
                result = await _run_to_completion(
                    self.files.instance.run(lambda c: self._replace(c, folder, source, above, work), user_id)
                )
                self.fences.lift(user_id)
                return result
            finally:
                self._replacing.discard(user_id)
                before_opening()

    def _replace(
        self, cursor: Cursor, folder: Path, source: Path, floor: int, work: Callable[[Transaction], T]
    ) -> T:
        folder.mkdir(parents=True, exist_ok=True)
        with staged(folder / RECORDS_FILE) as new:
            for end in ("", ".wal"):
                if source.with_name(source.name + end).exists():
                    shutil.copyfile(source.with_name(source.name + end), new.with_name(new.name + end))
            result = self._prepare_replacement(cursor, new, floor, work)
            rewrite_file(self.files.instance, new)  # erases the bytes of what `work` deleted
            # The replaced file has a log only if it could not be opened.
            (folder / f"{RECORDS_FILE}.wal").unlink(missing_ok=True)
            publish_file(new, folder / RECORDS_FILE)
        return result

    def _prepare_replacement(
        self, cursor: Cursor, path: Path, floor: int, work: Callable[[Transaction], T]
    ) -> T:
        """Migrate a file, run `work` in it, and start a new epoch in it."""
        opened = self.files.open(path)
        try:
            opened.row_index.seq = max(opened.row_index.seq, floor)
            opened.meta = replace(opened.meta, next_gap=0)
            tx = opened.begin_transaction(cursor, self._registry, self._clock())
            result = work(tx)
            self._hooks.before_commit(tx)
            tx.meta = replace(tx.meta, epoch=new_epoch(), restored_seq=tx.seq, gaps=())
            # Replace the backup's key, because ids of tombstones would disclose what was forgotten.
            if tx.meta.forgotten_at != opened.meta.forgotten_at:
                tx.meta = replace(tx.meta, id_key=new_id_key())
            compact = set(opened.segment_index.segments_to_compact())
            opened.commit(cursor, tx, {"seq_floor": str(tx.seq)}, compact)
        finally:
            self.files.instance.detach(opened.alias)
        return result

    async def remove(self, user_id: str) -> None:
        async with self.detached(user_id) as folder:
            await _run_to_completion(asyncio.to_thread(remove_tree, folder))
            await asyncio.to_thread(user_ledger(self._data, user_id).delete)
            await asyncio.to_thread(self.marks.drop, user_id)
            self.fences.lift(user_id)
        self._entries.pop(user_id, None)

    async def checkpoint_idle(self) -> None:
        """Checkpoint the logs of idle files, least recently used first.

        A long log makes the start after a crash slow, and its rows stay in memory until the checkpoint. Short logs are
        checkpointed, too, while all logs together are longer than `LOGS_MAX`.
        """
        logs = {user_id: _log_size(entry.store) for user_id, entry in self._entries.items()}
        total = sum(logs.values())
        for user_id, log in logs.items():
            entry = self._entries.get(user_id)
            if entry is None or entry.lock.locked() or (entry.store is not None and entry.store.pins):
                continue
            if entry.failed_checkpoints or log > LOG_MAX or (log and total > LOGS_MAX):
                await self._checkpoint(user_id, entry)
                total -= log

    async def add_checksums_to_idle(self) -> None:
        """Add checksums to a batch of segments of each attached, idle file."""
        for user_id, entry in list(self._entries.items()):
            if entry.store is None or entry.store.pins or entry.lock.locked():
                continue
            try:
                async with self.open(user_id, touches_lru=False) as store:
                    await store.add_checksums()
            except Exception as error:
                _log.error(
                    "checksums could not be added to an account's segments", account=user_id, exc_info=error
                )

    async def _checkpoint(self, user_id: str, entry: _Entry) -> None:
        """Checkpoint one file. If that fails, the file is attached again on its next use."""
        try:
            async with self.open(user_id, touches_lru=False) as store:
                try:
                    await store.checkpoint()
                finally:
                    entry.failed_checkpoints = store.is_unusable
        except Exception as error:
            _log.error("an account's log could not be checkpointed", exc_info=error)

    def count_failed_checkpoints(self) -> int:
        return sum(entry.failed_checkpoints for entry in self._entries.values())

    def has_records(self, user_id: str) -> bool:
        return (user_folder(self._data, user_id) / RECORDS_FILE).exists()

    def is_new(self, user_id: str) -> bool:
        with translate_disk_errors(user_id, "opened", user_folder(self._data, user_id)):
            return not self.has_records(user_id) and not user_ledger(self._data, user_id).path.exists()

    def list_unclean(self) -> list[str]:
        return [log.parent.name for log in (self._data / "users").glob(f"*/*/{RECORDS_FILE}.wal")]

    def room_to_rewrite(self, user_id: str) -> int:
        return room_to_rewrite(self._data, user_id)

    def check_not_fenced(self, user_id: str) -> None:
        self.fences.check(user_id)

    def fenced(self) -> dict[str, str]:
        return self.fences.fenced()

    def stop_recovery(self) -> None:
        self.recovery.kill()

    def count_attached(self) -> int:
        return len(self.attached_stores())

    def attached_stores(self) -> list[DuckDBUserStore]:
        return [entry.store for entry in self._entries.values() if entry.store is not None]

    async def close(self) -> None:
        """Detach all files, waiting for running calls. Files with a stuck statement stay attached."""
        await self.recovery.close()
        for entry in list(self._entries.values()):
            async with entry.lock:
                with suppress(Fenced):
                    await self._detach(entry)
        self._entries.clear()
        await asyncio.to_thread(self.marks.close)
