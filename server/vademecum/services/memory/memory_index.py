"""Index turns, memories, entities and summaries for memory search, in `<user>/recall/`.

Like the document index, the memory index is derived data: it may lag behind the records, and it is rebuilt if it is
missing or belongs to another model. Words are indexed at once. Vectors, which are stored only in this index, are
computed after those of documents (`MemoryVectorizer`). Each row is one block. Searches resolve the scope, so moving a
session between projects does not change the index.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import structlog

from vademecum.engines.lance import Block, Chunk, IndexDamaged
from vademecum.errors import Broken
from vademecum.model.memory.indexable_text import (
    FINISHED,
    KINDS,
    Piece,
    decode,
    index_text,
    kind_of,
    row_date_terms,
    split_text,
    turn_text,
)
from vademecum.model.records.store_interface import UserStore, UserStores
from vademecum.model.schema.vector_codec import Vectors
from vademecum.model.sync.transaction import Change
from vademecum.services.models.active_model import Inference
from vademecum.services.search.indexing import Indexer, Indexes, IndexReplaced, SourcePage
from vademecum.services.sync.batches import BATCH_ROWS, read_batches, split_into_batches

if TYPE_CHECKING:
    from vademecum.engines.onnx.embedder import Embedder

FOLDER = "recall"
ROWS_PER_TURN = 16  # the number of rows of a user that get vectors before the next user's rows
MAX_ATTEMPTS = 3

_log = structlog.get_logger("vademecum.recall")


def has_recallable_changes(changes: Iterable[Change]) -> bool:
    """Return whether a commit changed searchable rows. An unfinished turn is saved every two seconds but not indexed."""
    return any(kind_of(change.key) in KINDS and not _is_unfinished(change) for change in changes)


def _is_unfinished(change: Change) -> bool:
    if kind_of(change.key) != "episodes" or change.removes_row:
        return False
    return decode(change.body).status not in FINISHED


def list_deleted_blocks(changes: Iterable[Change]) -> set[str]:
    """Return the names of the blocks that a commit deleted."""
    return {c.key for c in changes if kind_of(c.key) in KINDS and c.removes_row}


class MemoryBlockSource:
    """Reads the rows of the memory index."""

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
        async for batch in read_batches(store, await self._list_dependent_turns(store, keys)):
            rows += batch
        return SourcePage(rows, upto, more)

    async def _list_dependent_turns(self, store: UserStore, keys: Iterable[str]) -> list[str]:
        """Return the turns to embed again: their vectors include the old text of changed turns among `keys`."""
        turns = [key for key in keys if kind_of(key) == "episodes"]
        if not turns:
            return []
        try:
            found = await self._indexes.read(store.user_id, lambda index: index.in_sections(turns))
        except (IndexDamaged, IndexReplaced):  # the index is being rebuilt, with all turns embedded again
            return []
        return sorted(key for key in set(found).difference(keys) if store.is_live(key))

    def blocks(self, rows: Iterable[tuple[str, bytes]], model: str | None) -> tuple[list[Block], list[str]]:
        blocks: list[Block] = []
        deleted: list[str] = []
        for key, body in rows:
            row = decode(body)
            if text := index_text(key, row):
                blocks.append(_block(key, split_text(text), row_date_terms(key, row)))
            else:
                deleted.append(key)
        return [block for block in blocks if block.chunks], deleted


def _block(
    key: str, pieces: list[Piece], day: str, vectors: Vectors | None = None, before: str | None = None
) -> Block:
    """Return the block of a row. `day`: search terms of the row's date.

    `before`: the key of the previous turn, which is embedded together with this one. The key is stored in the `section`
    field of the chunks.
    """
    chunks = [Chunk(number, None, before, piece.text, day) for number, piece in enumerate(pieces)]
    return Block(key, key, 0, chunks, vectors)


class MemoryVectorizer:
    """Computes the vectors of the memory index.

    `schedule_again`: queues another run for the user, after other waiting users. After a stop or crash, at most the
    vectors of one run are computed again.
    """

    def __init__(
        self,
        users: UserStores,
        indexes: Indexes,
        indexer: Indexer,
        inference: Inference,
        schedule_again: Callable[[str], None],
    ) -> None:
        self._users = users
        self._indexes = indexes
        self._indexer = indexer
        self._inference = inference
        self._schedule_again = schedule_again
        self._failures: Counter[tuple[str, str, int]] = Counter()  # keys: user, row key and `seq` of the row

    async def update_words(self, user_id: str) -> None:
        """Update the words of the index from the records, and queue the computation of vectors."""
        await self._indexer.work(user_id)
        if await self._indexes.read(user_id, lambda index: index.without_vectors()):
            self._schedule_again(user_id)

    async def work(self, user_id: str) -> None:
        """Compute the vectors of up to ROWS_PER_TURN rows. Raises Broken if rows failed that should be retried."""
        embedder = await self._inference.get()
        if embedder is None:
            return
        await self._indexer.work(user_id)  # include all earlier commits, which callers of `drain` wait for
        todo = await self._list_todo(user_id)
        previous_turns = await self._find_previous_turns(user_id, todo[:ROWS_PER_TURN])
        embedded: list[_EmbeddedBlock] = []
        failed = 0
        for key in todo[:ROWS_PER_TURN]:
            try:
                embedded += await self._embed(user_id, key, previous_turns.get(key), embedder)
            except Exception as error:
                if self._inference.opened() is not embedder:
                    return  # the model has changed, so the whole index is rebuilt
                failed += await self._count_failure(user_id, key, error)
        await self._indexer.update_vectors(
            user_id, embedder.model, lambda store: _unchanged_blocks(store, embedded)
        )
        if len(todo) > ROWS_PER_TURN:
            self._schedule_again(user_id)
        elif failed:
            raise Broken(f"{failed} rows of the memory could not be embedded.")

    async def _list_todo(self, user_id: str) -> list[str]:
        """Return the keys of rows without vectors.

        Rows that failed too often are left out. Rows that changed after they were indexed are left out, too, because
        the next indexing includes them.
        """
        keys, (epoch, seq) = await self._indexes.read(
            user_id, lambda index: (index.without_vectors(), index.checkpoint)
        )
        async with self._users.open(user_id) as store:
            rows = store.row_index.rows
            return [
                key
                for key in keys
                if store.epoch == epoch and store.is_live(key) and rows[key].seq <= seq
                if self._failures[user_id, key, rows[key].seq] < MAX_ATTEMPTS
            ]

    async def _find_previous_turns(self, user_id: str, keys: list[str]) -> dict[str, str]:
        """Map each turn among `keys` to the previous turn of its session. The first turn of a session is left out."""
        async with self._users.open(user_id) as store:
            heads = store.row_index
            sessions = {
                name for key in keys if kind_of(key) == "episodes" for name in heads.rows[key].parents
            }
            # Copy the sets, because commits may change them while the thread runs.
            dependents_by_session = [list(heads.dependents.get(name, ())) for name in sessions]
            found = await asyncio.to_thread(
                lambda: [_previous_turns_in(store, dependents, keys) for dependents in dependents_by_session]
            )
        return {key: before for dependents in found for key, before in dependents.items()}

    async def _embed(
        self, user_id: str, key: str, before: str | None, embedder: Embedder
    ) -> list[_EmbeddedBlock]:
        async with self._users.open(user_id) as store:
            names = [key] if before is None else [key, before]
            heads = store.row_index.rows
            seqs = {name: heads[name].seq for name in names if name in heads}
            bodies = await store.read_bodies(names)
        row = decode(bodies.get(key, b"{}"))
        earlier = b"{}" if before is None else bodies.get(before, b"{}")
        pieces = await asyncio.to_thread(lambda: split_text(index_text(key, row), turn_text(decode(earlier))))
        matrices: list[Vectors] = []
        # Embed small batches, so that a long turn does not delay documents.
        for at in range(0, len(pieces), ROWS_PER_TURN):
            texts = [piece.embedded for piece in pieces[at : at + ROWS_PER_TURN]]
            matrix = await self._inference.embed_block(embedder, user_id, key, texts)
            if matrix is None:
                return []
            matrices.append(matrix)
        if not matrices:
            return []
        return [
            _EmbeddedBlock(
                _block(key, pieces, row_date_terms(key, row), np.concatenate(matrices), before), seqs
            )
        ]

    async def _count_failure(self, user_id: str, key: str, error: Exception) -> bool:
        """Count a failure. Return whether another attempt is allowed."""
        async with self._users.open(user_id) as store:
            head = store.row_index.rows.get(key)
        place = user_id, key, head.seq if head is not None else 0
        self._failures[place] += 1
        _log.error("row of memory not embedded", exc_info=error)
        return self._failures[place] < MAX_ATTEMPTS


class _EmbeddedBlock(NamedTuple):
    """A block with its vectors. `seqs`: by key, the `seq` that each row had when the vectors were computed from it."""

    block: Block
    seqs: dict[str, int]


def _unchanged_blocks(store: UserStore, embedded: Iterable[_EmbeddedBlock]) -> list[Block]:
    """Return the blocks whose rows have not changed since their vectors were computed."""
    rows = store.row_index.rows
    return [
        one.block
        for one in embedded
        if all(store.is_live(key) and rows[key].seq == seq for key, seq in one.seqs.items())
    ]


def _previous_turns_in(store: UserStore, dependents: Iterable[str], keys: Iterable[str]) -> dict[str, str]:
    """Map each turn of a session that is among `keys` to the turn written before it. `dependents`: those of the session.

    Turns are ordered by `seq`, which is in memory. Ordering them by time would require reading the whole session.
    """
    heads = store.row_index.rows
    turns = sorted(
        (heads[name].seq, name) for name in dependents if kind_of(name) == "episodes" and store.is_live(name)
    )
    at = {name: place for place, (_, name) in enumerate(turns)}
    return {key: turns[at[key] - 1][1] for key in keys if at.get(key)}
