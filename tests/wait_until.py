"""Waiting until something is so: soon on a quiet machine, late on a busy one, and never where it hangs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from inspect import isawaitable

WITHIN_S = 60.0


async def soon(is_so: Callable[[], object]) -> None:
    """What says whether it is so may have to ask for it first."""
    async with asyncio.timeout(WITHIN_S):
        while not (await so if isawaitable(so := is_so()) else so):
            await asyncio.sleep(0.01)


def soon_outside(is_so: Callable[[], object]) -> None:
    """The same of another process, where there is no event loop."""
    end = time.monotonic() + WITHIN_S
    while not is_so():
        assert time.monotonic() < end, "it does not come to that"
        time.sleep(0.01)
