"""Read, count and delete the files of the spool, and limit their number."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Generic, NamedTuple, TypeVar
from urllib.parse import unquote

import msgspec
import structlog

from vademecum.errors import Broken
from vademecum.model.agents.spool_layout import (
    BLOCK_COUNT_FILE,
    OWNER_FOLDER,
    REASON_FILE,
    REJECTED_FOLDER,
    count_blocks,
)
from vademecum.model.schema.constants import OWNER
from vademecum.model.schema.timestamps import DAY_S

T = TypeVar("T")
FILE_MAX = 2**17  # maximum size in bytes; the 8,000 characters of an event take fewer bytes in any encoding
WRITE_TIMEOUT_S = 60.0  # in seconds; an older unfinished file is no longer being written
REMOVE_ATTEMPTS = 5  # the attempts to delete a folder, because a hook may be writing into it
REJECTED_DAYS = 30.0
UNFINISHED_DAYS = 1.0
FILES_MAX = 1000  # the maximum number of rejected files and, separately, of unfinished files
PERMISSION_ERRORS = (errno.EACCES, errno.EPERM)
RESOURCE_ERRORS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
IRREGULAR_FILE_ERRORS = (errno.ELOOP, errno.ENXIO)  # a link or a socket, which is never an event

_log = structlog.get_logger("vademecum.spool")


@dataclass(frozen=True)
class ReadResult(Generic[T]):
    """The result of reading files.

    `invalid`: files that are not events. `unreadable`: files that a later attempt may be able to read.
    """

    decoded: list[tuple[Path, T]]
    invalid: list[Path]
    unreadable: list[tuple[Path, OSError]]


class WaitingEvents(NamedTuple):
    """The waiting events of one user. `since`: the Unix time of the oldest event. `reason`: why they wait, if known."""

    email: str
    events: int
    since: float
    reason: str


def email_of(folder: Path) -> str:
    """Return the email from a folder's name, in the letter case in which `vademecum record` received it."""
    return OWNER if folder.name == OWNER_FOLDER else unquote(folder.name)


def list_user_folders(parent: Path) -> list[Path]:
    """Return the user folders in the spool or in its folder of rejected events. Raises OSError."""
    if not parent.is_dir():
        return []
    return sorted(path for path in parent.iterdir() if path.is_dir() and path.name != REJECTED_FOLDER)


def _list_files(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except FileNotFoundError:
        return []


def list_events(folder: Path) -> list[Path]:
    """Return the complete event files, oldest first, because ids sort by time."""
    return [path for path in _list_files(folder) if path.suffix == ".json"]


def list_contents(folder: Path) -> list[Path]:
    """Return all files except the status files and those that are being written."""
    status = (BLOCK_COUNT_FILE, REASON_FILE)
    return [path for path in _list_files(folder) if path.name not in status and not _is_being_written(path)]


def read_error(path: Path, error: OSError) -> Broken | OSError:
    """Return the error to raise: Broken, or `error` itself if the system temporarily lacks resources."""
    return error if error.errno in RESOURCE_ERRORS else Broken(read_error_message(path, error))


def read_error_message(path: Path, error: OSError) -> str:
    message = f"Agent events in {_display_name(path)} cannot be read ({error.strerror or error})"
    if error.errno not in PERMISSION_ERRORS:
        return f"{message}. Try again."
    return f"{message}, probably because a hook ran as another user. Make it readable for the server or delete it."


def find_unreadable(spool: Path) -> list[str]:
    """Return a message for each folder of the spool that cannot be listed."""
    messages: list[str] = []
    for parent in (spool, spool / REJECTED_FOLDER):
        try:
            for folder in list_user_folders(parent):
                try:
                    _list_files(folder)
                except OSError as error:
                    messages.append(read_error_message(folder, error))
        except OSError as error:
            return [*messages, read_error_message(parent, error)]
    return messages


def _display_name(path: Path) -> str:
    return f"{path.parent.name}/{path.name} of the server's spool"


def _is_being_written(path: Path) -> bool:
    return path.suffix == ".tmp" and time.time() - _size_and_mtime(path)[1] < WRITE_TIMEOUT_S


def _size_and_mtime(path: Path) -> tuple[int, float]:
    """Return the size and the Unix time of a file, or (0, now) if it is missing or cannot be inspected."""
    try:
        status = path.lstat()
    except OSError:
        return 0, time.time()
    return status.st_size, status.st_mtime


def read_files(paths: Sequence[Path], decode: Callable[[bytes], T]) -> ReadResult[T]:
    """Read and decode files. Skip files that no longer exist."""
    result: ReadResult[T] = ReadResult([], [], [])
    for path in paths:
        try:
            result.decoded.append((path, decode(read_content(path))))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            result.invalid.append(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            if error.errno in IRREGULAR_FILE_ERRORS:
                result.invalid.append(path)
            else:
                result.unreadable.append((path, error))
    return result


def read_content(path: Path, *, truncate: bool = False) -> bytes:
    """Return the bytes of a file, or b"" for a pipe, which may never end, and for a file larger than FILE_MAX.

    Raises OSError for a link, which may point out of the spool. `truncate`: return the beginning of a larger file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        is_readable = stat.S_ISREG(status.st_mode) and (truncate or status.st_size <= FILE_MAX)
        return os.read(descriptor, FILE_MAX) if is_readable else b""
    finally:
        os.close(descriptor)


def write_status(folder: Path, reason: str = "", *, keep_reason: bool = False) -> None:
    """Write the status files of a folder: the number of waiting blocks and the reason for the wait.

    `keep_reason`: write the reason even if no event is waiting, so that the next `record` prints it.
    """
    blocks = sum(count_blocks(_size_and_mtime(path)[0]) for path in list_events(folder))
    if blocks:
        with _open_for_update(folder / BLOCK_COUNT_FILE) as file:
            file.truncate(blocks)  # atomic, because `record` may be reading the size or appending
    else:
        (folder / BLOCK_COUNT_FILE).unlink(missing_ok=True)
    if reason and (blocks or keep_reason):
        unfinished = folder / f"{uuid.uuid4().hex}.tmp"  # unique, because two calls may overlap
        with _open_for_update(unfinished) as file:
            file.write(reason.encode())
        unfinished.replace(folder / REASON_FILE)  # atomic, so that no process reads a partial reason
    else:
        (folder / REASON_FILE).unlink(missing_ok=True)


def _open_for_update(path: Path) -> BinaryIO:
    """Open or create a file for writing without truncating it."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o600), "wb")


def has_status(folder: Path) -> bool:
    return (folder / BLOCK_COUNT_FILE).exists() or (folder / REASON_FILE).exists()


def find_waiting(spool: Path) -> Iterator[WaitingEvents]:
    """Yield the waiting events of each readable folder. `find_unreadable` lists the other folders."""
    for folder in _readable_folders(spool):
        if events := list_events(folder):
            reason = ""
            with suppress(OSError):
                reason = (folder / REASON_FILE).read_text(encoding="utf-8", errors="replace")
            yield WaitingEvents(email_of(folder), len(events), _size_and_mtime(events[0])[1], reason)


def count_rejected(spool: Path) -> int:
    return sum(len(_list_files(folder)) for folder in _readable_folders(spool / REJECTED_FOLDER))


def _readable_folders(parent: Path) -> Iterator[Path]:
    with suppress(OSError):
        for folder in list_user_folders(parent):
            with suppress(OSError):
                _list_files(folder)
                yield folder


def remove_folders(folders: Iterable[Path]) -> None:
    """Delete folders with their contents. Raises Broken if one remains, after deleting everything else."""
    _remove_each(folders, _remove_folder)


def remove_files(paths: Iterable[Path]) -> None:
    """Delete the files or folders at `paths`. Raises Broken if one remains, after deleting everything else."""
    _remove_each(paths, _remove)


def _remove_each(paths: Iterable[Path], remove: Callable[[Path], None]) -> None:
    first_error: Broken | None = None
    for path in paths:
        try:
            remove(path)
        except OSError as error:
            first_error = first_error or Broken(
                f"Agent events in {_display_name(path)} cannot be deleted ({error.strerror or error}). "
                "Delete them by hand."
            )
    if first_error:
        raise first_error


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        _remove_tree(path)
    else:
        path.unlink(missing_ok=True)


def _remove_folder(folder: Path) -> None:
    try:
        _remove_tree(folder)
    except OSError:
        if not folder.is_symlink():  # the target of a link is not part of the spool
            with suppress(OSError, Broken):
                remove_files(list(folder.iterdir()))  # at least delete as many files as possible
        raise


def _remove_tree(folder: Path) -> None:
    for attempts_left in reversed(range(REMOVE_ATTEMPTS)):
        try:
            shutil.rmtree(folder)
            return
        except OSError as error:
            if _is_missing(folder):
                return
            if not attempts_left or error.errno not in (errno.ENOTEMPTY, errno.ENOENT):
                raise


def _is_missing(path: Path) -> bool:
    """Return whether a path certainly does not exist. Return False if its parent folder cannot be accessed."""
    try:
        path.lstat()
    except OSError as error:
        return error.errno == errno.ENOENT
    return False


def delete_leftovers(spool: Path) -> None:
    """Delete old rejected events and old unfinished files. Of each kind, keep at most the newest FILES_MAX files.

    A program that writes invalid events must not fill the disk. Waiting events are never deleted.
    """
    rejected = spool / REJECTED_FOLDER
    rejected_files = [path for folder in _list_real_folder(rejected) for path in _list_real_folder(folder)]
    folders = [folder for folder in _list_real_folder(spool) if folder != rejected]
    unfinished = [path for folder in folders for path in _list_real_folder(folder) if path.suffix == ".tmp"]
    for kind, paths, days in (
        ("rejected", rejected_files, REJECTED_DAYS),
        ("unfinished", unfinished, UNFINISHED_DAYS),
    ):
        deleted = sum(_try_remove(path) for path in _find_excess(paths, time.time() - days * DAY_S))
        if deleted:
            _log.warning("old agent events deleted", kind=kind, files=deleted, days=days, files_max=FILES_MAX)
    remove_empty_folders(rejected)


def remove_empty_folders(rejected: Path) -> None:
    """Delete the empty folders of rejected events, because their names still contain emails."""
    for folder in _list_real_folder(rejected):
        with suppress(OSError):  # raised for a folder that is not empty
            folder.rmdir()


def _find_excess(paths: Iterable[Path], oldest: float) -> Iterator[Path]:
    """Yield the files that were written before `oldest` (Unix time) or are not among the newest FILES_MAX."""
    by_age = sorted(((_size_and_mtime(path)[1], path) for path in paths), reverse=True)
    return (path for n, (written, path) in enumerate(by_age) if n >= FILES_MAX or written < oldest)


def _list_real_folder(folder: Path) -> list[Path]:
    """Return a folder's entries, or none after an error or for a link, whose target is not part of the spool."""
    try:
        return list(folder.iterdir()) if stat.S_ISDIR(folder.lstat().st_mode) else []
    except OSError:
        return []


def _try_remove(path: Path) -> bool:
    """Delete a file. Return whether it was deleted."""
    try:
        _remove(path)
    except OSError:
        return False
    return True
