"""What must survive a restore from an older backup: the ids that were erased, and how far `seq` had come.

One append-only file a user, outside the user's folder and outside backups. It holds ids and times, no content.
It may lag behind the records by a crash; opening the records brings it up to date (`catch_up`).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from vademecum.model.draft import Change, Heads


class Erased(msgspec.Struct, omit_defaults=True):
    """A line: a key that was buried at `seq`, or, with `forgotten_at`, that everything was."""

    seq: int
    key: str = ""
    forgotten_at: str = ""


_lines = msgspec.json.Decoder(Erased)


class Ledger:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._last: int | None = None

    def note(self, changes: Iterable[Change], forgotten_at: str = "") -> None:
        """Append the burials among `changes`, and a forgetting."""
        lines = [Erased(c.head.seq, c.key) for c in changes if c.head is not None and c.head.deleted]
        if forgotten_at:
            lines.append(
                Erased(max((line.seq for line in lines), default=self.last_seq()), forgotten_at=forgotten_at)
            )
        if lines:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab") as file:
                file.write(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
            self._last = max(self._last or 0, *(line.seq for line in lines))

    def catch_up(self, heads: Heads, forgotten_at: str) -> None:
        """Append the tombstones, and the forgetting, that a crash kept out of it."""
        last = self.last_seq()
        missing = [
            Change(key, None, head, b"")
            for key, head in heads.rows.items()
            if head.deleted and head.seq > last
        ]
        known = max((line.forgotten_at for line in self.read()), default="") if forgotten_at else ""
        news = forgotten_at if forgotten_at > known else ""
        self.note(sorted(missing, key=lambda c: c.head.seq if c.head else 0), news)

    def last_seq(self) -> int:
        if self._last is None:
            self._last = max((line.seq for line in self.read()), default=0)
        return self._last

    def read(self) -> list[Erased]:
        """All lines. A last line that a crash cut short is left out."""
        if not self.path.exists():
            return []
        found = []
        for line in self.path.read_bytes().splitlines():
            try:
                found.append(_lines.decode(line))
            except msgspec.DecodeError:
                continue
        return found

    def drop(self) -> None:
        """For an account that leaves for good."""
        self.path.unlink(missing_ok=True)
        self._last = 0
