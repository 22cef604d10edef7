"""The ids of agents' events that one transaction ingests, so that an event that is sent twice is stored once."""

from __future__ import annotations

from collections.abc import Callable


class IngestedEventChanges:
    """The ids of ingested events that a transaction reads, adds and expires.

    `read` returns which of the given ids earlier commits ingested. Results, which the engine stores with the rows:
    `added_ids`, and `expire_before`: older ids than this time are deleted (empty: none).
    """

    def __init__(self, read: Callable[[list[str]], set[str]]) -> None:
        self.added_ids: list[str] = []
        self.expire_before = ""
        self._read = read

    def find(self, ids: list[str]) -> set[str]:
        """Return which of the events are ingested already, by earlier commits or this transaction."""
        return self._read(ids) | set(self.added_ids)

    def savepoint(self) -> Callable[[], None]:
        """Return a function that rolls back every change made after this call."""
        added_ids, expire_before = list(self.added_ids), self.expire_before

        def undo() -> None:
            self.added_ids, self.expire_before = added_ids, expire_before

        return undo
