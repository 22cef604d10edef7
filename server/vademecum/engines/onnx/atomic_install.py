"""A folder of a model is built beside the others and put in its place in one step, whole and on the disk.

At any moment the old model or the new one stands there: a server that is just starting, or a crash, finds one of them.
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

STALE_S = 3600.0
_HERE = -100  # AT_FDCWD
_EXCHANGE = 2  # RENAME_EXCHANGE


@contextlib.contextmanager
def staging_folder(models_dir: Path, name: str) -> Iterator[Path]:
    """A folder beside the models, gone afterwards whatever happens."""
    models_dir.mkdir(parents=True, exist_ok=True)
    for stale in models_dir.glob(f".{name}.new-*"):  # left by a process that was killed
        if time.time() - stale.stat().st_mtime > STALE_S:
            shutil.rmtree(stale, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=f".{name}.new-", dir=models_dir))
    try:
        folder.chmod(0o755)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def install_folder(new: Path, target: Path) -> None:
    """`new` becomes `target`. What was there before takes the place of `new`, for `staging` to remove."""
    sync_folder(new)
    try:
        new.rename(target)
    except OSError:  # something is there
        _exchange(new, target)
    sync_folder(target.parent)


def write_synced(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _exchange(one: Path, other: Path) -> None:
    """Swap the names of two folders. Python has no call for it: Linux does it in one step, elsewhere it takes three."""
    swap = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None) if os.name == "posix" else None
    if swap is not None:
        if not swap(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE):
            return
        if (code := ctypes.get_errno()) not in (errno.EINVAL, errno.ENOSYS):  # the file system cannot do it
            raise OSError(code, os.strerror(code), str(one))
    aside = one.with_name(f"{one.name}-old")
    other.rename(aside)
    one.rename(other)
    aside.rename(one)
