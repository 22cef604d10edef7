"""Progress: how far the embedding of a document is, told on the streams of its user and kept nowhere.

The row says `pending`, then `ready`; what lies between would be a write a block on every device.
"""

from __future__ import annotations

import time

import msgspec

from vademecum.model.records.store_interface import UserStore
from vademecum.services.documents.blocks import count_chunks
from vademecum.services.sync.stream import Hub, encode_event

EVERY_S = 0.5  # of one document


class DocumentProgress(msgspec.Struct, rename="camel"):
    """`done` chunks of `of` have vectors."""

    document_id: str
    done: int
    of: int


class Teller:
    """Remembers when it last spoke of a document, until the user's work is `over`."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._told: dict[str, dict[str, float]] = {}  # user -> document -> when

    def tell(self, store: UserStore, document_id: str, model: str) -> None:
        told = self._told.setdefault(store.user_id, {})
        now = time.monotonic()
        if not self._hub.has_subscribers(store.user_id) or now - told.get(document_id, -EVERY_S) < EVERY_S:
            return
        told[document_id] = now
        progress = DocumentProgress(
            document_id, count_chunks(store, document_id, model), count_chunks(store, document_id)
        )
        self._hub.publish_best_effort(
            store.user_id, "documents", encode_event(msgspec.json.encode(progress), "progress")
        )

    def over(self, user_id: str) -> None:
        self._told.pop(user_id, None)
