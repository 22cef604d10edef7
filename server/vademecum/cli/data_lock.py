"""Lock a data folder. Only the holder of the lock may open the folder's files.

This module is separate from `api_client`, whose import of httpx would delay the start of a server.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vademecum.errors import Broken
from vademecum.services.accounts import local_auth

NAME = ".lock"
LOCK_WAIT_S = 20.0  # maximum wait for another process to release the lock
LOCK_RETRY_S = 0.2


def is_data_folder(data: Path) -> bool:
    """Return whether a command or server has ever used the folder."""
    try:
        return (data / NAME).exists()
    except OSError:  # opening the folder later reports this error
        return False


@contextmanager
def try_lock(data: Path) -> Iterator[bool]:
    """Lock the folder and yield True, or yield False if another process holds the lock."""
    try:
        data.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(data / NAME, os.O_RDWR | os.O_CREAT, 0o600)
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


@contextmanager
def wait_for_lock(data: Path) -> Iterator[bool]:
    """Lock the folder like `try_lock`, but wait while a command or a stopping server holds the lock.

    Yield False after `LOCK_WAIT_S`. Yield False at once if a server is running.
    """
    end = time.monotonic() + LOCK_WAIT_S
    while True:
        with try_lock(data) as is_locked:
            if is_locked or local_auth.read(data) is not None or time.monotonic() > end:
                yield is_locked
                return
        time.sleep(LOCK_RETRY_S)


def find_running_server(data: Path) -> local_auth.ServerInfo | None:
    """Return the address of the folder's running server, or None. Ignore a `server.json` that a crash left behind."""
    with try_lock(data) as is_locked:
        return None if is_locked else local_auth.read(data)
