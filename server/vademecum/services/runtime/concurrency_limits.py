"""Limit concurrent uploads, questions and threads, in total and per user.

The text of an uploaded file stays in memory until it is stored. A question uses a connection to the language model until
it is answered.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from vademecum.errors import Busy, RateLimited
from vademecum.fair_queue import FairExecutor, FairSlots

RETRY_AFTER_S = 5
CORES = os.cpu_count() or 2
THREADS = CORES + 4  # the default executor of asyncio has the same number
# Most work in a user's threads needs the GIL, so more threads per user would not make the work faster.
THREADS_PER_USER = max(1, min(2, CORES - 1))


def share_threads() -> None:
    """Let `asyncio.to_thread` serve users in turn."""
    executor = FairExecutor(THREADS, THREADS_PER_USER, "worker")
    asyncio.get_running_loop().set_default_executor(executor)


@dataclass
class _ConcurrencyLimit:
    per_user: int
    total: int
    _running: Counter[str] = field(default_factory=Counter)  # the occupied slots of each user

    def _acquire(self, user_id: str, user_error: Busy, total_error: Busy) -> Callable[[], None]:
        """Acquire a slot and return a function that releases it.

        Raises `user_error` if the user has no free slot, or `total_error` if the server has none.
        """
        if self._running[user_id] >= self.per_user:
            raise user_error
        if self._running.total() >= self.total:
            raise total_error
        self._running[user_id] += 1
        return lambda: self._release(user_id)

    def _release(self, user_id: str) -> None:
        self._running[user_id] -= 1
        if not self._running[user_id]:
            del self._running[user_id]


@dataclass
class UploadLimit(_ConcurrencyLimit):
    """Limits how many uploaded files are parsed, or wait to be parsed, at the same time."""

    per_user: int = 4
    total: int = 16

    @contextmanager
    def hold(self, user_id: str, filename: str) -> Iterator[None]:
        """Hold a slot while the block runs. Raises Busy if no slot is free."""

        def busy(reason: str) -> Busy:
            return Busy(
                f"{reason}, so {filename} was not stored. Try again in a moment.", retry_after_s=RETRY_AFTER_S
            )

        release = self._acquire(
            user_id,
            busy(f"The server is already reading {self.per_user} of your files"),
            busy("The server is reading as many files as it can"),
        )
        try:
            yield
        finally:
            release()


@dataclass
class QuestionLimit(_ConcurrencyLimit):
    """Limits the concurrent requests to the language model that users wait for: answers and summaries together."""

    per_user: int = 3
    total: int = 64

    def acquire(self, user_id: str) -> Callable[[], None]:
        """Acquire a slot and return a function that releases it.

        Raises RateLimited if the user has no free slot, or Busy if the server has none.
        """
        return self._acquire(
            user_id,
            RateLimited(
                f"The server is already answering {self.per_user} of your questions. Stop one, or wait until one is "
                "done.",
                retry_after_s=RETRY_AFTER_S,
            ),
            Busy(
                "The server is answering as many questions as it can. Try again in a moment.",
                retry_after_s=RETRY_AFTER_S,
            ),
        )

    @contextmanager
    def hold(self, user_id: str) -> Iterator[None]:
        """Hold a slot while the block runs. Raises the same errors as `acquire`."""
        release = self.acquire(user_id)
        try:
            yield
        finally:
            release()


def endpoint_slots(parallel: int) -> FairSlots | None:
    """Return slots for an LLM endpoint that processes `parallel` requests at the same time, or None if `parallel` is 0.

    One account holds at most half of several slots, because an answer may take minutes.
    """
    return FairSlots(parallel, max(1, parallel // 2)) if parallel else None
