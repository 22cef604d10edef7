"""What stays in the spool without being taken up: events that were set aside, and files whose writer has died.

Both are bounded by age and number, so that a program which writes nonsense does not fill the disk. What goes is logged.
"""

from __future__ import annotations

import shutil
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import structlog

from vademecum.model.schema.timestamps import DAY_S

REJECTED_DAYS = 30.0
UNFINISHED_DAYS = 1.0  # writing one takes some milliseconds
FILES_MAX = 1000  # of either

_log = structlog.get_logger("vademecum.spool")


def bound(spool: Path, rejected: Path) -> None:
    """`rejected`: the folder within the spool that holds what was set aside, in one folder for each user."""
    aside = [path for folder in _inside(rejected) for path in _inside(folder)]
    users = [folder for folder in _inside(spool) if folder != rejected]
    unfinished = [path for folder in users for path in _inside(folder) if path.suffix == ".tmp"]
    for paths, days, what in (
        (aside, REJECTED_DAYS, "set aside"),
        (unfinished, UNFINISHED_DAYS, "unfinished"),
    ):
        gone = sum(_remove(path) for path in _beyond(paths, time.time() - days * DAY_S))
        if gone:
            _log.warning("old events were deleted", what=what, files=gone, days=days, most=FILES_MAX)
    remove_empty(rejected)


def remove_empty(rejected: Path) -> None:
    """The folders of users of whom nothing is set aside any more: each is named by an address."""
    for folder in _inside(rejected):
        with suppress(OSError):  # something is in it
            folder.rmdir()


def _beyond(paths: Iterable[Path], oldest: float) -> Iterator[Path]:
    dated = sorted(((_written(path), path) for path in paths), reverse=True)
    return (path for at, (written, path) in enumerate(dated) if at >= FILES_MAX or written < oldest)


def _written(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except OSError:
        return time.time()  # has gone, or is not to be had


def _inside(folder: Path) -> list[Path]:
    """Of a link nothing: it leads elsewhere."""
    try:
        return list(folder.iterdir()) if stat.S_ISDIR(folder.lstat().st_mode) else []
    except OSError:
        return []


def _remove(path: Path) -> bool:
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    except OSError:
        return False
    return True
