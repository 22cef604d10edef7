"""Save and load the checkpoint of an index: the epoch and seq up to which it has read the records.

The file is replaced atomically (write, fsync, rename) after Lance has committed. The checkpoint also names the current
Lance table, so an erasure switches to a new table by the same atomic replacement.
"""

import os
from pathlib import Path

import msgspec

from vademecum.fsync import sync_folder

# Increase this number when the format of the rows or terms changes. Folders with another layout are rebuilt.
LAYOUT = 4
FILE = "checkpoint.json"


class IndexCheckpoint(msgspec.Struct, frozen=True):
    """The saved state of an index.

    `version` is the version of the Lance table when the state was saved. A table with an older version has lost writes.
    """

    layout: int = LAYOUT
    model: str | None = None
    dims: int | None = None
    epoch: str = ""
    seq: int = 0
    table: str | None = None
    version: int = 0


# Created at import, because two threads that decode a type for the first time simultaneously can crash msgspec.
_decoder = msgspec.json.Decoder(IndexCheckpoint)


def load(folder: Path) -> IndexCheckpoint | None:
    """Return the checkpoint of a folder, or None if it is missing or unreadable."""
    try:
        return _decoder.decode((folder / FILE).read_bytes())
    except (OSError, msgspec.DecodeError):
        return None


def save(folder: Path, state: IndexCheckpoint) -> None:
    """Save the checkpoint atomically: a crash leaves the old one or the new one."""
    folder.mkdir(parents=True, exist_ok=True)
    new = folder / (FILE + ".tmp")
    with new.open("wb") as file:
        file.write(msgspec.json.encode(state))
        file.flush()
        os.fsync(file.fileno())
    new.replace(folder / FILE)
    sync_folder(folder)
