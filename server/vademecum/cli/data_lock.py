"""The lock of a data folder: who holds it may open what is in there. Apart from `api_client`, whose library a server's start need
not wait for."""

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
LOCK_WAIT_S = 20.0  # until another process gives the data folder back
LOCK_RETRY_S = 0.2


def is_data_folder(data: Path) -> bool:
    """Has anything of ours ever used this folder?"""
    try:
        return (data / NAME).exists()
    except OSError:  # what is wrong with it is said by who goes there
        return False


@contextmanager
def try_lock(data: Path) -> Iterator[bool]:
    """Hold the folder's lock. Yields False, holding nothing, when another process has it."""
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
    """`locked`, when whoever has the folder for a moment is done: a command, or a server that is stopping. One that
    serves is not waited for."""
    end = time.monotonic() + LOCK_WAIT_S
    while True:
        with try_lock(data) as mine:
            if mine or local_auth.read(data) is not None or time.monotonic() > end:
                yield mine
                return
        time.sleep(LOCK_RETRY_S)


def find_running_server(data: Path) -> local_auth.Door | None:
    """Where the server of this folder listens, if one runs. What a crash left says nothing."""
    with try_lock(data) as mine:
        return None if mine else local_auth.read(data)
