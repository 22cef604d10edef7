"""What to delete when room is short: unborrowed first, then the least recently used, then the least used."""

from __future__ import annotations

from collections.abc import Iterable

from vademecum.model.collections import Json


def cleanup(documents: Iterable[Json], count: int) -> list[Json]:
    """The `count` documents that would be missed least."""
    ordered = sorted(
        documents, key=lambda d: (bool(d["activeSessions"]), d["lastAccessedAt"], d["accessCount"], d["id"])
    )
    return ordered[:count]
