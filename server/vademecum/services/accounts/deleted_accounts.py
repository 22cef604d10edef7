"""Keep the list of deleted accounts.

No restore brings a listed account back, and late events of its agents are deleted.

A line contains the id of an account and a digest of its email, keyed by the id. The email itself is not stored. If the
list is unreadable, existing accounts are served, and actions that could bring back a deleted account raise Broken until
an administrator repairs the list.
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

# Lines of earlier versions have no digest. An id must not be a path such as `..`, because its folder is erased.
_LINE = re.compile(r"([0-9A-Za-z_-]+)(?: ([0-9a-f]{32}))?")
LINE_MAX = 71  # maximum length in bytes of a complete line, with both line ends


@dataclass(frozen=True)
class DeletedAccounts:
    """The deleted accounts.

    `digests`: maps account ids to digests of emails. `problem`: the reason why the list may be incomplete, or "".
    """

    digests: dict[str, str]
    problem: str

    def contains(self, email: str) -> bool:
        """Return whether an account with this email was deleted, even if a new account has the same email now.

        Raises Broken if the list may be incomplete and does not contain the email.
        """
        is_listed = any(digest and _digest(id_, email) == digest for id_, digest in self.digests.items())
        if not is_listed and self.problem:
            raise Broken(self.problem)
        return is_listed

    def email_of(self, account_id: str, emails: Iterable[str]) -> str | None:
        """Return the email that the account had if it is one of `emails`, or None."""
        digest = self.digests.get(account_id)
        return next((email for email in emails if digest and _digest(account_id, email) == digest), None)


def deleted_accounts_file(data: Path) -> Path:
    return data / "ledger" / "left"


def record_deletion(data: Path, account_id: str, email: str) -> None:
    """Append an account to the list and sync the list to disk. If this raises an error, nothing is recorded."""
    path = deleted_accounts_file(data)
    path.parent.mkdir(parents=True, exist_ok=True)
    # The leading line end separates the line from an incomplete line that a crash may have left in the file.
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


def read_deleted_accounts(data: Path) -> DeletedAccounts:
    """Return the readable part of the list."""
    path = deleted_accounts_file(data)
    try:
        lines = _read(path).decode(errors="replace").splitlines()
    except FileNotFoundError:
        return DeletedAccounts({}, "")
    except OSError as error:
        return DeletedAccounts({}, _unreadable_message(path, f"cannot be read ({error.strerror})"))
    digests = {match[1]: match[2] or "" for line in lines if (match := _LINE.fullmatch(line))}
    damaged = any(len(line) > LINE_MAX and not _LINE.fullmatch(line) for line in lines)
    return DeletedAccounts(digests, _unreadable_message(path, "is damaged") if damaged else "")


def read_deleted_ids(data: Path) -> set[str]:
    """Return the ids of all deleted accounts. Raises Broken if the list is unreadable."""
    deleted = read_deleted_accounts(data)
    if deleted.problem:
        raise Broken(deleted.problem)
    return set(deleted.digests)


def was_deleted(data: Path, email: str) -> bool:
    """Return whether an account with this email was deleted. Raises Broken if the list is unreadable."""
    return read_deleted_accounts(data).contains(email)


def _read(path: Path) -> bytes:
    """Read a regular file. Raises OSError for other files, because a pipe or a device may never end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def _unreadable_message(path: Path, problem: str) -> str:
    return (
        f"{path} {problem}. It lists the deleted accounts. Existing accounts are served and their data is safe. Until it is "
        "repaired, no backup is restored, because that could bring back deleted accounts, and agent events for emails "
        "without an account wait. Make it readable, or replace it with an earlier copy. If there is none, delete it, and "
        "after a restore remove the deleted accounts again."
    )


def _digest(account_id: str, email: str) -> str:
    key = account_id.encode()[: hashlib.blake2b.MAX_KEY_SIZE]
    return hashlib.blake2b(email_key(email).encode(), key=key, digest_size=16).hexdigest()
