"""The time as rows and answers have it."""

from __future__ import annotations

import time


def now_iso() -> str:
    """ISO 8601, UTC, milliseconds."""
    seconds, millis = divmod(time.time_ns() // 1_000_000, 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{millis:03d}Z"
