"""Who has left for good. No backup brings them back, and what hooks of agents still write for them is deleted.

A line holds the account's id and, keyed by it, a digest of the address: the address itself stays nowhere.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
from contextlib import suppress
from pathlib import Path

from vademecum.durable import sync_folder
from vademecum.engines.duckdb.accounts import email_key

_LINE = re.compile(r"([^\s\0]+)(?: ([0-9a-f]{32}))?")  # a note of before has no digest


def left_file(data: Path) -> Path:
    return data / "ledger" / "left"


def note_left(data: Path, account_id: str, email: str) -> None:
    """The disk has it when this returns. When it raises, nothing is noted."""
    path = left_file(data)
    path.parent.mkdir(parents=True, exist_ok=True)
    # On a line of its own, whatever a crash has left of the last one.
    line = f"\n{account_id} {_digest(account_id, email)}\n".encode()
    with path.open("ab", buffering=0) as file:
        end = file.seek(0, os.SEEK_END)
        try:
            if file.write(line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(file.fileno())
            sync_folder(path.parent)
        except OSError:
            with suppress(OSError):
                file.truncate(end)
            raise


def read_left(data: Path) -> set[str]:
    """Their ids."""
    return {account_id for account_id, _ in _lines(data)}


def has_left(data: Path, email: str) -> bool:
    """Was there an account with this address, that left? There may be another by now."""
    return any(digest and _digest(account_id, email) == digest for account_id, digest in _lines(data))


def _lines(data: Path) -> list[tuple[str, str]]:
    """(id, digest), but for what a crash cut short."""
    try:
        text = left_file(data).read_text(errors="replace")
    except FileNotFoundError:
        return []
    return [(found[1], found[2] or "") for line in text.splitlines() if (found := _LINE.fullmatch(line))]


def _digest(account_id: str, email: str) -> str:
    key = account_id.encode()[: hashlib.blake2b.MAX_KEY_SIZE]
    return hashlib.blake2b(email_key(email).encode(), key=key, digest_size=16).hexdigest()
