"""What lies in a folder in which a server works meanwhile: what goes while one looks is not there."""

from __future__ import annotations

import os
from pathlib import Path


def paths_below(folder: Path) -> list[Path]:
    return [Path(place, name) for place, folders, files in os.walk(folder) for name in folders + files]


def files_below(folder: Path) -> dict[Path, bytes]:
    """Each file, and what is in it."""
    found = {}
    for path in paths_below(folder):
        try:
            found[path] = path.read_bytes()
        except (FileNotFoundError, IsADirectoryError):
            continue
    return found
