"""Work that goes on behind the answers: a set of users a job, each worked on alone, retried, remembered on disk.

A user in need of a job has a file `<data>/jobs/<job>/<user id>`, so that a restart knows without opening ten thousand
folders. Its modification time is the moment when the work is due, its content the delay in seconds that was asked for.
The file goes when the work is done.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import structlog

from vademecum.errors import Broken, NotFound, Stopping, VademecumError
from vademecum.fair_queue import current_user

_log = structlog.get_logger("vademecum.jobs")
STOPPING_S = 5
RETRY_S = (1.0, 5.0, 30.0, 120.0)
EARLY = 0.4  # the part of the time between two turns in which an ask is one for now


class UserQueue:
    """The users in need of one job. Runs `work(user_id)` for whoever was asked for, `delay_s` after the asking, `parallel`
    users at a time. `apart_s`: so long after one turn of a user the next begins, unless somebody waits for it. In the last
    part of that time an ask begins it: right behind one write it is least in the way of the next. `idle`: there is
    nobody to do it; who asks is remembered for a start that has somebody."""

    def __init__(
        self,
        name: str,
        folder: Path,
        work: Callable[[str], Awaitable[None]],
        *,
        delay_s: float = 0.0,
        apart_s: float = 0.0,
        parallel: int = 1,
        idle: bool = False,
    ) -> None:
        self.name = name
        self._folder = folder / name
        self._work = work
        self._delay_s = delay_s
        self._apart_s = apart_s
        self._early_s = apart_s * EARLY
        self._slots = asyncio.Semaphore(parallel)
        self._not_before: dict[str, float] = {}  # after a failure or a turn, on the monotonic clock
        self._due: dict[str, float] = {}  # asked for and not begun: when to begin, on the same clock
        self._tasks: dict[str, asyncio.Task[None]] = {}  # waiting or under way
        self._sooner: dict[str, asyncio.Event] = {}  # wakes those that wait
        self._last: dict[str, float] = {}  # until when what waits can be put off, on the same clock
        self._waiters: dict[str, list[asyncio.Future[None]]] = {}  # of the next attempt
        self._resting = idle

    def start(self) -> None:
        """Take up what an earlier run left undone. Raises Broken when that cannot be known."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            due = {marker.name: self._left_s(marker) for marker in self._folder.iterdir()}
        except OSError as error:
            raise Broken(
                f"{self._folder} cannot be used ({error.strerror}): it says for whom work is left to do. Nothing was "
                "changed. Make it a folder that the server can read and write; without it the server begins an empty "
                "one, and what was deleted lately may stay on the disk until the next deletion."
            ) from error
        if self._resting:
            return
        for user_id, left_s in due.items():
            self.ask(user_id, max(self._delay_s, left_s))

    @staticmethod
    def _left_s(marker: Path) -> float:
        """Seconds until a marker is due. A clock that was set back must not postpone the work: the delay that was asked
        for is the upper bound. A marker without one (damaged, or of an earlier version) has none left."""
        left_s = marker.lstat().st_mtime - time.time()
        try:
            return min(left_s, float(marker.read_text(encoding="ascii")))
        except (OSError, ValueError):
            return 0.0

    def ask(self, user_id: str, delay_s: float | None = None) -> None:
        """This user has work, due after `delay_s` if not after the job's own delay. Of several asks the one that is due
        first counts. One that comes while the work runs makes it run once more."""
        due = time.monotonic() + (self._delay_s if delay_s is None else delay_s)
        not_before = self._not_before.get(user_id, due)
        self._ask(user_id, due if due >= not_before - self._early_s else not_before)

    def _ask(self, user_id: str, due: float) -> None:
        if due >= self._due.get(user_id, math.inf):
            return
        self._due[user_id] = due
        task = self._tasks.get(user_id)
        if task is None:
            self._begin(user_id)
        elif user_id in self._sooner:
            self._mark(user_id)
            self._sooner[user_id].set()
        elif task.done() or task.cancelling():  # its mark is gone, and a stop may come before the next task
            self._mark(user_id)

    def ask_when_quiet(self, user_id: str, quiet_s: float, most_s: float) -> None:
        """Work due when nobody has asked in this way for `quiet_s`, but `most_s` after the first at most. What waits for
        its time already is put off; what is due is not."""
        if user_id not in self._sooner or user_id not in self._due:  # else it waits
            self.ask(user_id, quiet_s)
            return
        now = time.monotonic()
        last = self._last.setdefault(user_id, now + most_s)
        if self._due[user_id] > now:
            self._due[user_id] = max(self._due[user_id], min(now + quiet_s, last))

    def hurry(self, user_id: str) -> None:
        """Ask, and do not wait for the delay, nor until work that failed would be tried again: somebody is waiting."""
        self._ask(user_id, time.monotonic())

    async def run_now(self, user_id: str) -> None:
        """Run the work at once. Returns when it succeeded; raises what it raised, and it is tried again later. The marker
        stays until the work is done, so that a kill on the way cannot lose it."""
        if self._resting:
            raise _stopping()
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(user_id, []).append(waiter)
        self.hurry(user_id)
        await waiter

    async def _attempt(self, user_id: str) -> None:
        waiters = self._waiters.pop(user_id, [])
        try:
            await self._work(user_id)
        except BaseException as error:
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_exception(error if isinstance(error, Exception) else _stopping())
            raise
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _begin(self, user_id: str) -> None:
        self._mark(user_id)
        if not self._resting:
            self._tasks[user_id] = task = asyncio.create_task(self._run(user_id))
            task.add_done_callback(lambda _: self._end(user_id))

    def _end(self, user_id: str) -> None:
        del self._tasks[user_id]
        if user_id in self._due and not self._resting:  # the mark of work that a stop cut off stays as it is
            self._begin(user_id)

    def _mark(self, user_id: str) -> None:
        """In a moment: the answer to what asked goes out first."""
        due = time.time() + self._due[user_id] - time.monotonic()
        asyncio.get_running_loop().call_soon(self._write_mark, user_id, due)

    def _write_mark(self, user_id: str, due: float) -> None:
        if user_id not in self._due:
            return  # forgotten meanwhile: no work begins before this
        marker = self._folder / user_id
        try:
            marker.touch()
            with contextlib.suppress(OSError):  # a full disk: without its delay it is due at once
                marker.write_text(f"{max(0.0, due - time.time()):.0f}", encoding="ascii")
            os.utime(marker, (due, due))
        except OSError as error:
            _log.error("the job is not remembered over a restart", job=self.name, exc_info=error)

    async def _run(self, user_id: str) -> None:
        current_user.set(user_id)
        await self._wait(user_id)
        await self._succeed(user_id)
        if user_id not in self._due:
            (self._folder / user_id).unlink(missing_ok=True)

    async def _wait(self, user_id: str) -> None:
        self._sooner[user_id] = sooner = asyncio.Event()
        try:
            while (left := self._due[user_id] - time.monotonic()) > 0:
                sooner.clear()
                # Not wait_for: it overhears a stop that comes right behind a wake.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(left):
                        await sooner.wait()
        finally:
            del self._sooner[user_id]

    async def _succeed(self, user_id: str) -> None:
        """Do the work, again and again until it succeeds."""
        failures = 0
        while True:
            try:
                async with self._slots:
                    self._due.pop(user_id, None)  # who asks from now on may have come too late for this time
                    self._last.pop(user_id, None)
                    self._keep_apart(user_id)
                    await self._attempt(user_id)
                return
            except NotFound:
                self._not_before.pop(user_id, None)
                return  # the mark is of nobody, or of somebody who has left
            except Exception as error:
                wait = RETRY_S[min(failures, len(RETRY_S) - 1)]
                failures += 1
                _log.error("job failed", job=self.name, retry_s=wait, exc_info=error)
                self._due[user_id] = self._not_before[user_id] = time.monotonic() + wait
                await self._wait(user_id)  # or until somebody hurries

    def _keep_apart(self, user_id: str) -> None:
        """What is asked for from now on waits until `apart_s` from now."""
        self._not_before[user_id] = then = time.monotonic() + self._apart_s

        def forget() -> None:
            if self._not_before.get(user_id) == then:
                del self._not_before[user_id]

        asyncio.get_running_loop().call_later(self._apart_s, forget)

    def is_asked(self, user_id: str) -> bool:
        """Is there work for this user, waiting or under way?"""
        return user_id in self._tasks

    def pending(self) -> int:
        return len(self._tasks)

    async def settle(self, user_id: str) -> None:
        """See to it that nothing is left to do for this user."""
        while (task := self._tasks.get(user_id)) is not None:
            if user_id in self._due:
                self.hurry(user_id)
            await asyncio.wait([task])

    def forget(self, user_id: str) -> None:
        """The user is gone, or was served at once."""
        (self._folder / user_id).unlink(missing_ok=True)
        self._due.pop(user_id, None)
        self._last.pop(user_id, None)
        self._not_before.pop(user_id, None)
        task = self._tasks.get(user_id)
        if task is not None:
            task.cancel()
        self._release(user_id, NotFound("There is no such account."))

    def _release(self, user_id: str, error: VademecumError) -> None:
        for waiter in self._waiters.pop(user_id, []):
            if not waiter.done():
                waiter.set_exception(error)

    async def close(self) -> None:
        """Stop; what is undone stays marked for the next start."""
        self._resting = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for user_id in list(self._waiters):
            self._release(user_id, _stopping())


def _stopping() -> Stopping:
    return Stopping(
        "The server is being stopped. The work goes on at its next start.", retry_after_s=STOPPING_S
    )
