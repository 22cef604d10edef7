"""One user's records: the write queue, the reads, and nothing that could reach another user's.

Code that touches records gets one of these, already bound to its user. One writer at a time; whatever waits while
a commit is under way is committed together next, and every caller is answered after COMMIT only.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from vademecum.engines.duckdb import userfile
from vademecum.engines.duckdb.instance import Cursor, Instance
from vademecum.engines.duckdb.ledger import Ledger
from vademecum.engines.duckdb.userfile import Opened
from vademecum.model.collections import Collection
from vademecum.model.draft import Change, Draft, Heads
from vademecum.model.limits import Usage

T = TypeVar("T")
OnCommit = Callable[[str, str, list[Change]], None]
GROUP_MAX = 64  # works in one commit


class UserStore:
    """Reads and writes of one user. `pins` keeps the file attached while anything of it is under way."""

    def __init__(
        self,
        user_id: str,
        folder: Path,
        instance: Instance,
        opened: Opened,
        collections: Mapping[str, Collection],
        ledger: Ledger,
        clock: Callable[[], str],
        on_commit: OnCommit,
    ) -> None:
        self.user_id = user_id
        self.folder = folder
        self.epoch = opened.epoch
        self.forgotten_at = opened.forgotten_at
        self.heads: Heads = opened.heads
        self.pins = 0
        self.idle = asyncio.Event()
        self.idle.set()
        self.alias = opened.alias
        self.collections = collections
        self._instance = instance
        self._ledger = ledger
        self._clock = clock
        self._on_commit = on_commit
        self._queue: list[tuple[Callable[[Draft], Any], asyncio.Future[Any]]] = []
        self._writer: asyncio.Task[None] | None = None

    # -- reading ------------------------------------------------------------------------------------------------

    @property
    def seq(self) -> int:
        return self.heads.seq

    @property
    def usage(self) -> Usage:
        return Usage(documents=self.heads.documents, bytes=self.heads.bytes)

    def live(self, key: str) -> bool:
        head = self.heads.rows.get(key)
        return head is not None and not head.deleted and head.seq > 0

    async def page(self, collection: str, after: int, limit: int) -> list[tuple[int, str]]:
        """(seq, JSON) of the rows of a collection with seq > `after`, tombstones too, at most `limit`."""
        return await self._run(lambda c: userfile.read_page(c, self.alias, collection, after, limit))

    async def bodies(self, keys: Sequence[str]) -> dict[str, bytes]:
        """Bodies of the keys that have a head, read in one snapshot of the heads and the file."""
        return await self._run(lambda c: self._read(c, [k for k in keys if k in self.heads.rows]))

    def _read(self, cursor: Cursor, keys: list[str]) -> dict[str, bytes]:
        found = userfile.read_bodies(cursor, self.alias, self.heads, keys)
        missing = [k for k in keys if k not in found]
        # A commit that is not yet in the heads has given these another seq: slower, but an id never moves.
        return found | userfile.read_bodies_by_id(cursor, self.alias, missing) if missing else found

    async def unembedded(self, model: str) -> list[str]:
        """Ids of the live blocks that lack vectors of `model`."""
        found = await self._run(lambda c: userfile.find_unembedded(c, self.alias, model))
        return [block_id for block_id in found if self.live(f"vectorEmbeddings/{block_id}")]

    async def chunk_counts(self, document_ids: list[str]) -> dict[str, int]:
        """How many chunks of these documents are here."""
        blocks = {
            key.partition("/")[2]: document_id
            for document_id in document_ids
            for key in self.heads.dependents.get(f"documents/{document_id}", ())
            if key.startswith("vectorEmbeddings/") and self.live(key)
        }
        counts = await self._run(lambda c: userfile.count_chunks(c, self.alias, list(blocks)))
        total: Counter[str] = Counter()
        for block_id, count in counts.items():
            total[blocks[block_id]] += count
        return total

    # -- writing ------------------------------------------------------------------------------------------------

    async def write(self, work: Callable[[Draft], T]) -> T:
        """Run `work` on a draft of the newest state; its changes are durable when this returns.

        `work` runs in another thread, does no I/O, and may raise: then nothing of it is stored.
        """
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._queue.append((work, future))
        if self._writer is None:
            self.pin()
            self._writer = asyncio.create_task(self._drain())
        return await future

    async def _drain(self) -> None:
        try:
            while self._queue:
                group = [(w, f) for w, f in self._queue[:GROUP_MAX] if not f.cancelled()]
                del self._queue[:GROUP_MAX]
                await self._write_group(group)
        finally:
            self._writer = None
            self.unpin()

    async def _write_group(self, group: list[tuple[Callable[[Draft], Any], asyncio.Future[Any]]]) -> None:
        try:
            draft, results = await self._instance.run(lambda c: self._commit(c, [work for work, _ in group]))
        except BaseException as error:
            for _, future in group:
                if not future.done():
                    future.set_exception(error)
            if not isinstance(error, Exception):
                raise
            return
        changes = list(draft.changes.values())
        self.heads.absorb(draft.changes)
        self.forgotten_at = draft.forgotten_at
        if changes:
            self._on_commit(self.user_id, self.epoch, changes)
        for (_, future), result in zip(group, results, strict=True):
            if future.done():
                continue
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)

    def _commit(self, cursor: Cursor, works: list[Callable[[Draft], Any]]) -> tuple[Draft, list[Any]]:
        def read(keys: list[str]) -> dict[str, bytes]:
            return userfile.read_bodies(cursor, self.alias, self.heads, keys)

        draft = Draft(self.heads, read, self.collections, self.epoch, self.forgotten_at, self._clock())
        results: list[Any] = []
        for work in works:
            undo = draft.savepoint()
            try:
                results.append(work(draft))
            except Exception as error:
                undo()
                results.append(error)
        forgotten = draft.forgotten_at if draft.forgotten_at != self.forgotten_at else ""
        if draft.changes or forgotten:
            meta = {"forgotten_at": forgotten} if forgotten else {}
            userfile.flush(cursor, self.alias, draft.changes.values(), meta)
            self._ledger.note(draft.changes.values(), forgotten)
        return draft, results

    # -- staying attached ---------------------------------------------------------------------------------------

    async def _run(self, work: Callable[[Cursor], T]) -> T:
        """Run blocking `work`, keeping the file attached until it is really over, even if the caller gave up."""
        self.pin()
        task = asyncio.ensure_future(self._instance.run(work))
        task.add_done_callback(lambda _: self.unpin())
        return await asyncio.shield(task)

    def pin(self) -> None:
        self.pins += 1
        self.idle.clear()

    def unpin(self) -> None:
        self.pins -= 1
        if self.pins == 0:
            self.idle.set()

    async def checkpoint(self) -> None:
        """Fold the write-ahead log into the file; a push that comes meanwhile waits."""
        await self._run(lambda c: c.execute(f"CHECKPOINT {self.alias}"))
