"""Store high-water marks: for each user the highest acknowledged `seq`, outside the records.

Records whose highest `seq` is below the mark lack acknowledged commits: the disk lost the end of their write-ahead log,
or they were replaced by an old copy. A mark below the highest `seq` does not indicate a loss, because a crash between
COMMIT and the write of the mark causes such a mark. A missing or damaged mark is set from the records when they are
opened, and `doctor` reports it until then.

All marks share one append-only file, `<data>/ledger/marks`. A line is a user id, a seq and the CRC-32 of both; the last
valid line of a user applies. A line is written after COMMIT and before the answer. It is fsynced later, in the
background, because a second fsync per commit would be slow and a mark that is too low does no harm.
"""

from __future__ import annotations

import errno
import os
import re
import zlib
from pathlib import Path
from threading import Lock
from typing import BinaryIO

import structlog

from vademecum.engines.duckdb.erasure_ledger import SEQ_MAX
from vademecum.engines.duckdb.paths import RECORDS_FILE
from vademecum.engines.duckdb.user_database import publish_file
from vademecum.fsync import sync_folder
from vademecum.model.records.paths import user_folder

OUTDATED_MAX = 2**20  # the file is rewritten when it has more than this many bytes of outdated lines
_LINE = re.compile(rb"(([0-9A-Za-z_-]+) ([0-9]{1,16})) ([0-9a-f]{8})")
_fdatasync = getattr(os, "fdatasync", os.fsync)
_log = structlog.get_logger("vademecum.marks")


class HighWaterMarks:
    """The marks of all users.

    Thread-safe. Disk errors are logged, never raised: an error only leaves a mark too low.
    """

    def __init__(self, data: Path) -> None:
        self._path = data / "ledger" / "marks"
        self._lock = Lock()
        self._file: BinaryIO | None = None
        self._is_failing = False
        self.is_unsynced = False
        self._seqs, self._outdated_bytes, damaged = _load(self._path)
        if damaged:
            _log.warning("high-water marks are damaged", file=str(self._path), lines=damaged)
            self._compact()
        self._compact_if_due()

    def of(self, user_id: str) -> int:
        """Return the highest acknowledged seq, or 0 if it is not known."""
        return self._seqs.get(user_id, 0)

    def raise_to(self, user_id: str, seq: int) -> None:
        """Raise the mark to `seq`, which the records have reached. A seq below the mark changes nothing."""
        with self._lock:
            if seq <= self._seqs.get(user_id, -1):  # a mark of 0 shows that the records were opened
                return
            self._seqs[user_id] = seq
            self._append(_line(user_id, seq))

    def drop(self, user_id: str) -> None:
        """Remove the mark of a deleted account."""
        with self._lock:
            if self._seqs.pop(user_id, None) is not None:
                self._compact()

    def sync(self) -> None:
        """Fsync the marks written since the last call. Recreate the file if it was deleted. This call blocks."""
        with self._lock:
            if not self._path.exists() and self._seqs:
                self._compact()
            self._compact_if_due()
            self.is_unsynced = False
            if self._file is None:
                return
            descriptor = os.dup(self._file.fileno())  # a copy: the file may be closed during the fsync
        try:
            _fdatasync(descriptor)
        except OSError as error:
            _log.error("high-water marks are not on the disk", exc_info=error)
        finally:
            os.close(descriptor)

    def close(self) -> None:
        self.sync()
        with self._lock:
            self._close()

    def _append(self, line: bytes) -> None:
        try:
            if self._file is None:
                self._file = self._opened()
            if self._file.write(line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
        except OSError as error:
            if not self._is_failing:
                _log.error("high-water marks are not written", exc_info=error)
            self._is_failing = True
            return
        self._is_failing = False
        self.is_unsynced = True
        self._outdated_bytes += len(line)

    def _opened(self) -> BinaryIO:
        is_new = not self._path.exists()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        file = self._path.open("ab", buffering=0)
        if is_new:
            sync_folder(self._path.parent)
        return file

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _compact_if_due(self) -> None:
        if self._outdated_bytes > OUTDATED_MAX:
            self._compact()

    def _compact(self) -> None:
        """Rewrite the file without outdated lines. If that fails, the old file stays complete."""
        self._outdated_bytes = 0
        self._close()  # opened again for the next line, which must go to the new file
        new = self._path.with_name(f"{self._path.name}.new")
        try:
            new.write_bytes(b"".join(_line(*mark) for mark in self._seqs.items()))
            publish_file(new, self._path)
        except OSError as error:
            _log.error("high-water marks were not compacted", exc_info=error)


def count_damaged_lines(data: Path) -> int:
    """Return the number of damaged lines in the file of high-water marks (`ledger/marks`).

    The next start of the server removes them.

    Raises OSError if the file cannot be read.
    """
    path = data / "ledger" / "marks"
    return _parse(path.read_bytes())[1] if path.exists() else 0


def find_users_without_mark(data: Path, template: Path) -> list[str]:
    """Return the ids of users whose records this version has opened but who have no valid mark. Raises OSError.

    Earlier versions wrote no marks. The first start of a version with new migrations creates `template`, and opening
    older records migrates them. So records older than the template have not been opened since the upgrade.
    """
    if not template.exists():
        return []
    path, upgraded_ns = data / "ledger" / "marks", template.stat().st_mtime_ns
    seqs = _parse(path.read_bytes())[0] if path.exists() else {}
    users = sorted(ledger.stem for ledger in path.parent.glob("*.jsonl") if ledger.stem not in seqs)
    records = {user_id: user_folder(data, user_id) / RECORDS_FILE for user_id in users}
    return [
        user_id
        for user_id, file in records.items()
        if file.exists() and file.stat().st_mtime_ns >= upgraded_ns
    ]


def _load(path: Path) -> tuple[dict[str, int], int, int]:
    """Return three values: a map from user ids to marks, the bytes of outdated lines, and the number of damaged lines."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        if any(path.parent.glob("*.jsonl")):
            _log.warning("high-water marks are missing", file=str(path))
        return {}, 0, 0
    except OSError as error:
        _log.error("high-water marks cannot be read", exc_info=error)
        return {}, 0, 0
    seqs, damaged = _parse(content)
    return seqs, len(content) - sum(len(_line(*mark)) for mark in seqs.items()), damaged


def _parse(content: bytes) -> tuple[dict[str, int], int]:
    """Return two values: a map from user ids to marks, and the number of damaged lines."""
    seqs: dict[str, int] = {}
    damaged = 0
    for line in filter(None, content.split(b"\n")):
        found = _LINE.fullmatch(line)
        if found is None or zlib.crc32(found[1]) != int(found[4], 16) or int(found[3]) > SEQ_MAX:
            damaged += 1
        else:
            seqs[found[2].decode()] = int(found[3])
    return seqs, damaged


def _line(user_id: str, seq: int) -> bytes:
    """Return the line of a mark. The line starts with a line break, because the previous line may be truncated."""
    mark = f"{user_id} {seq}".encode()
    return b"\n%s %08x\n" % (mark, zlib.crc32(mark))
