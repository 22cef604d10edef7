"""The recall index: turns, memories, entities and summaries, made findable beside the documents, in `<user>/recall/`.

Derived, as the document index is: it follows the sequence, late it may be and is rebuilt when it is gone or of another
model. Words come first, at once; vectors, which are kept nowhere else, follow behind the documents' (`Vectoriser`). A block
is a row, so who is asked what needs no scope here: a session that moves between projects leaves the index as it is.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import structlog

from vademecum.engines.duckdb.user_store import UserStore
from vademecum.engines.duckdb.user_stores import UserStores
from vademecum.engines.lance import Block, Chunk, IndexDamaged
from vademecum.errors import Broken
from vademecum.model.memory.indexable_text import (
    FINISHED,
    KINDS,
    Piece,
    dated,
    decode,
    kind_of,
    pieces,
    said,
    turn,
)
from vademecum.model.schema.vector_codec import Vectors
from vademecum.model.sync.transaction import Change
from vademecum.services.models.active_model import Inference
from vademecum.services.search.indexing import Indexer, Indexes, IndexReplaced, SourcePage
from vademecum.services.sync.batches import BATCH_ROWS, read_batches, split_into_batches

if TYPE_CHECKING:
    from vademecum.engines.onnx.embedder import Embedder

FOLDER = "recall"
TURN = 16  # rows that get vectors before it is the next user's turn
ATTEMPTS = 3

_log = structlog.get_logger("vademecum.recall")


def has_recallable_changes(changes: Iterable[Change]) -> bool:
    """Has a commit changed what can be recalled? A turn that is being answered is saved every two seconds, and cannot."""
    return any(kind_of(change.key) in KINDS and not _is_under_way(change) for change in changes)


def _is_under_way(change: Change) -> bool:
    if kind_of(change.key) != "episodes" or change.head is None or change.head.deleted:
        return False
    return decode(change.body).status not in FINISHED


def list_deleted_blocks(changes: Iterable[Change]) -> set[str]:
    """Names of the blocks that a commit has buried."""
    return {c.key for c in changes if kind_of(c.key) in KINDS and (c.head is None or c.head.deleted)}


class MemoryBlockSource:
    """The source of the recall index."""

    def __init__(self, indexes: Indexes) -> None:
        self._indexes = indexes

    async def page(self, store: UserStore, after: int) -> SourcePage:
        latest = store.seq
        entries = sorted(entry for kind in KINDS for entry in store.entries_after(kind, after, BATCH_ROWS))[
            :BATCH_ROWS
        ]
        keys = next(split_into_batches(store, [key for _, key in entries]), [])
        if not keys:
            return SourcePage([], latest, more=False)
        seqs = {key: seq for seq, key in entries}
        more = len(keys) < len(entries) or len(entries) == BATCH_ROWS
        upto = seqs[keys[-1]] if more else latest
        bodies = await store.read_bodies(keys)
        rows = [(key, bodies[key]) for key in keys]
        async for portion in read_batches(store, await self._following(store, keys)):
            rows += portion
        return SourcePage(rows, upto, more)

    async def _following(self, store: UserStore, keys: Iterable[str]) -> list[str]:
        """The turns whose vectors were made with what one of `keys` said before it was edited or died: they are made
        anew."""
        turns = [key for key in keys if kind_of(key) == "episodes"]
        if not turns:
            return []
        try:
            found = await self._indexes.read(store.user_id, lambda index: index.in_sections(turns))
        except (IndexDamaged, IndexReplaced):  # one that is begun anew holds none of them
            return []
        return sorted(key for key in set(found).difference(keys) if store.is_live(key))

    def blocks(self, rows: Iterable[tuple[str, bytes]], model: str | None) -> tuple[list[Block], list[str]]:
        blocks: list[Block] = []
        deleted: list[str] = []
        for key, body in rows:
            row = decode(body)
            if text := said(key, row):
                blocks.append(_block(key, pieces(text), dated(key, row)))
            else:
                deleted.append(key)
        return [block for block in blocks if block.chunks], deleted


def _block(
    key: str, cut_up: list[Piece], day: str, vectors: Vectors | None = None, before: str | None = None
) -> Block:
    """`day`: marks of the row's day. `before`: the turn that it was embedded with; it stands where a document has the
    heading over a chunk."""
    chunks = [Chunk(number, None, before, piece.text, day) for number, piece in enumerate(cut_up)]
    return Block(key, key, 0, chunks, vectors)


class MemoryVectorizer:
    """Gives the rows of the recall index their vectors. `again`: asks for another turn of this user, behind the users
    that wait. A stop or a crash costs a turn."""

    def __init__(
        self,
        users: UserStores,
        indexes: Indexes,
        indexer: Indexer,
        inference: Inference,
        again: Callable[[str], None],
    ) -> None:
        self._users = users
        self._indexes = indexes
        self._indexer = indexer
        self._inference = inference
        self._again = again
        self._failures: Counter[tuple[str, str, int]] = Counter()  # (user, row, its seq)

    async def follow(self, user_id: str) -> None:
        """Bring the words of the index up to the records, and ask for the vectors."""
        await self._indexer.work(user_id)
        if await self._indexes.read(user_id, lambda index: index.without_vectors()):
            self._again(user_id)

    async def work(self, user_id: str) -> None:
        """A turn. Raises Broken when rows have failed that are worth another attempt."""
        embedder = await self._inference.get()
        if embedder is None:
            return
        await self._indexer.work(user_id)  # who waits for this job waits for what was committed before
        todo = await self._todo(user_id)
        befores = await self._befores(user_id, todo[:TURN])
        made: list[_Made] = []
        failed = 0
        for key in todo[:TURN]:
            try:
                made += await self._vectors(user_id, key, befores.get(key), embedder)
            except Exception as error:
                if self._inference.now() is not embedder:
                    return  # the model was changed, and that asks for the whole index anew
                failed += await self._fail(user_id, key, error)
        await self._indexer.update_vectors(user_id, embedder.model, lambda store: _standing(store, made))
        if len(todo) > TURN:
            self._again(user_id)
        elif failed:
            raise Broken(f"{failed} rows of memory could not be embedded.")

    async def _todo(self, user_id: str) -> list[str]:
        """The rows without vectors, but for those given up and those that have changed: the index will hear of these."""
        wanted, (epoch, seq) = await self._indexes.read(
            user_id, lambda index: (index.without_vectors(), index.checkpoint)
        )
        async with self._users.open(user_id) as store:
            rows = store.row_index.rows
            return [
                key
                for key in wanted
                if store.epoch == epoch and store.is_live(key) and rows[key].seq <= seq
                if self._failures[user_id, key, rows[key].seq] < ATTEMPTS
            ]

    async def _befores(self, user_id: str, keys: list[str]) -> dict[str, str]:
        """Of those of `keys` that are turns and not the first: the turn before."""
        async with self._users.open(user_id) as store:
            heads = store.row_index
            sessions = {
                name for key in keys if kind_of(key) == "episodes" for name in heads.rows[key].parents
            }
            named = [list(heads.dependents.get(name, ())) for name in sessions]  # copies, for the thread
            found = await asyncio.to_thread(lambda: [_turns_before(store, some, keys) for some in named])
        return {key: before for some in found for key, before in some.items()}

    async def _vectors(self, user_id: str, key: str, before: str | None, embedder: Embedder) -> list[_Made]:
        async with self._users.open(user_id) as store:
            names = [key] if before is None else [key, before]
            heads = store.row_index.rows
            seqs = {name: heads[name].seq for name in names if name in heads}
            bodies = await store.read_bodies(names)
        row = decode(bodies.get(key, b"{}"))
        earlier = b"{}" if before is None else bodies.get(before, b"{}")
        cut_up = await asyncio.to_thread(lambda: pieces(said(key, row), turn(decode(earlier))))
        matrices: list[Vectors] = []
        for at in range(0, len(cut_up), TURN):  # a long turn is no reason to hold up documents
            texts = [piece.embedded for piece in cut_up[at : at + TURN]]
            matrix = await self._inference.passages(embedder, user_id, key, texts)
            if matrix is None:
                return []
            matrices.append(matrix)
        if not matrices:
            return []
        return [_Made(_block(key, cut_up, dated(key, row), np.concatenate(matrices), before), seqs)]

    async def _fail(self, user_id: str, key: str, error: Exception) -> bool:
        """Is another attempt worth while?"""
        async with self._users.open(user_id) as store:
            head = store.row_index.rows.get(key)
        place = user_id, key, head.seq if head is not None else 0
        self._failures[place] += 1
        _log.error("row of memory not embedded", exc_info=error)
        return self._failures[place] < ATTEMPTS


class _Made(NamedTuple):
    """A block with its vectors, and the `seq` of the rows they were made from."""

    block: Block
    seqs: dict[str, int]


def _standing(store: UserStore, made: Iterable[_Made]) -> list[Block]:
    """The blocks whose rows are still what they were made from."""
    rows = store.row_index.rows
    return [
        one.block
        for one in made
        if all(store.is_live(key) and rows[key].seq == seq for key, seq in one.seqs.items())
    ]


def _turns_before(store: UserStore, named: Iterable[str], keys: Iterable[str]) -> dict[str, str]:
    """Of those of `keys` that are among the turns of a session: the one that was written last before.

    By `seq`, not by time: heads tell it, where times would mean reading the whole session for each turn."""
    heads = store.row_index.rows
    turns = sorted(
        (heads[name].seq, name) for name in named if kind_of(name) == "episodes" and store.is_live(name)
    )
    at = {name: place for place, (_, name) in enumerate(turns)}
    return {key: turns[at[key] - 1][1] for key in keys if at.get(key)}
