"""Embed: blocks that came without vectors get them in the background, and flow out through the ordinary sync.

A block at a time, so that a stop or a crash loses at most one. The block must still be what was read when its
vectors are stored; otherwise they are thrown away and the newer state is embedded in its turn.
"""

from __future__ import annotations

import msgspec

from vademecum.engines.duckdb.users import Users
from vademecum.engines.duckdb.userstore import UserStore
from vademecum.engines.onnx.embedder import Embedder
from vademecum.model import vectors
from vademecum.model.collections import Json
from vademecum.model.draft import Change, Draft
from vademecum.services.models import Inference

COLLECTION = "vectorEmbeddings"


def needs_work(changes: list[Change], model: str | None) -> bool:
    """Might a commit have brought blocks without current vectors, or a document that waits for its status?"""
    for change in changes:
        head = change.head
        if head is None or head.deleted or head.seq == 0:
            continue
        if change.key.startswith("documents/") and b'"pending"' in change.body:
            return True
        if change.key.startswith(f"{COLLECTION}/") and (
            model is None or b'"embedding":null' in change.body or model.encode() not in change.body
        ):
            return True
    return False


class EmbedJob:
    def __init__(self, users: Users, inference: Inference) -> None:
        self._users = users
        self._inference = inference

    async def work(self, user_id: str) -> None:
        """Embed every block that lacks vectors of the current model, then settle the documents' status."""
        embedder = await self._inference.get()
        if embedder is not None:
            async with self._users.open(user_id) as store:
                todo = await store.unembedded(embedder.model)
            for block_id in todo:
                await self._embed_block(user_id, f"{COLLECTION}/{block_id}", embedder)
        async with self._users.open(user_id) as store:
            await _settle(store, embedder.model if embedder is not None else None)

    async def _embed_block(self, user_id: str, key: str, embedder: Embedder) -> None:
        async with self._users.open(user_id) as store:
            body = (await store.bodies([key])).get(key)
            head = store.heads.rows.get(key)
        if body is None or head is None or head.deleted:
            return
        row: Json = msgspec.json.decode(body)
        matrix = await embedder.passages([c["text"] for c in row["chunks"]])
        filled = {**row, "model": embedder.model, "dims": embedder.dims, "embedding": vectors.encode(matrix)}
        encoded = msgspec.json.encode(filled)

        def store_vectors(draft: Draft) -> None:
            now = draft.head(key)
            if now is not None and now.seq == head.seq:
                draft.put(key, filled, encoded)

        async with self._users.open(user_id) as store:
            await store.write(store_vectors)


async def _settle(store: UserStore, model: str | None) -> None:
    documents = [k for k in store.heads.rows if k.startswith("documents/") and store.live(k)]
    rows = {k: msgspec.json.decode(b) for k, b in (await store.bodies(documents)).items()}
    waiting = [k for k, row in rows.items() if row.get("status") == "pending"]
    if waiting:
        missing = set(await store.unembedded(model)) if model is not None else set()
        counts = await store.chunk_counts([k.partition("/")[2] for k in waiting])
        await store.write(lambda draft: _mark_ready(draft, waiting, missing, counts))


def _mark_ready(draft: Draft, keys: list[str], missing: set[str], counts: dict[str, int]) -> None:
    """`ready`: all chunks are here and, where there is a model, embedded. `updatedAt` stays: nobody edited it."""
    for key in keys:
        if draft.life(key) != "live":
            continue
        row = draft.row(key)
        document_id = row["id"]
        whole = counts.get(document_id, 0) >= row["chunkCount"] > 0
        if (
            row["status"] != "pending"
            or not whole
            or any(b.rpartition(".")[0] == document_id for b in missing)
        ):
            continue
        ready = {**row, "status": "ready"}
        draft.put(key, ready, msgspec.json.encode(ready))
