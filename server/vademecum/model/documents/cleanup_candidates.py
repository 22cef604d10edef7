"""What to delete when room is short: unborrowed first, then the least recently used, then the least used."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec


class Candidate(msgspec.Struct, frozen=True):
    """What of a document counts here. `borrowed`: some session has it."""

    id: str
    borrowed: bool
    last_accessed_at: str
    access_count: int


def cleanup(documents: Iterable[Candidate], count: int) -> list[str]:
    """Ids of the `count` documents that would be missed least."""
    ordered = sorted(documents, key=lambda d: (d.borrowed, d.last_accessed_at, d.access_count, d.id))
    return [document.id for document in ordered[:count]]
