"""Share threads, processes and other slots among users, so that one busy user does not delay the others.

Work waits in one queue per user. Free slots go to the users in turn (round robin), and one user holds at most
`per_user` slots at a time. `current_user` is the user for whom the running code works. Requests and background jobs set
it. It is empty for the server's own work, to which the limit `per_user` does not apply.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, Generic, TypeVar

T = TypeVar("T")
ACTIVE_S = 2.0  # how long a user counts as active after a request
LONG_S = 0.02  # work with less CPU time than this does not delay other users
# After long work a thread rests 3 times as long as it worked, at most 0.1 s, so that other users get most of the GIL.
REST, REST_MAX_S = 3, 0.1
SERVER = ""  # stands for the server itself in place of a user id
current_user: ContextVar[str] = ContextVar("current_user", default=SERVER)


class Activity:
    """Tracks whether several users are active. Its methods may be called from any thread."""

    def __init__(self) -> None:
        # The user and the time of the latest request, and of the latest request by a different user.
        self._last = self._other = (SERVER, -ACTIVE_S)

    def note(self, user_id: str) -> None:
        """Record a request of this user."""
        if user_id != self._last[0]:
            self._other = self._last
        self._last = user_id, time.monotonic()

    def rest_s(self, user_id: str, used_s: float) -> float:
        """Return how many seconds a thread rests after work of this user that took `used_s` seconds of CPU time.

        A thread does not rest after short work, or while no other user is active.
        """
        other, at = self._last if self._last[0] != user_id else self._other
        if SERVER in (user_id, other) or used_s < LONG_S or time.monotonic() - at > ACTIVE_S:
            return 0
        return min(REST * used_s, REST_MAX_S)


activity = Activity()


class FairQueue(Generic[T]):
    """Queues the waiting items of many users.

    It is not thread-safe, so callers hold a lock or stay on the event loop.
    """

    def __init__(self, slots: int, per_user: int | None = None) -> None:
        self._slots = slots
        self._per_user = slots if per_user is None else min(per_user, slots)
        self._waiting: OrderedDict[str, deque[T]] = OrderedDict()  # the user whose turn is next comes first
        self._running: Counter[str] = Counter()

    def __len__(self) -> int:
        """Return the number of waiting items."""
        return sum(map(len, self._waiting.values()))

    def waiting(self, user_id: str) -> int:
        return len(self._waiting.get(user_id, ()))

    def running(self, user_id: str) -> int:
        return self._running[user_id]

    def put(self, user_id: str, item: T) -> None:
        self._waiting.setdefault(user_id, deque()).append(item)

    def take(self) -> tuple[str, T] | None:
        """Return the next item and its user, or None if no item may start. The item occupies a slot until `release`."""
        if self._running.total() >= self._slots:
            return None
        for user_id, items in self._waiting.items():
            if user_id == SERVER or self._running[user_id] < self._per_user:
                item = items.popleft()
                self._waiting.move_to_end(user_id)
                if not items:
                    del self._waiting[user_id]
                self._running[user_id] += 1
                return user_id, item
        return None

    def release(self, user_id: str) -> None:
        """Free the slot of an item. The turns of others who wait now come before the user's next turn."""
        self._running[user_id] -= 1
        if not self._running[user_id]:
            del self._running[user_id]
        if user_id in self._waiting:
            self._waiting.move_to_end(user_id)

    def discard(self, user_id: str, matches: Callable[[T], bool]) -> int:
        """Remove the matching items of a user from the queue, keeping the user's turn. Return their number."""
        items = self._waiting.get(user_id, deque())
        remaining = deque(item for item in items if not matches(item))
        if remaining:
            self._waiting[user_id] = remaining
        else:
            self._waiting.pop(user_id, None)
        return len(items) - len(remaining)

    def clear(self) -> list[T]:
        """Remove and return all waiting items."""
        items = [item for queue in self._waiting.values() for item in queue]
        self._waiting.clear()
        return items


class FairExecutor(ThreadPoolExecutor):
    """A thread pool that serves users in turn. `submit` queues a call for the caller's `current_user`.

    After long work a thread rests for a moment if other users are active.
    """

    def __init__(self, threads: int, per_user: int, name: str) -> None:
        super().__init__(threads, name)
        self._queue: FairQueue[tuple[Future[Any], Callable[[], Any]]] = FairQueue(threads, per_user)
        self._queue_lock = threading.Lock()

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future: Future[T] = Future()
        with self._queue_lock:
            self._queue.put(current_user.get(), (future, partial(fn, *args, **kwargs)))
        self._start_next()
        return future

    def waiting(self) -> int:
        """Return the number of calls that wait for a thread."""
        return len(self._queue)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        with self._queue_lock:
            dropped = self._queue.clear()
        for future, _ in dropped:
            future.cancel()
        super().shutdown(wait, cancel_futures=cancel_futures)

    def _start_next(self) -> None:
        with self._queue_lock:
            while (taken := self._queue.take()) is not None:
                user_id, (future, work) = taken
                super().submit(self._run, user_id, future, work)

    def _run(self, user_id: str, future: Future[Any], work: Callable[[], Any]) -> None:
        try:
            if future.set_running_or_notify_cancel():
                began = time.thread_time()
                try:
                    future.set_result(work())
                except BaseException as error:
                    future.set_exception(error)
                time.sleep(activity.rest_s(user_id, time.thread_time() - began))
        finally:
            with self._queue_lock:
                self._queue.release(user_id)
            self._start_next()


class FairSlots:
    """An asyncio semaphore that serves users in turn."""

    def __init__(self, slots: int, per_user: int | None = None) -> None:
        self._queue: FairQueue[asyncio.Future[None]] = FairQueue(slots, per_user)

    @asynccontextmanager
    async def hold(self, user_id: str) -> AsyncIterator[None]:
        """Wait for a slot and hold it while the block runs."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.put(user_id, turn)
        self._wake()
        try:
            await turn
        except asyncio.CancelledError:
            if not self._queue.discard(user_id, lambda item: item is turn) and not turn.cancelled():
                self._release(user_id)  # the slot was granted just before the cancellation
            raise
        try:
            yield
        finally:
            self._release(user_id)

    def waiting(self, user_id: str) -> int:
        return self._queue.waiting(user_id)

    def _release(self, user_id: str) -> None:
        self._queue.release(user_id)
        self._wake()

    def _wake(self) -> None:
        while (taken := self._queue.take()) is not None:
            user_id, turn = taken
            if turn.cancelled():
                self._queue.release(user_id)
            else:
                turn.set_result(None)
