"""Build a model's folder beside the installed models and move it into place atomically.

At any moment either the old or the new model is complete on disk, so a server that starts after a crash finds a model.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from vademecum.fsync import sync_folder

STALE_S = 3600.0  # in seconds; an older temporary folder was left behind by a killed process and is deleted
# Constants of the Linux system call renameat2.
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


@contextlib.contextmanager
def staging_folder(models_dir: Path, name: str) -> Iterator[Path]:
    """Yield a temporary folder beside the models and remove it when the context exits, also after an error."""
    models_dir.mkdir(parents=True, exist_ok=True)
    for stale in models_dir.glob(f".{name}.new-*"):  # left over from a killed process
        if time.time() - stale.stat().st_mtime > STALE_S:
            shutil.rmtree(stale, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=f".{name}.new-", dir=models_dir))
    try:
        folder.chmod(0o755)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def install_folder(new: Path, target: Path) -> None:
    """Rename `new` to `target`. A previous `target` gets the name of `new`, and `staging_folder` removes it."""
    sync_folder(new)
    try:
        new.rename(target)
    except OSError:  # the target exists, so the folders must be exchanged
        _exchange(new, target)
    sync_folder(target.parent)


def write_synced(path: Path, data: bytes) -> None:
    """Write a file and flush it to disk."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _exchange(one: Path, other: Path) -> None:
    """Swap the names of two folders.

    Linux has a system call for this, renameat2, which Python does not expose. Other systems need three renames.
    """
    swap = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None) if os.name == "posix" else None
    if swap is not None:
        if not swap(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE):
            return
        # These two errors mean that the kernel or the file system does not support the swap.
        if (code := ctypes.get_errno()) not in (errno.EINVAL, errno.ENOSYS):
            raise OSError(code, os.strerror(code), str(one))
    aside = one.with_name(f"{one.name}-old")
    other.rename(aside)
    one.rename(other)
    aside.rename(one)
