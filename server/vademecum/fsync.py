"""What must outlast a loss of power: a name in a folder is on the disk only when the folder is."""

from __future__ import annotations

import os
from pathlib import Path


def sync_folder(folder: Path) -> None:
    """The names in `folder`, as they are now, survive a crash of the machine. (Windows does this by itself.)"""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
