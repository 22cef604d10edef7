"""Foreground: who waits for an answer comes first. Python computes in one thread at a time, so that each thread behind
the answers that computes makes every request wait; such a thread gives way here, between one row and the next. The
model computes beside Python, but on the same cores: while people ask, it leaves one of them free.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TypeVar

T = TypeVar("T")
# Of the time in which there is always a request, what the work behind keeps: 1 part of 20. It must go on.
REST = 19
GAP_S = 0.02  # who asks one thing after the other leaves no longer ones
NAP_S = 0.005  # and then look again; each look takes Python from whoever computes
ALONE_S = 0.5  # who talks to a program, or waits for it and looks again, is back sooner than that


class Foreground:
    """Counted on the event loop, looked at from threads."""

    def __init__(self) -> None:
        self._requests = 0
        self._waiting = 0
        self._busy_until = 0.0  # on the monotonic clock

    def begin(self) -> None:
        """A request has come."""
        self._requests += 1

    def end(self) -> None:
        """Its answer has begun."""
        self._requests -= 1
        self._busy_until = time.monotonic() + GAP_S

    def busy(self) -> bool:
        """Is anybody waiting for what does not come from behind, or about to?"""
        return not self._waiting and (self._requests > 0 or time.monotonic() < self._busy_until)

    def alone(self) -> bool:
        """Has nobody asked for anything lately?"""
        return self._requests == 0 and time.monotonic() >= self._busy_until - GAP_S + ALONE_S

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Somebody waits for what is done behind: it does not give way meanwhile."""
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        """A request waits for another program, a language model: it is not waited for meanwhile."""
        self.end()
        try:
            yield
        finally:
            self.begin()

    @asynccontextmanager
    async def ahead(self, lock: asyncio.Lock) -> AsyncIterator[None]:
        """Hold the lock, for somebody who waits: who has it by now does not give way meanwhile."""
        with self.waiting():
            await lock.acquire()
        try:
            yield
        finally:
            lock.release()

    def politely(self, items: Iterable[T]) -> Iterator[T]:
        """The items. Behind each it rests as long as there are requests, `REST` times as long as the work on it took."""
        for item in items:
            began = time.thread_time()
            yield item
            self._rest(REST * (time.thread_time() - began))

    def _rest(self, most_s: float) -> None:
        until = time.monotonic() + most_s
        while self.busy() and time.monotonic() < until:
            time.sleep(NAP_S)
