"""The files of the spool: reading what lies there, and taking it away for certain."""

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

from vademecum.errors import Broken
from vademecum.model.agents.spool_layout import OF_OWNER, REJECTED, TALLY, WHY, blocks
from vademecum.model.schema.constants import OWNER

T = TypeVar("T")
FILE_MAX = 2**17  # bytes; 8,000 characters are less, however they are written
WRITTEN_S = 60.0  # by then whoever writes a file has done it, or has died
TRIES = 5  # to remove a folder into which a hook is writing
DENIED = (errno.EACCES, errno.EPERM)
SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
IRREGULAR = (errno.ELOOP, errno.ENXIO)  # a link, a socket: never an event, however often it is tried


@dataclass(frozen=True)
class ReadFiles(Generic[T]):
    """Of some files: those that hold what is looked for, those that never will, and those that cannot be read now."""

    found: list[tuple[Path, T]]
    odd: list[Path]
    unread: list[tuple[Path, OSError]]


class Waiting(NamedTuple):
    """What waits for one user: how many events, since when, and why, if the server has said so."""

    email: str
    events: int
    since: float
    why: str


def email_of(folder: Path) -> str:
    """Whose events these are: as the user was named to `vademecum record`, in whatever letters."""
    return OWNER if folder.name == OF_OWNER else unquote(folder.name)


def folders(spool: Path) -> list[Path]:
    """Those of what waits, one for each way to write a user."""
    if not spool.is_dir():
        return []
    return sorted(path for path in spool.iterdir() if path.is_dir() and path.name != REJECTED)


def _inside(folder: Path) -> list[Path]:
    """Of a folder that has gone meanwhile nothing."""
    try:
        return sorted(folder.iterdir())
    except FileNotFoundError:
        return []


def files(folder: Path) -> list[Path]:
    """In the order of their ids, so of time. What is being written has another end."""
    return [path for path in _inside(folder) if path.suffix == ".json"]


def everything(folder: Path) -> list[Path]:
    """Also what is no event, or will never be one; but not what is being written."""
    return [path for path in _inside(folder) if path.name not in (TALLY, WHY) and not _is_fresh(path)]


def unread(path: Path, error: OSError) -> Broken | OSError:
    """What to raise. A shortage is no fault of what lies there: it stays what it is, and passes."""
    return error if error.errno in SHORTAGES else Broken(no_reading(path, error))


def no_reading(path: Path, error: OSError) -> str:
    said = f"What agents left in {_called(path)} cannot be read ({error.strerror or error})"
    if error.errno not in DENIED:
        return f"{said}. Try again."
    return f"{said}: as after a hook that ran as another user. Make it readable to the server, or remove it, by hand."


def unreadable(spool: Path) -> list[str]:
    """What of the spool cannot be looked into, and why."""
    said: list[str] = []
    for parent in (spool, spool / REJECTED):
        try:
            for folder in folders(parent):
                try:
                    _inside(folder)
                except OSError as error:
                    said.append(no_reading(folder, error))
        except OSError as error:
            return [*said, no_reading(parent, error)]
    return said


def _called(path: Path) -> str:
    return f"{path.parent.name}/{path.name} of the server's spool"


def _is_fresh(path: Path) -> bool:
    return path.suffix == ".tmp" and time.time() - _stat(path)[1] < WRITTEN_S


def _stat(path: Path) -> tuple[int, float]:
    """(size, when it was written); of what has gone meanwhile, or is not to be had, (nothing, now)."""
    try:
        status = path.lstat()
    except OSError:
        return 0, time.time()
    return status.st_size, status.st_mtime


def read(paths: Sequence[Path], decode: Callable[[bytes], T]) -> ReadFiles[T]:
    """What has gone meanwhile is in none of the three."""
    read: ReadFiles[T] = ReadFiles([], [], [])
    for path in paths:
        try:
            read.found.append((path, decode(content(path))))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            read.odd.append(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            if error.errno in IRREGULAR:
                read.odd.append(path)
            else:
                read.unread.append((path, error))
    return read


def content(path: Path, *, whole: bool = True) -> bytes:
    """Of a file as `record` writes it. Of anything else nothing: a pipe would never end, a link leads elsewhere. `whole`:
    of a file that is too large nothing either, else its beginning."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        fits = stat.S_ISREG(status.st_mode) and (status.st_size <= FILE_MAX or not whole)
        return os.read(descriptor, FILE_MAX) if fits else b""
    finally:
        os.close(descriptor)


def settle(folder: Path, why: str = "", *, lasting: bool = False) -> None:
    """After a look: count what still waits, and write down why it waits; `lasting`: for `record` to say
    next time, although nothing waits now."""
    waiting = sum(blocks(_stat(path)[0]) for path in files(folder))
    if not waiting and not lasting:
        why = ""
    if waiting:
        with _opened(folder / TALLY) as file:
            file.truncate(waiting)  # in one step: `record` asks for its size, and adds to it, meanwhile
    else:
        (folder / TALLY).unlink(missing_ok=True)
    if why:
        unfinished = folder / f"{uuid.uuid4().hex}.tmp"  # two looks may end at once
        with _opened(unfinished) as file:
            file.write(why.encode())
        unfinished.replace(folder / WHY)  # nobody reads half a reason
    else:
        (folder / WHY).unlink(missing_ok=True)


def _opened(path: Path) -> BinaryIO:
    """To write; what is there stays."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o600), "wb")


def marked(folder: Path) -> bool:
    return (folder / TALLY).exists() or (folder / WHY).exists()


def waiting(spool: Path) -> Iterator[Waiting]:
    """But for what is `unreadable`."""
    for folder in _readable(spool):
        if there := files(folder):
            why = ""
            with suppress(OSError):
                why = (folder / WHY).read_text(encoding="utf-8", errors="replace")
            yield Waiting(email_of(folder), len(there), _stat(there[0])[1], why)


def set_aside(spool: Path) -> int:
    return sum(len(_inside(folder)) for folder in _readable(spool / REJECTED))


def _readable(parent: Path) -> Iterator[Path]:
    with suppress(OSError):
        for folder in folders(parent):
            with suppress(OSError):
                _inside(folder)
                yield folder


def remove_folders(paths: Iterable[Path]) -> None:
    """With all that is in them. Raises Broken when one stays, after all that can be removed is."""
    _for_certain(paths, _remove_folder)


def remove(paths: Iterable[Path]) -> None:
    """Files, and whatever else lies where one should. Raises Broken when something stays, after the rest is removed."""
    _for_certain(paths, _remove)


def _for_certain(paths: Iterable[Path], how: Callable[[Path], None]) -> None:
    stays: Broken | None = None
    for path in paths:
        try:
            how(path)
        except OSError as error:
            stays = stays or Broken(
                f"What agents left in {_called(path)} cannot be removed "
                f"({error.strerror or error}): it must be removed by hand."
            )
    if stays:
        raise stays


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        _remove_tree(path)
    else:
        path.unlink(missing_ok=True)


def _remove_folder(folder: Path) -> None:
    try:
        _remove_tree(folder)
    except OSError:
        if not folder.is_symlink():  # what is behind a link is not ours
            with suppress(OSError, Broken):
                remove(list(folder.iterdir()))  # one file that stays keeps no other
        raise


def _remove_tree(folder: Path) -> None:
    for left in reversed(range(TRIES)):
        try:
            shutil.rmtree(folder)
            return
        except OSError as error:
            if _has_gone(folder):
                return
            if not left or error.errno not in (errno.ENOTEMPTY, errno.ENOENT):
                raise


def _has_gone(path: Path) -> bool:
    """For certain: of what is in a folder that cannot be entered nobody knows."""
    try:
        path.lstat()
    except OSError as error:
        return error.errno == errno.ENOENT
    return False


def unlink(paths: Sequence[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
