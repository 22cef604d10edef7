"""Who has left for good. No backup brings them back, and what hooks of agents still write for them is deleted.

A line holds the account's id and, keyed by it, a digest of the address: the address itself stays nowhere.
When this cannot be read, those who are here go on; what could bring back somebody who has left waits for a person.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from vademecum.errors import Broken
from vademecum.fsync import sync_folder
from vademecum.model.records.accounts import email_key

# A note of before has no digest. What damage has put there must not lead elsewhere: what lies there would be erased.
_LINE = re.compile(r"([0-9A-Za-z_-]+)(?: ([0-9a-f]{32}))?")
NOTE = 71  # bytes, with both ends of its line: a crash leaves no more of one


@dataclass(frozen=True)
class Left:
    """`digests`: of the address, by id. `unsure`: why it is not known who else has left; empty when all are known."""

    digests: dict[str, str]
    unsure: str

    def has(self, email: str) -> bool:
        """Was there an account with this address, that left? There may be another by now. Raises Broken."""
        found = any(digest and _digest(one, email) == digest for one, digest in self.digests.items())
        if not found and self.unsure:
            raise Broken(self.unsure)
        return found

    def address_of(self, account_id: str, emails: Iterable[str]) -> str | None:
        """Which of these addresses that account had, if any and if it can be told."""
        digest = self.digests.get(account_id)
        return next((one for one in emails if digest and _digest(account_id, one) == digest), None)


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


def look(data: Path) -> Left:
    """What of it can be read."""
    path = left_file(data)
    try:
        lines = _content(path).decode(errors="replace").splitlines()
    except FileNotFoundError:
        return Left({}, "")
    except OSError as error:
        return Left({}, _unsure(path, f"cannot be read ({error.strerror})"))
    notes = {found[1]: found[2] or "" for line in lines if (found := _LINE.fullmatch(line))}
    damaged = any(len(line) > NOTE and not _LINE.fullmatch(line) for line in lines)
    return Left(notes, _unsure(path, "is damaged") if damaged else "")


def read_left(data: Path) -> set[str]:
    """Their ids, all of them. Raises Broken."""
    left = look(data)
    if left.unsure:
        raise Broken(left.unsure)
    return set(left.digests)


def has_left(data: Path, email: str) -> bool:
    """As `Left.has`."""
    return look(data).has(email)


def _content(path: Path) -> bytes:
    """Not of a pipe or a device, which may never end. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no file")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def _unsure(path: Path, what: str) -> str:
    return (
        f"{path} {what}: it says who has left for good. Who is here goes on, and all that they have is safe. Until it is "
        "mended no backup is restored, for that could bring back who has left, and events of agents for an address "
        "without an account wait. Make it readable, or put an earlier copy in its place. If there is none, remove it, "
        "and after a restore remove whoever had left once more."
    )


def _digest(account_id: str, email: str) -> str:
    key = account_id.encode()[: hashlib.blake2b.MAX_KEY_SIZE]
    return hashlib.blake2b(email_key(email).encode(), key=key, digest_size=16).hexdigest()
