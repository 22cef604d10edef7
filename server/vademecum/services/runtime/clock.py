"""Return the current time in the format of rows and responses."""

from __future__ import annotations

import time


def now_iso() -> str:
    """Return the current time as ISO 8601 in UTC with milliseconds."""
    seconds, millis = divmod(time.time_ns() // 1_000_000, 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{millis:03d}Z"
