"""The lock of a data folder: who holds it may open what is in there. Apart from `door`, whose library a server's start need
not wait for."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vademecum.errors import Broken
from vademecum.services import local


@contextmanager
def locked(data: Path) -> Iterator[bool]:
    """Hold the folder's lock. Yields False, holding nothing, when another process has it."""
    try:
        data.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(data / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise Broken(
            f"The data folder {data} cannot be used: {error.strerror}. Choose another --data."
        ) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
    finally:
        os.close(descriptor)


def serving(data: Path) -> local.Door | None:
    """Where the server of this folder listens, if one runs. What a crash left says nothing."""
    with locked(data) as mine:
        return None if mine else local.read(data)
