"""Embed: blocks that came without vectors get them in the background, and flow out through the ordinary sync.

A block at a time, so that a stop or a crash loses at most one. The block must still be what was read when its
vectors are stored; otherwise they are thrown away and the newer state is embedded in its turn. Small documents come
before large ones, and after a few blocks it is the next user's turn: nobody waits for somebody else's library. A block
that the model cannot take holds up no other; after some attempts its document says so.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

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
from vademecum.services.models.embed_progress import Teller
from vademecum.services.sync.batches import list_live_keys

if TYPE_CHECKING:
    from vademecum.engines.onnx.embedder import Embedder

COLLECTION = "vectorEmbeddings"
TURN = 4  # blocks
ATTEMPTS = 3
FAILED = "A part of it could not be prepared for search by meaning. It is found by its words; add it again for the rest."

_log = structlog.get_logger("vademecum.embed")


class _Status(msgspec.Struct):
    status: str = ""


_status = msgspec.json.Decoder(_Status)


def needs_work(changes: list[Change]) -> bool:
    """Has a commit brought a block, with or without vectors, or a document that waits for its status?

    A block with vectors may be the last that its document waited for. What this job writes itself asks for nothing.
    """
    return any(_is_news(change) for change in changes)


def _is_news(change: Change) -> bool:
    head = change.head
    if head is None or head.deleted or head.seq == WAITING or change.same_text:
        return False
    if change.key.startswith("documents/"):
        return _status.decode(change.body).status == "pending"
    return head.chunks > 0


def gone(changes: list[Change]) -> set[str]:
    """Ids of the blocks that a commit has buried."""
    return {
        change.key.partition("/")[2]
        for change in changes
        if change.key.startswith(f"{COLLECTION}/") and change.removes_row
    }


_Block = tuple[str, int]  # its id and seq: an edited one is tried again


class EmbedJob:
    """`again`: asks for another turn of this user, behind the users that wait."""

    def __init__(
        self, users: UserStores, inference: Inference, teller: Teller, again: Callable[[str], None]
    ) -> None:
        self._users = users
        self._inference = inference
        self._teller = teller
        self._again = again
        self._failures: Counter[tuple[str, str, int]] = Counter()  # (user, block, its seq)

    async def work(self, user_id: str) -> None:
        """A turn. Raises Broken when all that is left has failed once more and is worth another attempt."""
        goes_on = False
        try:
            goes_on = await self._turn(user_id)
        finally:
            if not goes_on:
                self._teller.over(user_id)
        if goes_on:
            self._again(user_id)

    async def _turn(self, user_id: str) -> bool:
        """Embed a turn's blocks, then settle the documents' status. Is there more to do?"""
        embedder = await self._inference.for_user(user_id)
        todo: list[_Block] = []
        failed: list[_Block] = []
        if embedder is not None:
            todo = await self._todo(user_id, embedder)
            attempt = self._tries(user_id, todo[0]) if todo else 0
            failed = [block for block in todo[:TURN] if not await self._attempt(user_id, block, embedder)]
        async with self._users.open(user_id) as store:
            await _settle(store, embedder.model if embedder is not None else None, self._hopeless(store))
        left = [*(block for block in failed if self._tries(user_id, block) < ATTEMPTS), *todo[TURN:]]
        if left and all(self._tries(user_id, block) > attempt for block in left):
            raise Broken(f"{len(left)} blocks could not be embedded.")
        return bool(left)

    async def _todo(self, user_id: str, embedder: Embedder) -> list[_Block]:
        """The blocks that lack vectors and are not given up, in the order of their turns."""
        async with self._users.open(user_id) as store:
            if not self._inference.serves(embedder, user_id):
                return []  # the model has just been changed; that asks for this job again
            rows = store.row_index.rows
            blocks = [
                (block_id, rows[f"{COLLECTION}/{block_id}"].seq)
                for block_id in list_blocks_without_vectors(store, embedder.model)
            ]
        tries = {(i, seq): n for (owner, i, seq), n in self._failures.items() if owner == user_id}
        return await asyncio.to_thread(in_turn, blocks, tries)

    def _tries(self, user_id: str, block: _Block) -> int:
        return self._failures[user_id, *block]

    def _hopeless(self, store: UserStore) -> set[str]:
        """Ids of the documents of blocks that are given up."""
        heads = store.row_index.rows
        return {
            _document_of(block_id)
            for (owner, block_id, seq), tries in self._failures.items()
            if owner == store.user_id and tries >= ATTEMPTS
            if (head := heads.get(f"{COLLECTION}/{block_id}")) is not None and head.seq == seq
        }

    async def _attempt(self, user_id: str, block: _Block, embedder: Embedder) -> bool:
        try:
            await self._embed_block(user_id, *block, embedder)
        except Exception as error:
            self._failures[user_id, *block] += 1
            _log.error("block not embedded", exc_info=error)
            return False
        self._failures.pop((user_id, *block), None)
        return True

    async def _embed_block(self, user_id: str, block_id: str, seq: int, embedder: Embedder) -> None:
        key = f"{COLLECTION}/{block_id}"
        async with self._users.open(user_id) as store:
            body = (await store.read_bodies([key])).get(key)
            head = store.row_index.rows.get(key)
        if body is None or head is None or head.seq != seq or not self._inference.serves(embedder, user_id):
            return  # it has changed since it was listed, and the change has asked for this job again
        row: Json = msgspec.json.decode(body)
        texts = [chunk["text"] for chunk in row["chunks"]]
        matrix = await self._inference.passages(embedder, user_id, row["id"], texts)
        if matrix is None:
            return
        filled = {
            **row,
            "model": embedder.model,
            "dims": embedder.dims,
            "embedding": vector_codec.encode(matrix),
        }
        encoded = msgspec.json.encode(filled)

        def store_vectors(tx: Transaction) -> None:
            now = tx.head(key)
            if now is not None and now.seq == seq:
                tx.put(key, filled, encoded, same_text=True)

        async with self._users.open(user_id) as store:
            await store.write(store_vectors)
            self._teller.tell(store, row["documentId"], embedder.model)


def in_turn(blocks: list[_Block], tries: Mapping[_Block, int]) -> list[_Block]:
    """The blocks in the order of their turns: first those that failed least often, and of these the blocks of the
    document that lacks the fewest. Those that failed too often are left out."""
    left = Counter(_document_of(block_id) for block_id, _ in blocks)
    todo = [block for block in blocks if tries.get(block, 0) < ATTEMPTS]
    return sorted(todo, key=lambda block: (tries.get(block, 0), left[_document_of(block[0])]))


async def _settle(store: UserStore, model: str | None, hopeless: set[str]) -> None:
    known = [card async for card, _ in read_documents(store, await list_live_keys(store, "documents"))]
    waiting = [f"documents/{card.id}" for card in known if card.status == "pending"]
    if waiting:
        missing = (
            set(map(_document_of, list_blocks_without_vectors(store, model))) if model is not None else set()
        )
        counts = {i: count_chunks(store, i) for i in (k.partition("/")[2] for k in waiting)}
        await store.write(lambda tx: _mark(tx, waiting, missing, counts, hopeless))


def _document_of(block_id: str) -> str:
    return block_id.rpartition(".")[0]


def _mark(
    tx: Transaction, keys: list[str], missing: set[str], counts: dict[str, int], failed: set[str]
) -> None:
    """`ready`: all chunks are here and, where there is a model, embedded. `updatedAt` stays: nobody edited it."""
    for key in keys:
        if tx.row_state(key) != "live":
            continue
        row = tx.row(key)
        whole = counts.get(row["id"], 0) >= row["chunkCount"] > 0
        if row["status"] != "pending":
            continue
        if row["id"] in failed:
            settled = {**row, "status": "failed", "statusDetail": FAILED}
        elif whole and row["id"] not in missing:
            settled = {**row, "status": "ready"}
        else:
            continue
        tx.put(key, settled, msgspec.json.encode(settled), same_text=True)
