"""Keep a user's search index in Lance up to date with the user's rows, read in order of `seq` as devices do.

The index is a replica. The index may lag behind the records, and it is rebuilt if its folder is missing or belongs to
another epoch or model. Search checks hits against the records, so an outdated index can miss rows but cannot expose
deleted ones.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import msgspec

from vademecum.engines import lance
from vademecum.engines.lance import Block, Chunk, IndexDamaged, MatrixCache, Throttle
from vademecum.errors import Broken, NotFound
from vademecum.model.records.paths import user_folder
from vademecum.model.records.store_interface import UserStore, UserStores
from vademecum.model.schema import vector_codec
from vademecum.model.schema.collections import Json
from vademecum.services.runtime.request_priority import RequestPriority

if TYPE_CHECKING:
    from vademecum.engines.lance import VectorIndex
    from vademecum.engines.onnx.embedder import Embedder

T = TypeVar("T")
COLLECTION = "vectorEmbeddings"
PAGE = 50  # the number of rows that are indexed in one step
OPEN_MAX = 64
# The number of threads for writes. These threads are separate from asyncio's threads, because a throttled write must
# not occupy a thread that a request needs (services/runtime/request_priority).
WRITERS = 4


class EmbedderProvider(Protocol):
    """Return the embedder of the user's index, or None for words only. Raises Busy if it does not open in time."""

    async def __call__(self, user_id: str, timeout_s: float | None = None, /) -> Embedder | None: ...


class IndexReplaced(Exception):
    """The index now belongs to another model, so the query must be embedded again."""


@dataclass(slots=True)
class _Open:
    writing: asyncio.Lock = field(default_factory=asyncio.Lock)
    index: VectorIndex | None = None
    users: int = 0


class Indexes:
    """The open indexes of one kind, each in the user's folder `name`, at most OPEN_MAX of them.

    Calls run in threads, with one writer per user at a time. `cache` may be shared with another kind of index.
    """

    def __init__(
        self,
        data: Path,
        name: str,
        cache: MatrixCache,
        embedder: EmbedderProvider,
        knows: Callable[[str], bool],
        request_priority: RequestPriority,
    ) -> None:
        self._data = data
        self._name = name
        self._cache = cache
        self.embedder = embedder
        self._open: OrderedDict[str, _Open] = OrderedDict()
        self._knows = knows
        self._request_priority = request_priority
        self._working: set[asyncio.Future[Any]] = set()
        self._writers = ThreadPoolExecutor(WRITERS, thread_name_prefix=f"index {name}")

    def _folder(self, user_id: str) -> Path:
        return user_folder(self._data, user_id) / self._name

    @asynccontextmanager
    async def _entry(self, user_id: str) -> AsyncIterator[_Open]:
        self._check(user_id)
        entry = self._open.setdefault(user_id, _Open())
        self._open.move_to_end(user_id)
        entry.users += 1
        try:
            yield entry
        finally:
            entry.users -= 1
            self._shed()

    def _check(self, user_id: str) -> None:
        if not self._knows(user_id):
            raise NotFound("There is no such account.")

    def _shed(self) -> None:
        for user_id in list(self._open):
            if len(self._open) <= OPEN_MAX:
                return
            entry = self._open[user_id]
            if entry.users == 0:
                del self._open[user_id]
                if entry.index is not None:
                    entry.index.close()

    async def read(self, user_id: str, work: Callable[[VectorIndex], T]) -> T:
        """Run `work` on the index in a thread.

        Raises IndexReplaced if the model changes before `work` is done. The caller then retries.
        """
        return await self._whole(self._read(user_id, work))

    async def write(self, user_id: str, work: Callable[[VectorIndex], T]) -> T:
        return await self._whole(self._write(user_id, work))

    async def replace_index(self, user_id: str, folder: Path, then: Callable[[], None]) -> None:
        """Replace the user's index with the one in `folder`.

        `then` is called after the old index is closed and before the new one can be opened.
        """
        await self._whole(self._adopt(user_id, folder, then))

    async def _whole(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the work to its end even if the caller is cancelled.

        Otherwise the next writer could start too early, or an index could be closed while it is read.
        """
        task = asyncio.ensure_future(work)
        self._working.add(task)
        task.add_done_callback(self._working.discard)
        return await asyncio.shield(task)

    async def _read(self, user_id: str, work: Callable[[VectorIndex], T]) -> T:
        async with self._entry(user_id) as entry:
            index = await self._ensure(user_id, entry)
            try:
                return await asyncio.to_thread(work, index)
            except RuntimeError as error:
                if entry.index is index:
                    raise
                raise IndexReplaced from error

    async def _adopt(self, user_id: str, folder: Path, then: Callable[[], None]) -> None:
        async with self._entry(user_id) as entry:
            old = await self._ensure(user_id, entry)
            async with entry.writing:
                self._check(user_id)
                entry.index = None
                then()
                await asyncio.to_thread(old.drop)
                await asyncio.to_thread(folder.rename, self._folder(user_id))

    async def _write(self, user_id: str, work: Callable[[VectorIndex], T]) -> T:
        async with self._entry(user_id) as entry:
            while True:
                index = await self._ensure(user_id, entry)
                async with entry.writing:
                    self._check(user_id)
                    if entry.index is index:  # if an index of another model has replaced this one, try again
                        return await self.run_in_writer(partial(work, index))

    async def run_in_writer(self, work: Callable[[], T]) -> T:
        """Run the work in a writer thread."""
        return await asyncio.get_running_loop().run_in_executor(self._writers, work)

    async def _ensure(self, user_id: str, entry: _Open) -> VectorIndex:
        """Return the user's index, opening it for the user's current model if necessary."""
        embedder = await self.embedder(user_id)
        index = entry.index
        if index is not None and index.model == (embedder.model if embedder is not None else None):
            return index
        async with self._request_priority.priority_lock(entry.writing):
            embedder = await self.embedder(user_id)
            model, dims = (embedder.model, embedder.dims) if embedder is not None else (None, None)
            if entry.index is not None and entry.index.model != model:
                entry.index.close()
                entry.index = None
            if entry.index is None:
                entry.index = await asyncio.to_thread(
                    lambda: lance.VectorIndex.open(self._folder(user_id), model, dims, cache=self._cache)
                )
            return entry.index

    async def drop(self, user_id: str) -> None:
        """Delete the user's index from disk. The indexer rebuilds it when there are rows to index."""
        await self.write(user_id, lambda index: index.reset())

    async def remove(self, user_id: str) -> None:
        """Delete the index of a deleted account from disk."""
        entry = self._open.pop(user_id, None)
        if entry is not None:
            async with self._request_priority.priority_lock(entry.writing):
                if entry.index is not None:
                    await asyncio.to_thread(entry.index.drop)

    async def close(self) -> None:
        """Wait for work whose callers were cancelled, then close all indexes."""
        await asyncio.gather(*self._working, return_exceptions=True)
        for entry in self._open.values():
            if entry.index is not None:
                entry.index.close()
        self._open.clear()
        self._writers.shutdown()


class SourcePage(NamedTuple):
    """The next rows (key and current JSON), up to the `seq` in `upto`. `more`: whether further rows follow."""

    rows: list[tuple[str, bytes]]
    upto: int
    more: bool


class IndexSource(Protocol):
    """Reads the rows that an index is built from."""

    async def page(self, store: UserStore, after: int) -> SourcePage: ...

    def blocks(self, rows: Iterable[tuple[str, bytes]], model: str | None) -> tuple[list[Block], list[str]]:
        """Return the blocks of these rows, and the ids of deleted blocks.

        This function is pure and runs in a thread.
        """
        ...


class Indexer:
    """Updates the users' indexes from the records.

    `may_follow`: returns whether the index of a user may read new rows. `may_follow` returns False while a model change
    writes vectors of the new model, which the index cannot store.
    """

    def __init__(
        self,
        users: UserStores,
        indexes: Indexes,
        source: IndexSource,
        may_follow: Callable[[str], bool],
        request_priority: RequestPriority,
    ) -> None:
        self._users = users
        self._indexes = indexes
        self._source = source
        self.request_priority = request_priority
        self._may_follow = may_follow
        # Maps users to the epoch and the `seq` up to which the index has certainly read the rows.
        self._seen: dict[str, tuple[str, int]] = {}
        self._progress = asyncio.Condition()
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def work(self, user_id: str) -> None:
        """Index the rows after the checkpoint until none are left."""
        done = False
        while not done:
            async with self._turns[user_id]:
                done = not self._may_follow(user_id) or await self._step(user_id)

    async def erase(self, user_id: str) -> None:
        """Update the index, then erase the bytes of deleted rows from its files."""
        with self.request_priority.unthrottled():  # do not delay the erasure while requests wait
            await self.work(user_id)
            await self._indexes.write(user_id, lambda index: index.erase())

    async def update_vectors(
        self, user_id: str, model: str, choose: Callable[[UserStore], list[Block]]
    ) -> None:
        """Replace blocks of the index without moving its checkpoint.

        `choose` returns the blocks. It runs while no step is in progress, so that a later deletion of one of their rows
        reaches the index in a later step.
        """
        async with self._turns[user_id]:
            async with self._users.open(user_id) as store:
                epoch, blocks = store.epoch, choose(store)
            throttled = self.request_priority.throttled
            await self._indexes.write(user_id, lambda index: _amend(index, model, epoch, blocks, throttled))

    async def rebuild_with_model(
        self,
        user_id: str,
        swap: Callable[[], Awaitable[bool]],
        new: VectorIndex,
        folder: Path,
        then: Callable[[], None],
    ) -> bool:
        """Change the vectors of the rows with `swap`, then replace the index with `new`, built from the changed rows.

        The old index serves searches until `new` is complete. It is not updated any more: the rows no longer have the
        old vectors, so an update would remove them from the index. Return False if `swap` changed nothing.
        """
        async with self._turns[user_id]:
            if not await swap():
                return False
            seen = await self._build(user_id, new)
            await self._indexes.replace_index(user_id, folder, then)
            await self._note(user_id, seen)
        return True

    async def _build(self, user_id: str, index: VectorIndex) -> tuple[str, int]:
        """Index all rows, close the index and return its checkpoint."""
        async with self._users.open(user_id) as store:
            epoch = store.epoch
        after, more = 0, True
        while more:
            async with self._users.open(user_id) as store:
                if store.epoch != epoch:
                    raise Broken("The records were restored from a backup while the server indexed them.")
                rows, after, more = await self._source.page(store, after)
            await self._indexes.run_in_writer(partial(self._apply, index, rows, (epoch, after)))
        index.close()
        return epoch, after

    async def drop(self, user_id: str) -> None:
        """Delete the user's index after the current step, so that the step cannot add its rows again."""
        with self.request_priority.unthrottled():
            async with self._turns[user_id]:
                await self._indexes.drop(user_id)
                self.forget(user_id)

    async def _step(self, user_id: str) -> bool:
        epoch, after = await self._indexes.read(user_id, lambda index: index.checkpoint)
        async with self._users.open(user_id) as store:
            if epoch and epoch != store.epoch:
                await self._indexes.write(user_id, lambda index: index.reset())
                after = 0
            epoch = store.epoch
            rows, seq, more = await self._source.page(store, after)

        def go_on(index: VectorIndex) -> bool:
            """Apply the rows. Return False if the index was reset, so that its checkpoint is no longer `after`."""
            if index.checkpoint[1] != after:
                return False
            self._apply(index, rows, (epoch, seq))
            return True

        try:
            if (rows or seq != after) and not await self._indexes.write(user_id, go_on):
                return False
        except IndexDamaged:
            return False
        await self._note(user_id, (epoch, seq))
        return not more

    def _apply(self, index: VectorIndex, rows: list[tuple[str, bytes]], checkpoint: tuple[str, int]) -> None:
        throttled = self.request_priority.throttled
        blocks, deleted_ids = self._source.blocks(throttled(rows), index.model)
        index.apply(blocks, deleted_ids, [], checkpoint, pace=throttled)
        index.optimise()

    async def _note(self, user_id: str, seen: tuple[str, int]) -> None:
        self._seen[user_id] = seen
        async with self._progress:
            self._progress.notify_all()

    def has(self, user_id: str, epoch: str, seq: int) -> bool:
        seen = self._seen.get(user_id)
        return seen is not None and seen[0] == epoch and seen[1] >= seq

    async def wait_for(self, user_id: str, epoch: str, seq: int) -> None:
        """Wait until the index has read up to `seq`."""
        async with self._progress:
            with self.request_priority.unthrottled():
                await self._progress.wait_for(lambda: self.has(user_id, epoch, seq))

    def forget(self, user_id: str) -> None:
        self._seen.pop(user_id, None)


def _amend(index: VectorIndex, model: str, epoch: str, blocks: list[Block], pace: Throttle) -> None:
    """Replace the blocks, unless the index has been reset. A reset index reads all rows again anyway."""
    if blocks and index.model == model and index.checkpoint[0] == epoch:
        index.apply(blocks, [], [], index.checkpoint, pace)
        index.optimise()


class DocumentBlockSource:
    """Reads the blocks of documents for the document index."""

    async def page(self, store: UserStore, after: int) -> SourcePage:
        latest = store.seq
        entries = store.entries_after(COLLECTION, after, PAGE)
        bodies = await store.read_bodies([key for _, key in entries])
        more = len(entries) == PAGE
        return SourcePage(
            [(key, bodies[key]) for _, key in entries], entries[-1][0] if more else latest, more
        )

    def blocks(self, rows: Iterable[tuple[str, bytes]], model: str | None) -> tuple[list[Block], list[str]]:
        blocks: list[Block] = []
        deleted_ids: list[str] = []
        for _, body in rows:
            row: Json = msgspec.json.decode(body)
            if row.get("_deleted"):
                deleted_ids.append(row["id"])
            else:
                blocks.append(_block(row, model))
        return blocks, deleted_ids


def _block(row: Json, model: str | None) -> Block:
    """Return a row as an index block.

    Vectors of another model and damaged vectors are left out. The block is then found by words only.
    """
    matrix = None
    if row["embedding"] is not None and row["model"] == model:
        try:
            matrix = vector_codec.decode(row["embedding"], row["dims"])
        except ValueError:
            matrix = None
    chunks = [Chunk(c["index"], c.get("page"), c.get("section"), c["text"]) for c in row["chunks"]]
    if matrix is not None and len(matrix) != len(chunks):
        matrix = None
    return Block(row["id"], row["documentId"], row["block"], chunks, matrix)
