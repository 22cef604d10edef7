"""Store the data that must survive a restore: ids of erased rows, ids of revived rows, and the highest `seq`.

The ledger is one append-only file per user, outside the user's folder and outside backups. It contains ids and times,
no content. After a crash or a full disk it may lack lines; they are added when the records are opened (`catch_up`).
Each line ends with its checksum, except for lines of older versions. A damaged line is never applied; it is kept for
`doctor`. Only the last line of a key applies. The line of an expired row is outdated once its tombstone is purged: if a
backup restores the row, the row expires again unless the user has pinned it. A file of mostly outdated lines is
compacted.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from threading import Lock
from typing import BinaryIO

import msgspec
import structlog

from vademecum.engines.duckdb.user_database import publish_file
from vademecum.fsync import sync_folder
from vademecum.model.sync.transaction import Change, RowIndex

ROLLBACK = ".put-back"  # suffix of a file beside the ledger, which reports a rollback to `doctor`
SEQ_MAX = 2**52  # a line with a higher seq is damaged
# The ledger is compacted when the number of appended lines exceeds twice the number of current lines plus this number.
SPARE = 1000
_log = structlog.get_logger("vademecum.ledger")


class LedgerLine(msgspec.Struct, omit_defaults=True):
    """The deletion of a row at `seq`, unless `revived` or `forgotten_at` is set.

    `aged` means that the row expired. `revived` means that the row was revived at `seq`; such a line is also `aged`, so
    that it is compacted like the line of an expired row. A line with `forgotten_at` and without a key means that all rows
    up to `seq` were forgotten.
    """

    seq: int
    key: str = ""
    forgotten_at: str = ""
    aged: bool = False
    revived: bool = False


_lines = msgspec.json.Decoder(LedgerLine)
_CHECKSUM = b',"crc":"'  # followed by the CRC-32 of the preceding JSON (8 hexadecimal digits) and `"}`
_WHOLE = re.compile(rb'"crc":"[0-9a-f]{8}".$|}$')  # a complete line, even if its last byte is damaged


class ErasureLedger:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()
        # Lines that a full disk has kept from being written. If a crash loses them, `catch_up` adds them.
        self._unwritten: list[LedgerLine] = []
        self._counting = 0  # number of current lines when the file was last read
        self._appended = 0  # number of lines appended since the file was last read

    def append(self, changes: Iterable[Change], forgotten_at: str = "") -> None:
        """Append the deletions and revivals among `changes`, and a "forget everything" if `forgotten_at` is set.

        Lines that could not be written before are written first.
        """
        lines = [line for change in changes if (line := _line(change)) is not None]
        if forgotten_at:
            lines.append(LedgerLine(max((line.seq for line in lines), default=0), forgotten_at=forgotten_at))
        with self._lock:
            self._append(lines)
            if self._appended > 2 * self._counting + SPARE:
                self._compact(newest(self.read()))

    def sync(self) -> None:
        """Write pending lines and fsync the file and its folder. Raises OSError."""
        self.append(())
        if self.path.exists():
            with self.path.open("rb") as file:
                os.fsync(file.fileno())
            sync_folder(self.path.parent)

    def catch_up(self, lines: list[LedgerLine], row_index: RowIndex, forgotten_at: str) -> None:
        """Append the deletions, revivals and "forget everything" that the ledger (`lines`) lacks.

        After a crash or a full disk, lines may be missing. Every tombstone is checked, because an earlier line may be
        missing even if a later one is present.
        """
        known = newest(lines)
        missing = [
            LedgerLine(head.seq, key)
            for key, head in row_index.rows.items()
            if head.deleted and (key not in known or head.seq > known[key].seq)
        ]
        missing += [
            _revival(line.key, head.seq)
            for line in known.values()
            if not line.revived
            and (head := row_index.rows.get(line.key)) is not None
            and not head.deleted
            and head.seq > line.seq
        ]
        missing.sort(key=lambda line: line.seq)
        if forgotten_at and ("" not in known or forgotten_at > known[""].forgotten_at):
            # The seq of the "forget everything" is unknown, and a guess that is too high would delete newer rows. 0
            # suffices: the deleted rows have their own lines, and waiting rows need only the time.
            missing.append(LedgerLine(0, forgotten_at=forgotten_at))
        with self._lock:
            self._append(missing)
            counting = _needed(newest([*known.values(), *missing]), row_index)
            self._counting, self._appended = len(counting), 0
            if len(lines) + len(missing) > 2 * self._counting:
                self._compact(counting)

    def create_file(self) -> None:
        """Create the file if it is missing. A ledger without a records file later shows that the records were lost."""
        if not self.path.exists():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.touch()
            sync_folder(self.path.parent)

    def last_seq(self) -> int:
        return max((line.seq for line in self.read()), default=0)

    def read(self) -> list[LedgerLine]:
        """Return all lines except damaged lines and a line truncated by a crash."""
        return [line for _, line in self._decoded() if isinstance(line, LedgerLine)]

    def damaged_lines(self) -> list[int]:
        """Return the line numbers of damaged lines.

        Lines truncated by a crash are left out, because `catch_up` writes their content again.
        """
        return [number for number, line in self._decoded() if isinstance(line, bytes) and not _is_torn(line)]

    def _decoded(self) -> Iterator[tuple[int, LedgerLine | bytes]]:
        """Yield the number and the content of each line. The content of an unusable line is bytes."""
        content = self.path.read_bytes() if self.path.exists() else b""
        for number, line in enumerate(content.split(b"\n"), 1):
            if line:
                yield number, _decode(line) or line

    def delete(self) -> None:
        """Delete the ledger's files after the account was deleted."""
        self.path.unlink(missing_ok=True)
        self._new.unlink(missing_ok=True)
        self._rollback.unlink(missing_ok=True)

    def record_rollback(self, at: str) -> None:
        """Tell `doctor`, by a file with the time `at`, that the records lacked acknowledged commits.

        Never raise.
        """
        try:
            self._rollback.write_text(at, encoding="utf-8")
        except OSError as error:
            _log.error("doctor cannot report the rollback", exc_info=error)

    @property
    def _rollback(self) -> Path:
        return self.path.with_suffix(ROLLBACK)

    @property
    def _new(self) -> Path:
        return self.path.with_name(f"{self.path.name}.new")

    def _append(self, lines: list[LedgerLine]) -> None:
        self._unwritten += lines
        if not self._unwritten:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b") as file:
            file.write(_end_of_torn_line(file) + _encoded(self._unwritten))
        self._appended += len(self._unwritten)
        self._unwritten = []

    def _compact(self, counting: dict[str, LedgerLine]) -> None:
        """Rewrite the file without outdated lines. If that fails, the old file stays complete."""
        # Reset the counters before writing, so that a failed compaction is not retried at each push.
        self._counting, self._appended = len(counting), 0
        try:
            damaged = [line for _, line in self._decoded() if isinstance(line, bytes) and not _is_torn(line)]
            self._new.write_bytes(_encoded(counting.values()) + b"".join(line + b"\n" for line in damaged))
            publish_file(self._new, self.path)
        except OSError as error:
            _log.error("the erasure ledger could not be compacted", exc_info=error)


def newest(lines: Iterable[LedgerLine]) -> dict[str, LedgerLine]:
    """Map each row key to its last deletion or revival, and "" to the union of all "forget everything" lines.

    The deletion of a row remains in the map after a later "forget everything", because a restore puts a tombstone for
    each deletion, even if the backup does not contain the row.
    """
    found: dict[str, LedgerLine] = {}
    for line in lines:
        before = found.get(line.key)
        found[line.key] = line if before is None else _both(before, line)
    return found


def _both(one: LedgerLine, other: LedgerLine) -> LedgerLine:
    forgotten_at = max(one.forgotten_at, other.forgotten_at)
    last = other if other.seq >= one.seq else one
    # A row that the user deleted once keeps its line, even if the row was revived and then expired.
    return LedgerLine(last.seq, one.key, forgotten_at, aged=one.aged and other.aged, revived=last.revived)


def _line(change: Change) -> LedgerLine | None:
    before, head = change.before, change.head
    if head is None:
        return None
    if head.deleted:
        return LedgerLine(head.seq, change.key, aged=change.expired)
    return _revival(change.key, head.seq) if before is not None and before.deleted else None


def _revival(key: str, seq: int) -> LedgerLine:
    return LedgerLine(seq, key, aged=True, revived=True)


def _needed(lines: dict[str, LedgerLine], row_index: RowIndex) -> dict[str, LedgerLine]:
    """Return the lines that are not outdated. An outdated line is `aged`, and its row has no tombstone.

    The line with the highest `seq` is always kept.
    """
    last = max((line.seq for line in lines.values()), default=0)
    return {
        key: line
        for key, line in lines.items()
        if not line.aged
        or line.seq == last
        or ((head := row_index.rows.get(key)) is not None and head.deleted)
    }


def _encoded(lines: Iterable[LedgerLine]) -> bytes:
    encoded = map(msgspec.json.encode, lines)
    return b"".join(b'%b%b%08x"}\n' % (line[:-1], _CHECKSUM, zlib.crc32(line)) for line in encoded)


def _decode(content: bytes) -> LedgerLine | None:
    """Return a line, or None if it is damaged."""
    if content[-18:-10] == _CHECKSUM:
        content, checksum = content[:-18] + b"}", content[-10:-2]
        if checksum != b"%08x" % zlib.crc32(content):
            return None
    try:
        line = _lines.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return line if 0 <= line.seq <= SEQ_MAX else None


def _is_torn(line: bytes) -> bool:
    """Return whether the line looks like the beginning of a valid line."""
    return line.startswith(b'{"seq":'[: len(line)]) and not _WHOLE.search(line)


def _end_of_torn_line(file: BinaryIO) -> bytes:
    """Return a newline if a crash truncated the last line, otherwise an empty string.

    Without the newline, the next line would be damaged too.
    """
    if file.seek(0, os.SEEK_END) == 0:
        return b""
    file.seek(-1, os.SEEK_END)
    return b"" if file.read(1) == b"\n" else b"\n"
