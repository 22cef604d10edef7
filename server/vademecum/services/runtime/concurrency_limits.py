"""Places: how much may be under way at once. An upload holds its file in memory until it is stored; a question holds a
connection to the language model, and what the model can do, until it is answered.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from vademecum.errors import Busy, RateLimited
from vademecum.fair_queue import FairExecutor

RETRY_AFTER_S = 5
CORES = os.cpu_count() or 2
THREADS = CORES + 4  # as many as the default executor of asyncio
THREADS_PER_USER = max(
    1, min(2, CORES - 1)
)  # most of their work needs the GIL, so more would not make it faster


def share_threads() -> None:
    """Let `asyncio.to_thread` serve users in turn."""
    executor = FairExecutor(THREADS, THREADS_PER_USER, "worker")
    asyncio.get_running_loop().set_default_executor(executor)


@dataclass
class UploadPlaces:
    """Bounds how many files are in memory at once."""

    of_one: int = 4
    in_all: int = 16
    _held: Counter[str] = field(default_factory=Counter)  # by user

    @contextmanager
    def take(self, user_id: str, filename: str) -> Iterator[None]:
        """Hold a place while the block runs. Raises Busy."""
        if self._held[user_id] >= self.of_one:
            raise _busy(f"{self.of_one} of your files are being read already", filename)
        if self._held.total() >= self.in_all:
            raise _busy("The server is reading as many files as it can", filename)
        self._held[user_id] += 1
        try:
            yield
        finally:
            self._held[user_id] -= 1
            if not self._held[user_id]:
                del self._held[user_id]


@dataclass
class QuestionPlaces:
    """Of the questions that a person waits for: answers and summaries together."""

    of_one: int = 3
    in_all: int = 64
    _held: Counter[str] = field(default_factory=Counter)  # by user

    def take(self, user_id: str) -> Callable[[], None]:
        """A place; returns how to leave it. Raises RateLimited, Busy."""
        if self._held[user_id] >= self.of_one:
            raise RateLimited(
                f"{self.of_one} of your questions are being answered already. Stop one, or ask when one is done.",
                retry_after_s=RETRY_AFTER_S,
            )
        if self._held.total() >= self.in_all:
            raise Busy(
                "The server answers as many questions as it can. Try again in a moment.",
                retry_after_s=RETRY_AFTER_S,
            )
        self._held[user_id] += 1
        return lambda: self._leave(user_id)

    @contextmanager
    def held(self, user_id: str) -> Iterator[None]:
        """A place for as long as the block runs. Raises as `take`."""
        leave = self.take(user_id)
        try:
            yield
        finally:
            leave()

    def _leave(self, user_id: str) -> None:
        self._held[user_id] -= 1
        if not self._held[user_id]:
            del self._held[user_id]


def _busy(why: str, filename: str) -> Busy:
    return Busy(f"{why}, so {filename} was not stored. Try again in a moment.", retry_after_s=RETRY_AFTER_S)
