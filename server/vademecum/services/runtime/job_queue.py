"""Queue users for one kind of background job. The queue survives a restart.

Runs of one user never overlap, and failed runs are retried. A pending user has a marker file
`<data>/jobs/<job>/<user id>`, so that server startup need not open every account's records. The file's modification
time is the due time, and its content is the requested delay in seconds. The marker is deleted when the work is done.
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
STOPPING_S = 5  # seconds until a client should retry a request that a stopping server rejected
RETRY_S = (1.0, 5.0, 30.0, 120.0)
EARLY = 0.4  # the last part of the minimum interval, in which a request may start the next run early


class JobQueue:
    """Run `work(user_id)` for each scheduled user, `delay_s` after the request, for `parallel` users at a time.

    `min_interval_s`: the time between the starts of two runs of a user, unless a caller waits for the result. In the
    last part of the interval (`EARLY`), a request starts the run after its own delay, because a run delays writers
    least if it follows a write directly. `paused`: only store requests, so that a later server start runs them.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        work: Callable[[str], Awaitable[None]],
        *,
        delay_s: float = 0.0,
        min_interval_s: float = 0.0,
        parallel: int = 1,
        paused: bool = False,
    ) -> None:
        self.name = name
        self._folder = folder / name
        self._work = work
        self._delay_s = delay_s
        self._min_interval_s = min_interval_s
        self._early_s = min_interval_s * EARLY
        self._slots = asyncio.Semaphore(parallel)
        # The keys of these dictionaries are users. Times are on the monotonic clock.
        self._not_before: dict[str, float] = {}  # the earliest time of the next run, after a run or a failure
        self._due: dict[str, float] = {}  # the time of the next run
        self._tasks: dict[str, asyncio.Task[None]] = {}  # tasks that are waiting or running
        self._wake: dict[str, asyncio.Event] = {}  # set to make a waiting task read `_due` again
        self._latest: dict[str, float] = {}  # the latest time to which a run can be deferred
        self._waiters: dict[str, list[asyncio.Future[None]]] = {}  # callers that wait for the next run
        self._paused = paused

    def start(self) -> None:
        """Resume the work that an earlier process left undone. Raises Broken if the markers cannot be read."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            due = {marker.name: self._remaining_s(marker) for marker in self._folder.iterdir()}
        except OSError as error:
            raise Broken(
                f"{self._folder} cannot be used ({error.strerror}). It lists the accounts with unfinished background work. "
                "Nothing was changed. Make it a folder that the server can read and write. If you delete it, the server "
                "creates an empty one, and recently deleted data may stay on the disk until the next deletion."
            ) from error
        if self._paused:
            return
        for user_id, remaining_s in due.items():
            self.schedule(user_id, max(self._delay_s, remaining_s))

    @staticmethod
    def _remaining_s(marker: Path) -> float:
        """Return the seconds until a marker is due, at most its delay.

        The result is limited to the delay, so that a clock that was set back does not postpone the work. A marker
        without a delay (damaged, or of an earlier version) is due now.
        """
        remaining_s = marker.lstat().st_mtime - time.time()
        try:
            return min(remaining_s, float(marker.read_text(encoding="ascii")))
        except (OSError, ValueError):
            return 0.0

    def schedule(self, user_id: str, delay_s: float | None = None) -> None:
        """Schedule a run for this user after `delay_s`, by default the delay of the job.

        If a run is already scheduled, the earlier time counts. A request during a run causes another run.
        """
        due = time.monotonic() + (self._delay_s if delay_s is None else delay_s)
        not_before = self._not_before.get(user_id, due)
        self._schedule_at(user_id, due if due >= not_before - self._early_s else not_before)

    def _schedule_at(self, user_id: str, due: float) -> None:
        if due >= self._due.get(user_id, math.inf):
            return
        self._due[user_id] = due
        task = self._tasks.get(user_id)
        if task is None:
            self._begin(user_id)
        elif user_id in self._wake:
            self._write_marker_soon(user_id)
            self._wake[user_id].set()
        elif task.done() or task.cancelling():
            # The task's marker is deleted. Write a new one, because the server may stop before the next task.
            self._write_marker_soon(user_id)

    def schedule_when_quiet(self, user_id: str, quiet_s: float, max_delay_s: float) -> None:
        """Debounce: schedule a run `quiet_s` after the last of these calls, but at most `max_delay_s` after the first.

        A call defers a waiting run, unless the run is already due.
        """
        is_waiting = user_id in self._wake and user_id in self._due
        if not is_waiting:
            self.schedule(user_id, quiet_s)
            return
        now = time.monotonic()
        latest = self._latest.setdefault(user_id, now + max_delay_s)
        if self._due[user_id] > now:
            self._due[user_id] = max(self._due[user_id], min(now + quiet_s, latest))

    def run_now(self, user_id: str) -> None:
        """Start a run at once, without any delay or backoff after a failure."""
        self._schedule_at(user_id, time.monotonic())

    async def run_and_wait(self, user_id: str) -> None:
        """Run the work at once and wait for it. If the work raises an error, raise that error and retry the work later.

        The marker stays until the work is done, so that a crash does not lose the work.
        """
        if self._paused:
            raise _stopping()
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(user_id, []).append(waiter)
        self.run_now(user_id)
        await waiter

    async def _run_once(self, user_id: str) -> None:
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
        self._write_marker_soon(user_id)
        if not self._paused:
            self._tasks[user_id] = task = asyncio.create_task(self._run(user_id))
            task.add_done_callback(lambda _: self._end(user_id))

    def _end(self, user_id: str) -> None:
        del self._tasks[user_id]
        if user_id in self._due and not self._paused:  # after a stop, the marker of unfinished work stays
            self._begin(user_id)

    def _write_marker_soon(self, user_id: str) -> None:
        """Write the marker in the next step of the event loop, so that the caller's response is sent first."""
        due = time.time() + self._due[user_id] - time.monotonic()
        asyncio.get_running_loop().call_soon(self._write_marker, user_id, due)

    def _write_marker(self, user_id: str, due: float) -> None:
        if user_id not in self._due:
            return  # the work has already been canceled
        marker = self._folder / user_id
        try:
            marker.touch()
            with contextlib.suppress(OSError):  # on a full disk, keep an empty marker, which is due at once
                marker.write_text(f"{max(0.0, due - time.time()):.0f}", encoding="ascii")
            os.utime(marker, (due, due))
        except OSError as error:
            _log.error("cannot write job marker", job=self.name, exc_info=error)

    async def _run(self, user_id: str) -> None:
        current_user.set(user_id)
        await self._wait(user_id)
        await self._run_until_success(user_id)
        if user_id not in self._due:
            (self._folder / user_id).unlink(missing_ok=True)

    async def _wait(self, user_id: str) -> None:
        self._wake[user_id] = wake = asyncio.Event()
        try:
            while (remaining_s := self._due[user_id] - time.monotonic()) > 0:
                wake.clear()
                # Not `asyncio.wait_for`, which can lose a cancellation that arrives right after the event is set.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(remaining_s):
                        await wake.wait()
        finally:
            del self._wake[user_id]

    async def _run_until_success(self, user_id: str) -> None:
        """Retry the work until it succeeds."""
        failures = 0
        while True:
            try:
                async with self._slots:
                    self._due.pop(user_id, None)  # a later request causes another run
                    self._latest.pop(user_id, None)
                    self._start_interval(user_id)
                    await self._run_once(user_id)
                return
            except NotFound:
                self._not_before.pop(user_id, None)
                return  # do not retry: the account does not exist any more
            except Exception as error:
                wait = RETRY_S[min(failures, len(RETRY_S) - 1)]
                failures += 1
                _log.error("job failed", job=self.name, retry_s=wait, exc_info=error)
                self._due[user_id] = self._not_before[user_id] = time.monotonic() + wait
                await self._wait(user_id)  # `run_now` ends the wait early

    def _start_interval(self, user_id: str) -> None:
        """Delay the next run of the user to `min_interval_s` from now."""
        self._not_before[user_id] = end = time.monotonic() + self._min_interval_s

        def remove_if_unchanged() -> None:
            if self._not_before.get(user_id) == end:
                del self._not_before[user_id]

        asyncio.get_running_loop().call_later(self._min_interval_s, remove_if_unchanged)

    def is_pending(self, user_id: str) -> bool:
        """Return whether work for this user is waiting or running."""
        return user_id in self._tasks

    def count_pending(self) -> int:
        return len(self._tasks)

    async def drain(self, user_id: str) -> None:
        """Run all work of this user now and wait until it is done."""
        while (task := self._tasks.get(user_id)) is not None:
            if user_id in self._due:
                self.run_now(user_id)
            await asyncio.wait([task])

    def cancel(self, user_id: str) -> None:
        """Cancel the work of this user and delete its marker."""
        (self._folder / user_id).unlink(missing_ok=True)
        self._due.pop(user_id, None)
        self._latest.pop(user_id, None)
        self._not_before.pop(user_id, None)
        task = self._tasks.get(user_id)
        if task is not None:
            task.cancel()
        self._fail_waiters(user_id, NotFound("There is no such account."))

    def _fail_waiters(self, user_id: str, error: VademecumError) -> None:
        for waiter in self._waiters.pop(user_id, []):
            if not waiter.done():
                waiter.set_exception(error)

    async def close(self) -> None:
        """Stop the queue. Unfinished work keeps its marker for the next start."""
        self._paused = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for user_id in list(self._waiters):
            self._fail_waiters(user_id, _stopping())


def _stopping() -> Stopping:
    return Stopping("The server is stopping. The work continues at its next start.", retry_after_s=STOPPING_S)
