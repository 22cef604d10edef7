"""Cache the bodies of recently written rows.

Subscribers read these bodies after each commit. Without the cache, each read would be an SQL statement.

A body is removed when its row is changed or deleted. A cached body is returned only while its row still has the same
`seq`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable

from vademecum.model.sync.transaction import Change, RowIndex

CACHE_BYTES_MAX = 16 * 2**10  # per user; 256 users may be attached


class BodyCache:
    def __init__(self) -> None:
        # Maps the row's key to its seq and body, the oldest first.
        self._bodies: OrderedDict[str, tuple[int, bytes]] = OrderedDict()
        self._bytes = 0

    def absorb(self, changes: Collection[Change]) -> None:
        """Apply committed changes."""
        for change in changes:
            if change.before is not None:
                self._drop(change.key)
        for change in _last_that_fit(changes):
            assert change.head is not None
            self._bodies[change.key] = change.head.seq, change.body
            self._bytes += len(change.body)
        while self._bytes > CACHE_BYTES_MAX:
            _, (_, body) = self._bodies.popitem(last=False)
            self._bytes -= len(body)

    def _drop(self, key: str) -> None:
        _, body = self._bodies.pop(key, (0, b""))
        self._bytes -= len(body)

    def find(self, keys: Iterable[str], row_index: RowIndex) -> dict[str, bytes]:
        """Map those of `keys` that are cached to their bodies.

        Leave out rows that have changed since they were cached.
        """
        found: dict[str, bytes] = {}
        for key in keys:
            cached, head = self._bodies.get(key), row_index.rows.get(key)
            if cached is not None and head is not None and cached[0] == head.seq:
                found[key] = cached[1]
        return found


def _last_that_fit(changes: Collection[Change]) -> list[Change]:
    """Return the last live rows of a commit that fit into the cache together, the oldest first.

    Earlier rows of a large commit would be evicted at once.
    """
    found: list[Change] = []
    room = CACHE_BYTES_MAX
    for change in reversed(list(changes)):
        if change.head is None or change.head.deleted or len(change.body) > CACHE_BYTES_MAX:
            continue
        room -= len(change.body)
        if room < 0:
            break
        found.append(change)
    return found[::-1]
