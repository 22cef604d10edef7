"""Publish the embedding progress of documents on the streams of their user.

Progress is not stored, because every device would have to write the row again for each block. The stored status only
changes from `pending` to `ready` or `failed`.
"""

from __future__ import annotations

import time

import msgspec

from vademecum.model.records.store_interface import UserStore
from vademecum.services.documents.blocks import count_chunks
from vademecum.services.sync.stream import Hub, encode_event

MIN_INTERVAL_S = 0.5  # the minimum time between two events of a document


class DocumentProgress(msgspec.Struct, rename="camel"):
    """The progress of a document: `done` of its `of` chunks have vectors."""

    document_id: str
    done: int
    of: int


class EmbedProgress:
    """Publishes progress events, at most one for each document in `MIN_INTERVAL_S` seconds."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        # Maps each user to the documents with progress, and each document to the time of its last event.
        self._published: dict[str, dict[str, float]] = {}

    def publish(self, store: UserStore, document_id: str, model: str) -> None:
        if not self._hub.has_subscribers(store.user_id):
            return
        published = self._published.setdefault(store.user_id, {})
        now = time.monotonic()
        if now - published.get(document_id, -MIN_INTERVAL_S) < MIN_INTERVAL_S:
            return
        published[document_id] = now
        progress = DocumentProgress(
            document_id, count_chunks(store, document_id, model), count_chunks(store, document_id)
        )
        self._hub.publish_best_effort(
            store.user_id, "documents", encode_event(msgspec.json.encode(progress), "progress")
        )

    def forget(self, user_id: str) -> None:
        """Remove the stored times of a user whose blocks are all embedded."""
        self._published.pop(user_id, None)
