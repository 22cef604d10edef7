"""Create ids for new rows and epochs.

This module provides time and randomness; `model/schema/uuid7` defines the format.
"""

from __future__ import annotations

import secrets
import time

from vademecum.model.schema.uuid7 import uuid7


def new_epoch() -> str:
    """Return a random URL-safe name for an epoch."""
    return secrets.token_urlsafe(9)


def new_id() -> str:
    return uuid7(time.time_ns() // 1_000_000, secrets.token_bytes(10))
