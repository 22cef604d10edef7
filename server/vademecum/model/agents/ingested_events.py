"""Track the ids of agents' events that a transaction ingests, so that an event that is sent twice is stored once."""

from __future__ import annotations

from collections.abc import Callable


class IngestedEventChanges:
    """The ids of ingested events that a transaction reads, adds and expires.

    `read`: returns those of the given ids that earlier commits ingested. The engine commits two results with the rows:
    it stores `added_ids`, and deletes the ids that were ingested before the time `expire_before` (empty: none).
    """

    def __init__(self, read: Callable[[list[str]], set[str]]) -> None:
        self.added_ids: list[str] = []
        self.expire_before = ""
        self._read = read

    def find(self, ids: list[str]) -> set[str]:
        """Return the ids that earlier commits or this transaction have ingested already."""
        return self._read(ids) | set(self.added_ids)

    def savepoint(self) -> Callable[[], None]:
        """Return a function that rolls back every change made after this call."""
        added_ids, expire_before = list(self.added_ids), self.expire_before

        def undo() -> None:
            self.added_ids, self.expire_before = added_ids, expire_before

        return undo
