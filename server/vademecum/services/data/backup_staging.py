"""Create the temporary folder of an unfinished backup. A running backup holds a lock on its folder.

After a crash the folder remains, an unnoticed copy of all data. The next backup into the same parent folder deletes it.
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
MIN_AGE_S = 60.0  # younger folders are not deleted, because a new backup may not have locked its folder yet


@contextmanager
def backup_staging_folder(target: Path) -> Iterator[Path]:
    """Create and lock a new folder beside `target`. Raises OSError if that fails."""
    _delete_abandoned(target.parent)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=target.parent))
    lock = _lock(folder)
    try:
        yield folder
    finally:
        if lock is not None:
            os.close(lock)


def _delete_abandoned(parent: Path) -> None:
    """Delete the unlocked folders of crashed backups. Failures are ignored, because the next backup tries again."""
    with suppress(OSError):
        for folder in parent.glob(f"{PREFIX}*"):
            if time.time() - folder.stat().st_mtime > MIN_AGE_S and (lock := _lock(folder)) is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(lock)


def _lock(folder: Path) -> int | None:
    """Lock a folder and return its descriptor, or None if another process holds the lock or locks are unsupported."""
    if os.name == "nt":
        return None
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
