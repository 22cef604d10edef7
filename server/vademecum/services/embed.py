"""Embed: blocks that came without vectors get them in the background, and flow out through the ordinary sync.

A block at a time, so that a stop or a crash loses at most one. The block must still be what was read when its
vectors are stored; otherwise they are thrown away and the newer state is embedded in its turn. A block that the model
cannot take holds up no other; after some attempts its document says so.
"""

from __future__ import annotations

from collections import Counter

import msgspec
import structlog

from vademecum.engines.duckdb.users import Users
from vademecum.engines.duckdb.userstore import UserStore
from vademecum.engines.onnx.embedder import Embedder
from vademecum.errors import Broken
from vademecum.model import vectors
from vademecum.model.collections import Json
from vademecum.model.draft import WAITING, Change, Draft
from vademecum.services.documents import cards, live_keys
from vademecum.services.models import Inference
from vademecum.services.progress import Teller

COLLECTION = "vectorEmbeddings"
ATTEMPTS = 3
FAILED = "A part of it could not be embedded. It is found by its words; edit or upload it again for the rest."

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
        if change.key.startswith(f"{COLLECTION}/") and (change.head is None or change.head.deleted)
    }


class EmbedJob:
    def __init__(self, users: Users, inference: Inference, teller: Teller) -> None:
        self._users = users
        self._inference = inference
        self._teller = teller
        self._failures: Counter[tuple[str, str, int]] = Counter()  # (user, block, its seq)

    async def work(self, user_id: str) -> None:
        """Embed every block that lacks vectors of the current model, then settle the documents' status.

        Raises Broken when blocks failed that are worth another attempt.
        """
        embedder = await self._inference.for_user(user_id)
        failed: list[tuple[str, int]] = []
        if embedder is not None:
            async with self._users.open(user_id) as store:
                if not self._inference.serves(embedder, user_id):
                    return  # the model has just been changed; that asks for this job again
                todo = [
                    (i, store.heads.rows[f"{COLLECTION}/{i}"].seq) for i in store.unembedded(embedder.model)
                ]
            for block in todo:
                if not await self._attempt(user_id, block, embedder):
                    failed.append(block)
            self._teller.over(user_id)
        hopeless = [
            block_id for block_id, seq in failed if self._failures[user_id, block_id, seq] >= ATTEMPTS
        ]
        async with self._users.open(user_id) as store:
            await _settle(store, embedder.model if embedder is not None else None, hopeless)
        if len(hopeless) < len(failed):
            raise Broken(f"{len(failed) - len(hopeless)} blocks could not be embedded.")

    async def _attempt(self, user_id: str, block: tuple[str, int], embedder: Embedder) -> bool:
        """`block`: its id and seq. An edited one is tried anew."""
        if self._failures[user_id, *block] >= ATTEMPTS:
            return False
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
            body = (await store.bodies([key])).get(key)
            head = store.heads.rows.get(key)
        if body is None or head is None or head.seq != seq or not self._inference.serves(embedder, user_id):
            return  # it has changed since it was listed, and the change has asked for this job again
        row: Json = msgspec.json.decode(body)
        texts = [chunk["text"] for chunk in row["chunks"]]
        matrix = await self._inference.passages(embedder, user_id, row["id"], texts)
        if matrix is None:
            return
        filled = {**row, "model": embedder.model, "dims": embedder.dims, "embedding": vectors.encode(matrix)}
        encoded = msgspec.json.encode(filled)

        def store_vectors(draft: Draft) -> None:
            now = draft.head(key)
            if now is not None and now.seq == seq:
                draft.put(key, filled, encoded, same_text=True)

        async with self._users.open(user_id) as store:
            await store.write(store_vectors)
            self._teller.tell(store, row["documentId"], embedder.model)


async def _settle(store: UserStore, model: str | None, hopeless: list[str]) -> None:
    known = [card async for card, _ in cards(store, await live_keys(store))]
    waiting = [f"documents/{card.id}" for card in known if card.status == "pending"]
    if waiting:
        missing = _documents_of(store.unembedded(model)) if model is not None else set()
        counts = {i: store.chunk_count(i) for i in (k.partition("/")[2] for k in waiting)}
        await store.write(lambda draft: _mark(draft, waiting, missing, counts, _documents_of(hopeless)))


def _documents_of(block_ids: list[str]) -> set[str]:
    return {block_id.rpartition(".")[0] for block_id in block_ids}


def _mark(draft: Draft, keys: list[str], missing: set[str], counts: dict[str, int], failed: set[str]) -> None:
    """`ready`: all chunks are here and, where there is a model, embedded. `updatedAt` stays: nobody edited it."""
    for key in keys:
        if draft.life(key) != "live":
            continue
        row = draft.row(key)
        whole = counts.get(row["id"], 0) >= row["chunkCount"] > 0
        if row["status"] != "pending":
            continue
        if row["id"] in failed:
            settled = {**row, "status": "failed", "statusDetail": FAILED}
        elif whole and row["id"] not in missing:
            settled = {**row, "status": "ready"}
        else:
            continue
        draft.put(key, settled, msgspec.json.encode(settled), same_text=True)
