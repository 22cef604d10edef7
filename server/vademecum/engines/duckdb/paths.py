"""Locate the files of an account and translate disk errors into messages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vademecum.engines.duckdb.erasure_ledger import ErasureLedger
from vademecum.errors import Broken, is_full, not_now
from vademecum.model.records.paths import user_folder

RECORDS_FILE = "records.duckdb"


def user_ledger(data: Path, user_id: str) -> ErasureLedger:
    return ErasureLedger(data / "ledger" / f"{user_id}.jsonl")


def room_to_rewrite(data: Path, user_id: str) -> int:
    """Return how many bytes of free disk space suffice to rewrite a user's records."""
    return sum(
        file.stat().st_size
        for file in user_folder(data, user_id).glob(f"{RECORDS_FILE}*")
        if file.suffix in (".duckdb", ".wal")
    )


def missing_accounts_message(data: Path) -> str:
    """Return an error message if records exist without an accounts file, else an empty string."""
    if not any((data / "users").glob(f"*/*/{RECORDS_FILE}")):
        return ""
    return (
        f"{data / 'accounts.duckdb'} is missing, but {data / 'users'} contains records of accounts. Nothing was "
        "changed, because a new file would lock all users out. Put the file back, or move that folder away and restore "
        "a backup with `vademecum restore`. Without that folder, `vademecum serve` starts with no accounts."
    )


def file_identity(path: Path) -> tuple[int, int] | None:
    """Return the device and inode that a path leads to, or None if there is no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


@contextmanager
def translate_disk_errors(user_id: str, action: str, folder: Path) -> Iterator[None]:
    """Translate OSError inside the block: raise Busy if the disk is full, else Broken."""
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise not_now() from error
        raise Broken(
            f"The account {user_id} cannot be {action}: {error.filename or folder} cannot be used ({error.strerror}). "
            "Nothing was changed, and other accounts are not affected. Make it a folder or file that the server can "
            "read and write."
        ) from error


def remove_tree(folder: Path) -> None:
    """Delete a folder. If the path is a link, delete the link and its target.

    Raises Broken if a part cannot be deleted.
    """
    try:
        if folder.exists():
            shutil.rmtree(folder.resolve())
        folder.unlink(missing_ok=True)
    except OSError as error:
        raise Broken(
            f"The folder {folder.name} could not be erased ({error.strerror}). Nobody can sign in to the account. The "
            "server tries again until the folder is erased."
        ) from error
