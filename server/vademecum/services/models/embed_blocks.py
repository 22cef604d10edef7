"""Embed blocks that were uploaded without vectors, in the background. Sync sends the vectors to devices.

Blocks are embedded one at a time, so after a stop or a crash at most one is embedded again. If a block changes while it
is embedded, the vectors are discarded and the new version is embedded later. Small documents come before large ones,
and users take turns of a few blocks, so that no user waits for another user's library. A block that fails does not
delay the blocks after it. After MAX_ATTEMPTS failures its document gets the status `failed`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import structlog

from vademecum.errors import Broken
from vademecum.model.records.store_interface import UserStore, UserStores
from vademecum.model.schema import vector_codec
from vademecum.model.schema.collections import Json
from vademecum.model.sync.transaction import WAITING, Change, Transaction
from vademecum.services.documents.blocks import count_chunks, list_blocks_without_vectors
from vademecum.services.documents.documents import read_documents
from vademecum.services.models.active_model import Inference
from vademecum.services.models.embed_progress import EmbedProgress
from vademecum.services.sync.batches import list_live_keys

if TYPE_CHECKING:
    from vademecum.engines.onnx.embedder import Embedder
    from vademecum.model.schema.vector_codec import Vectors

COLLECTION = "vectorEmbeddings"
BLOCKS_PER_TURN = 4
MAX_ATTEMPTS = 3
NOT_EMBEDDED = "not_embedded"  # code of documents of which search finds a part only by its words

_log = structlog.get_logger("vademecum.embed")


class _Status(msgspec.Struct):
    status: str = ""


_status = msgspec.json.Decoder(_Status)


def needs_embedding(changes: list[Change]) -> bool:
    """Return whether a commit needs a run of this job: it changed a block, or a document with the status `pending`.

    Blocks with vectors count, too, because one of them may complete its document. The job's own writes do not count.
    """
    return any(_is_relevant(change) for change in changes)


def _is_relevant(change: Change) -> bool:
    head = change.head
    if head is None or head.deleted or head.seq == WAITING or change.same_text:
        return False
    if change.key.startswith("documents/"):
        return _status.decode(change.body).status == "pending"
    return head.chunks > 0


def deleted_block_ids(changes: list[Change]) -> set[str]:
    """Return the ids of the blocks that a commit deleted."""
    return {
        change.key.partition("/")[2]
        for change in changes
        if change.key.startswith(f"{COLLECTION}/") and change.removes_row
    }


class Block(NamedTuple):
    """A version of a block. An edited block has a new `seq`, so its earlier failures do not count."""

    id: str
    seq: int

    @property
    def document_id(self) -> str:
        return self.id.rpartition(".")[0]


class EmbedJob:
    """The job that embeds blocks. `schedule_again`: schedules another turn of a user, after other waiting users."""

    def __init__(
        self,
        users: UserStores,
        inference: Inference,
        progress: EmbedProgress,
        schedule_again: Callable[[str], None],
    ) -> None:
        self._users = users
        self._inference = inference
        self._progress = progress
        self._schedule_again = schedule_again
        self._failures: Counter[tuple[str, Block]] = Counter()  # keys: user and block

    async def work(self, user_id: str) -> None:
        """Embed the blocks of one turn. Raises Broken, so that the job backs off, if only failed blocks remain."""
        has_more = False
        try:
            has_more = await self._turn(user_id)
        finally:
            if not has_more:
                self._progress.forget(user_id)
        if has_more:
            self._schedule_again(user_id)

    async def _turn(self, user_id: str) -> bool:
        """Embed the blocks of one turn and update the documents' status. Return whether blocks remain."""
        embedder = await self._inference.for_user(user_id)
        todo: list[Block] = []
        failed: list[Block] = []
        if embedder is not None:
            todo = await self._list_todo(user_id, embedder)
            attempts = self._failures[user_id, todo[0]] if todo else 0
            failed = [
                block for block in todo[:BLOCKS_PER_TURN] if not await self._attempt(user_id, block, embedder)
            ]
        async with self._users.open(user_id) as store:
            model = embedder.model if embedder is not None else None
            await _update_status(store, model, self._failed_documents(store))
        retries = [block for block in failed if self._failures[user_id, block] < MAX_ATTEMPTS]
        pending = [*retries, *todo[BLOCKS_PER_TURN:]]
        if pending and all(self._failures[user_id, block] > attempts for block in pending):
            raise Broken(f"{len(pending)} blocks could not be embedded.")
        return bool(pending)

    async def _list_todo(self, user_id: str, embedder: Embedder) -> list[Block]:
        """Return the blocks without vectors in the order of `order_blocks`, except those that failed too often."""
        async with self._users.open(user_id) as store:
            if not self._inference.serves(embedder, user_id):
                return []  # the model has changed, and the change has scheduled this job again
            rows = store.row_index.rows
            blocks = [
                Block(block_id, rows[f"{COLLECTION}/{block_id}"].seq)
                for block_id in list_blocks_without_vectors(store, embedder.model)
            ]
        failures = {block: count for (owner, block), count in self._failures.items() if owner == user_id}
        return await asyncio.to_thread(order_blocks, blocks, failures)

    def _failed_documents(self, store: UserStore) -> set[str]:
        """Return the ids of the documents with a block that failed too often."""
        heads = store.row_index.rows
        return {
            block.document_id
            for (owner, block), count in self._failures.items()
            if owner == store.user_id and count >= MAX_ATTEMPTS
            if (head := heads.get(f"{COLLECTION}/{block.id}")) is not None and head.seq == block.seq
        }

    async def _attempt(self, user_id: str, block: Block, embedder: Embedder) -> bool:
        """Embed a block. Return False if it failed."""
        try:
            await self._embed(user_id, block, embedder)
        except Exception as error:
            self._failures[user_id, block] += 1
            _log.error("block not embedded", exc_info=error)
            return False
        self._failures.pop((user_id, block), None)
        return True

    async def _embed(self, user_id: str, block: Block, embedder: Embedder) -> None:
        key = f"{COLLECTION}/{block.id}"
        async with self._users.open(user_id) as store:
            body = (await store.read_bodies([key])).get(key)
            head = store.row_index.rows.get(key)
        if (
            body is None
            or head is None
            or head.seq != block.seq
            or not self._inference.serves(embedder, user_id)
        ):
            return  # the block or the model has changed, and the change has scheduled this job again
        row: Json = msgspec.json.decode(body)
        texts = [chunk["text"] for chunk in row["chunks"]]
        matrix = await self._inference.embed_block(embedder, user_id, row["id"], texts)
        if matrix is None:
            return
        filled = with_vectors(row, embedder, matrix)
        encoded = msgspec.json.encode(filled)

        def store_vectors(tx: Transaction) -> None:
            current = tx.head(key)
            if current is not None and current.seq == block.seq:
                tx.put(key, filled, encoded, same_text=True)

        async with self._users.open(user_id) as store:
            await store.write(store_vectors)
            self._progress.publish(store, row["documentId"], embedder.model)


def with_vectors(row: Json, embedder: Embedder, matrix: Vectors) -> Json:
    """Return the row of a block with these vectors and their model."""
    vectors = {"model": embedder.model, "dims": embedder.dims, "embedding": vector_codec.encode(matrix)}
    return {**row, **vectors}


def order_blocks(blocks: list[Block], failures: Mapping[Block, int]) -> list[Block]:
    """Order blocks by their number of failures, then by how many blocks of their document have no vectors.

    Blocks that failed too often are left out.
    """
    missing = Counter(block.document_id for block in blocks)
    todo = [block for block in blocks if failures.get(block, 0) < MAX_ATTEMPTS]
    return sorted(todo, key=lambda block: (failures.get(block, 0), missing[block.document_id]))


async def _update_status(store: UserStore, model: str | None, failed: set[str]) -> None:
    """Set the status of pending documents that are complete or have failed."""
    cards = [card async for card, _ in read_documents(store, await list_live_keys(store, "documents"))]
    pending = [f"documents/{card.id}" for card in cards if card.status == "pending"]
    if not pending:
        return
    unembedded = list_blocks_without_vectors(store, model) if model is not None else []
    incomplete = {block_id.rpartition(".")[0] for block_id in unembedded}
    counts = {i: count_chunks(store, i) for i in (key.partition("/")[2] for key in pending)}
    await store.write(lambda tx: _write_status(tx, pending, incomplete, counts, failed))


def _write_status(
    tx: Transaction, keys: list[str], incomplete: set[str], counts: dict[str, int], failed: set[str]
) -> None:
    """Set the status to `ready` if all chunks are stored and, with a model, embedded, or to `failed`.

    `updatedAt` stays unchanged, because no user edited the row.
    """
    for key in keys:
        if tx.row_state(key) != "live":
            continue
        row = tx.row(key)
        if row["status"] != "pending":
            continue
        has_all_chunks = counts.get(row["id"], 0) >= row["chunkCount"] > 0
        if row["id"] in failed:
            updated = {**row, "status": "failed", "statusDetail": NOT_EMBEDDED}
        elif has_all_chunks and row["id"] not in incomplete:
            updated = {**row, "status": "ready"}
        else:
            continue
        tx.put(key, updated, msgspec.json.encode(updated), same_text=True)
