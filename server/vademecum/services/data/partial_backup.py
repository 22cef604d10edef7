"""Where a backup is made until it is whole. What a crash leaves of one is a copy of everything that everybody had, under a
name that nobody looks for: the next backup beside it takes that away. Whoever is at work holds a lock on the folder.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

if os.name != "nt":
    import fcntl

PREFIX = ".vademecum-backup-"
YOUNG_S = 60.0  # one that has just been made may not be locked yet


@contextmanager
def unfinished(beside: Path) -> Iterator[Path]:
    """A new folder `beside` another. Raises OSError."""
    _sweep(beside.parent)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=beside.parent))
    held = _lock(folder)
    try:
        yield folder
    finally:
        if held is not None:
            os.close(held)


def _sweep(parent: Path) -> None:
    """What cannot be looked at or taken away is left to the next time: it keeps nobody from a backup."""
    with suppress(OSError):
        for folder in parent.glob(f"{PREFIX}*"):
            if time.time() - folder.stat().st_mtime > YOUNG_S and (held := _lock(folder)) is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(held)


def _lock(folder: Path) -> int | None:
    """None where somebody has it, or a file system knows no locks."""
    if os.name == "nt":
        return None
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
