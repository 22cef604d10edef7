"""Wait until a condition is true, for up to `WITHIN_S` seconds, because a busy machine may be slow."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from inspect import isawaitable

WITHIN_S = 60.0


async def soon(is_so: Callable[[], object]) -> None:
    """Wait until `is_so`, a function or coroutine function, returns a true value. Raises TimeoutError."""
    async with asyncio.timeout(WITHIN_S):
        while not (await so if isawaitable(so := is_so()) else so):
            await asyncio.sleep(0.01)


def soon_outside(is_so: Callable[[], object]) -> None:
    """Wait as `soon` does, but block the thread. For tests without an event loop."""
    end = time.monotonic() + WITHIN_S
    while not is_so():
        assert time.monotonic() < end, f"the condition was still false after {WITHIN_S} s"
        time.sleep(0.01)
