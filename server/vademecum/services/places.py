"""Places: how many uploads may be under way at once. Each holds its file in memory until it is stored."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from vademecum.errors import Busy

RETRY_AFTER_S = 5


@dataclass
class Places:
    """`reading_of_one`: files of one user that are read at once, so that a core is left to the others."""

    of_one: int = 4
    in_all: int = 16
    reading_of_one: int = max(1, (os.cpu_count() or 2) - 1)
    _held: Counter[str] = field(default_factory=Counter)  # by user
    _turns: dict[str, asyncio.Semaphore] = field(default_factory=dict)  # of those users

    @asynccontextmanager
    async def take(self, user_id: str, filename: str) -> AsyncIterator[asyncio.Semaphore]:
        """A place; yields the turn to take before the file is read. Raises Busy.

        Who has a turn waits for a core behind at most `reading_of_one` files of any other user.
        """
        if self._held[user_id] >= self.of_one:
            raise _busy(f"{self.of_one} of your files are being read already", filename)
        if self._held.total() >= self.in_all:
            raise _busy("The server is reading as many files as it can", filename)
        self._held[user_id] += 1
        try:
            yield self._turns.setdefault(user_id, asyncio.Semaphore(self.reading_of_one))
        finally:
            self._held[user_id] -= 1
            if not self._held[user_id]:
                del self._held[user_id], self._turns[user_id]


def _busy(why: str, filename: str) -> Busy:
    return Busy(f"{why}, so {filename} was not stored. Try again in a moment.", retry_after_s=RETRY_AFTER_S)
