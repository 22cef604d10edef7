"""List and read a folder while a server changes it. Files that disappear meanwhile are left out."""

from __future__ import annotations

import os
from pathlib import Path


def paths_below(folder: Path) -> list[Path]:
    return [Path(parent, name) for parent, folders, files in os.walk(folder) for name in folders + files]


def files_below(folder: Path) -> dict[Path, bytes]:
    """Return the content of each file."""
    contents = {}
    for path in paths_below(folder):
        try:
            contents[path] = path.read_bytes()
        except (FileNotFoundError, IsADirectoryError):
            continue
    return contents
