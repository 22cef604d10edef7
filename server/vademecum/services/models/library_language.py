"""Find accounts whose documents are mostly in languages that the model does not know."""

from __future__ import annotations

import asyncio
from math import ceil
from typing import TYPE_CHECKING

import msgspec

from vademecum.model.records.store_interface import UserStores
from vademecum.model.text.fusion import language_share

if TYPE_CHECKING:
    from vademecum.engines.onnx.embedder import Embedder

SAMPLED_BLOCKS = 20
SAMPLED_CHUNKS = 3  # of each block


async def is_mostly_foreign(users: UserStores, user_id: str, embedder: Embedder) -> bool:
    """Sample the account's passages.

    Return whether more than half are in languages that the model does not know.
    """
    if embedder.is_multilingual or users.is_new(user_id):
        return False
    async with users.open(user_id) as store:
        keys = sorted(key for key, head in store.row_index.rows.items() if head.chunks)
        bodies = await store.read_bodies(keys[:: max(1, ceil(len(keys) / SAMPLED_BLOCKS))])
    texts = [
        chunk["text"]
        for body in bodies.values()
        for chunk in msgspec.json.decode(body)["chunks"][:SAMPLED_CHUNKS]
    ]
    shares = await asyncio.to_thread(
        lambda: [language_share(text, embedder.count_tokens(text)) for text in texts]
    )
    return 2 * sum(share < 1 for share in shares) > len(shares)
