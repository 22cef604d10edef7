"""Work that goes on behind the answers: a set of users a job, each worked on alone, retried, remembered on disk.

A user in need of a job has an empty file `<data>/jobs/<job>/<user id>`, so that a restart knows without opening
ten thousand folders. The file goes when the work is done.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path

import structlog

_log = structlog.get_logger("vademecum.jobs")
RETRY_S = (1.0, 5.0, 30.0, 120.0)


class Job:
    """Runs `work(user_id)` for whoever was asked for, `delay_s` after the asking, `parallel` users at a time."""

    def __init__(
        self,
        name: str,
        folder: Path,
        work: Callable[[str], Awaitable[None]],
        *,
        delay_s: float = 0.0,
        parallel: int = 1,
    ) -> None:
        self.name = name
        self._folder = folder / name
        self._work = work
        self._delay_s = delay_s
        self._slots = asyncio.Semaphore(parallel)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        self._hurries: dict[str, asyncio.Event] = {}
        self._closing = False

    def start(self) -> None:
        """Take up what an earlier run left undone."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for marker in self._folder.iterdir():
            self.ask(marker.name)

    def ask(self, user_id: str) -> None:
        """This user has work. Asking again while it runs makes it run once more."""
        if user_id in self._tasks:
            self._again.add(user_id)
            return
        try:
            (self._folder / user_id).touch()  # also while stopping: the next start takes it up
        except OSError as error:
            _log.error("the job is not remembered over a restart", job=self.name, exc_info=error)
        if not self._closing:
            self._hurries[user_id] = asyncio.Event()
            self._tasks[user_id] = asyncio.create_task(self._run(user_id))

    def hurry(self, user_id: str) -> None:
        """Ask, and do not wait for the delay: somebody is waiting for the work."""
        self.ask(user_id)
        if user_id in self._hurries:
            self._hurries[user_id].set()

    async def _run(self, user_id: str) -> None:
        failures = 0
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._hurries[user_id].wait(), self._delay_s)
            while True:
                self._again.discard(user_id)
                try:
                    async with self._slots:
                        await self._work(user_id)
                    failures = 0
                except Exception as error:
                    wait = RETRY_S[min(failures, len(RETRY_S) - 1)]
                    failures += 1
                    _log.error("job failed", job=self.name, retry_s=wait, exc_info=error)
                    await asyncio.sleep(wait)
                    continue
                if user_id not in self._again:
                    (self._folder / user_id).unlink(missing_ok=True)
                    return
        finally:
            self._tasks.pop(user_id, None)
            self._hurries.pop(user_id, None)

    def is_asked(self, user_id: str) -> bool:
        """Is there work for this user, waiting or under way?"""
        return user_id in self._tasks

    def pending(self) -> int:
        return len(self._tasks)

    async def settle(self, user_id: str) -> None:
        """See to it that nothing is left to do for this user."""
        while (task := self._tasks.get(user_id)) is not None:
            self._hurries[user_id].set()
            await asyncio.wait([task])

    def forget(self, user_id: str) -> None:
        """The user is gone, or was served at once."""
        (self._folder / user_id).unlink(missing_ok=True)
        self._again.discard(user_id)
        task = self._tasks.get(user_id)
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        """Stop; what is undone stays marked for the next start."""
        self._closing = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
