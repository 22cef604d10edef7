"""Give waiting requests priority over background work.

The GIL lets one thread compute at a time, so each computing background thread delays every request. Such a thread rests
between two rows while requests wait. The model computes without the GIL but on the same cores, so it leaves one core
free unless the server is idle.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TypeVar

T = TypeVar("T")
REST = 19  # background work rests at most 19 times as long as it works, so it continues under constant load
GAP_S = 0.02  # seconds after a response in which the client's next request is expected
NAP_S = 0.005  # seconds between two checks, because each check takes the GIL from a request
IDLE_S = 0.5  # the server is idle after this many seconds without requests; active clients send more


class RequestPriority:
    """Counts waiting requests. The event loop updates the count, and threads read it."""

    def __init__(self) -> None:
        self._requests = 0
        self._unthrottled = 0
        self._busy_until = 0.0  # a time on the monotonic clock

    def begin_request(self) -> None:
        """Count a request that waits for its response."""
        self._requests += 1

    def end_request(self) -> None:
        """Stop counting a request: its response has begun."""
        self._requests -= 1
        self._busy_until = time.monotonic() + GAP_S

    def is_busy(self) -> bool:
        """Return whether background work should yield: a request waits, or the next one is expected at once."""
        return not self._unthrottled and (self._requests > 0 or time.monotonic() < self._busy_until)

    def is_idle(self) -> bool:
        """Return whether no request came for `IDLE_S`."""
        return self._requests == 0 and time.monotonic() >= self._busy_until - GAP_S + IDLE_S

    @contextmanager
    def unthrottled(self) -> Iterator[None]:
        """Let background work run at full speed, because a request waits for its result."""
        self._unthrottled += 1
        try:
            yield
        finally:
            self._unthrottled -= 1

    @contextmanager
    def waiting_on_upstream(self) -> Iterator[None]:
        """Do not count a request while it waits for the language model."""
        self.end_request()
        try:
            yield
        finally:
            self.begin_request()

    @asynccontextmanager
    async def priority_lock(self, lock: asyncio.Lock) -> AsyncIterator[None]:
        """Hold the lock. Its current holder is not throttled while the caller waits."""
        with self.unthrottled():
            await lock.acquire()
        try:
            yield
        finally:
            lock.release()

    def throttled(self, items: Iterable[T]) -> Iterator[T]:
        """Yield the items. After each item, rest while requests wait, at most `REST` times as long as its work took."""
        for item in items:
            began = time.thread_time()
            yield item
            self._rest(REST * (time.thread_time() - began))

    def _rest(self, max_s: float) -> None:
        until = time.monotonic() + max_s
        while self.is_busy() and time.monotonic() < until:
            time.sleep(NAP_S)
