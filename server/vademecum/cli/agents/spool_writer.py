"""Write an event of `vademecum record` to the spool. Each event is one file, which is either complete or absent.

The file is not fsynced, because the agent's next step would wait for that. A power failure may lose the events of the
last seconds, but it also stops the agent.

The spool is bounded (model/agents/spool_layout.py). The length of a separate file is the number of used blocks, because
listing a folder of many events would be slow.
"""

from __future__ import annotations

import os

from vademecum.errors import LimitReached
from vademecum.model.agents.spool_layout import (
    BLOCK_COUNT_FILE,
    BLOCKS_MAX,
    REASON_FILE,
    SPOOL,
    count_blocks,
    folder_name,
)


def folder_for(data: str, email: str) -> str:
    """Return the spool folder of a user. An empty `email` means the owner."""
    return os.path.join(data, SPOOL, folder_name(email))


def write_event(folder: str, name: str, content: bytes) -> str:
    """Write an event. Return the server's reason why earlier events still wait, or "" if there is no such reason.

    Raises OSError or LimitReached if the event is not recorded; no file of the event remains.
    """
    os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    block_count = os.path.join(folder, BLOCK_COUNT_FILE)
    if _file_size(block_count) + count_blocks(len(content)) > BLOCKS_MAX:
        raise LimitReached(
            f"Too many events wait in {folder}, so this event is not recorded. Run `vademecum doctor` to see why."
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
        _write(block_count, os.O_APPEND, b"." * count_blocks(len(content)))
        return _read_text(os.path.join(folder, REASON_FILE))
    except OSError:  # do not fail: the event itself has been written
        return ""


def _write(path: str, flags: int, content: bytes) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | flags, 0o600), "wb") as file:
        file.write(content)


def _file_size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def _read_text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return ""
