"""Suggest documents to delete: unborrowed ones first, then the least recently used, then the least often used."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec


class Candidate(msgspec.Struct, frozen=True):
    """The usage of a document. `borrowed`: at least one session has borrowed it."""

    id: str
    borrowed: bool
    last_accessed_at: str
    access_count: int


def cleanup(documents: Iterable[Candidate], count: int) -> list[str]:
    """Return the ids of the first `count` documents to suggest."""
    ordered = sorted(documents, key=lambda d: (d.borrowed, d.last_accessed_at, d.access_count, d.id))
    return [document.id for document in ordered[:count]]
