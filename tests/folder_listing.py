"""List and read a folder while a server changes it. Files that disappear during the reading are left out."""

from __future__ import annotations

import os
from pathlib import Path


def paths_below(folder: Path) -> list[Path]:
    return [Path(parent, name) for parent, folders, files in os.walk(folder) for name in folders + files]


def files_below(folder: Path) -> dict[Path, bytes]:
    """Map the path of each file below the folder to its content."""
    contents = {}
    for path in paths_below(folder):
        try:
            contents[path] = path.read_bytes()
        except (FileNotFoundError, IsADirectoryError):
            continue
    return contents
