"""The spool: what `vademecum record` leaves for the server, a file an event, whole or not there at all.

It is not synced to the disk: an agent's next step does not wait for that, and what
a loss of power takes are the last seconds of an agent that has lost its power too.

While nobody takes them up, events are kept up to a bound (model/agents/spool_layout.py). How much waits is what has been counted
since the server last looked: to list a folder takes the longer the more is in it.
"""

from __future__ import annotations

import os

from vademecum.errors import LimitReached
from vademecum.model.agents.spool_layout import BLOCKS_MAX, SPOOL, TALLY, WHY, blocks, folder_name


def folder_of(data: str, email: str) -> str:
    """`email`: empty for the local owner."""
    return os.path.join(data, SPOOL, folder_name(email))


def put(folder: str, name: str, content: bytes) -> str:
    """Returns why what is here is not taken up, if the server knows. Raises OSError or LimitReached, and then leaves
    nothing behind."""
    os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    tally = os.path.join(folder, TALLY)
    if _size(tally) + blocks(len(content)) > BLOCKS_MAX:
        raise LimitReached(
            f"Too many events wait in {folder}: this one is not kept. `vademecum doctor` says why."
        )
    path = os.path.join(folder, f"{name}.json")
    try:
        _write(f"{path}.tmp", os.O_EXCL, content)
        os.rename(f"{path}.tmp", path)
    except OSError:
        if os.path.exists(f"{path}.tmp"):
            os.unlink(f"{path}.tmp")
        raise
    try:
        _write(tally, os.O_APPEND, b"." * blocks(len(content)))
        return _read(os.path.join(folder, WHY))
    except OSError:  # the event is kept
        return ""


def _write(path: str, how: int, content: bytes) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | how, 0o600), "wb") as file:
        file.write(content)


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return ""
