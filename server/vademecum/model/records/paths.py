"""Locate the folder of an account."""

from __future__ import annotations

import hashlib
from pathlib import Path


def user_folder(data: Path, user_id: str) -> Path:
    """Return the folder of an account inside the data folder, also for files that are derived from its records."""
    return data / "users" / hashlib.sha256(user_id.encode()).hexdigest()[:2] / user_id
