"""Run calls in the engine's threads. Each call has an owner: the id of a user, or the name of another file.

At most one call of an owner runs at a time. Further calls of the owner wait in a queue.

This module implements its own thread pool, because `ThreadPoolExecutor` cannot replace a thread that does not return.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from vademecum.engines.duckdb.cursor import Cursor

T = TypeVar("T")
CHECK_S = 0.25
UNOWNED = "#"  # prefix of the generated owner of a call that was submitted without an owner


def is_unowned(owner: str) -> bool:
    return not owner or owner.startswith(UNOWNED)


class StuckError(Exception):
    """The thread of this call, or of an earlier call of the same owner, does not return."""


@dataclass(eq=False, slots=True)
class _Call:
    owner: str
    work: Callable[[Cursor], Any]
    answer: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop


@dataclass(eq=False)
class _Worker:
    """A thread of the pool. If `is_abandoned`, its call was answered with StuckError, and another thread has replaced it."""

    thread: threading.Thread | None = None
    cursor: Cursor | None = None
    call: _Call | None = None
    is_abandoned: bool = False


@dataclass
class _Lane:
    """The queue of one owner. If `is_busy`, a thread is running a call of this owner."""

    calls: deque[_Call] = field(default_factory=deque)
    is_busy: bool = False


class ThreadPool:
    """A pool of threads.

    `cursor` creates the cursor of a thread. `on_stuck` is called in the event loop, with the owner of the call, when a
    thread counts as stuck. A thread outside the pool, as during startup, may block the event loop itself. For such a
    thread, `on_stuck` is called in the watchdog's thread, with an empty owner.
    """

    def __init__(self, count: int, cursor: Callable[[], Cursor], on_stuck: Callable[[str], None]) -> None:
        self._cursor = cursor
        self._on_stuck = on_stuck
        self._changed = threading.Condition()
        self._lanes: dict[str, _Lane] = {}
        self._ready: deque[str] = deque()  # owners with queued calls and no running call
        self._workers: set[_Worker] = set()
        self._numbers = itertools.count()
        self._closing = threading.Event()
        self._local = threading.local()
        for _ in range(count):
            self._start()
        self._watchdog = threading.Thread(target=self._watch, name="duckdb-watchdog", daemon=True)
        self._watchdog.start()

    def submit(self, work: Callable[[Cursor], T], owner: str = "") -> asyncio.Future[T]:
        """Run `work` in a thread, after earlier calls of its owner. A call without an owner waits only for a thread."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        owner = owner or f"{UNOWNED}{next(self._numbers)}"
        with self._changed:
            if self._closing.is_set():
                raise RuntimeError("The engine is closed.")
            if self._is_stuck(owner):
                answer.set_exception(StuckError())
                return answer
            lane = self._lanes.setdefault(owner, _Lane())
            lane.calls.append(_Call(owner, work, answer, loop))
            if not lane.is_busy and len(lane.calls) == 1:
                self._ready.append(owner)
                self._changed.notify()
        return answer

    def waiting(self) -> int:
        """Return the number of calls that wait for a thread or for another call of their owner."""
        with self._changed:
            return sum(len(lane.calls) for lane in self._lanes.values())

    def stuck(self) -> list[str]:
        """Return the owners of calls whose threads do not return."""
        with self._changed:
            return [one.call.owner for one in self._workers if one.is_abandoned and one.call is not None]

    def current(self) -> Cursor:
        """Return the cursor of the current thread, even if the thread does not belong to the pool."""
        worker: _Worker | None = getattr(self._local, "worker", None)
        if worker is None:
            worker = self._local.worker = _Worker()
            with self._changed:
                self._workers.add(worker)
        if worker.cursor is None:
            worker.cursor = self._cursor()
        return worker.cursor

    def close_cursors(self) -> None:
        """Close the cursor of every thread; the next call creates a new one. No call may be running."""
        with self._changed:
            for worker in self._workers:
                if worker.cursor is not None and not worker.is_abandoned:
                    worker.cursor.close()
                    worker.cursor = None

    def close(self) -> None:
        """Wait for the running and queued calls, except for stuck ones, and close the pool."""
        with self._changed:
            self._closing.set()
            self._changed.notify_all()
            threads = [one.thread for one in self._workers if one.thread is not None and not one.is_abandoned]
        for thread in threads:
            while thread.is_alive() and not self._was_abandoned(thread):
                thread.join(CHECK_S)
        self._watchdog.join()  # a running watchdog would keep cursors at exit, which DuckDB reports as leaks

    def _was_abandoned(self, thread: threading.Thread) -> bool:
        with self._changed:
            return any(one.thread is thread and one.is_abandoned for one in self._workers)

    def _is_stuck(self, owner: str) -> bool:
        return any(
            one.is_abandoned and one.call is not None and one.call.owner == owner for one in self._workers
        )

    def _start(self) -> None:
        worker = _Worker()
        worker.thread = threading.Thread(target=self._serve, args=[worker], name="duckdb", daemon=True)
        self._workers.add(worker)
        worker.thread.start()

    def _serve(self, worker: _Worker) -> None:
        self._local.worker = worker
        while (call := self._next(worker)) is not None:
            result: Any = None
            error: BaseException | None = None
            try:
                result = call.work(self.current())
            except BaseException as raised:
                error = raised
            with self._changed:
                self._free(call.owner)
                is_abandoned = worker.is_abandoned
                worker.call = None
            if is_abandoned:
                break
            _answer(call, result, error)
            del call, result, error
        with self._changed:
            self._workers.discard(worker)
        if worker.cursor is not None:
            worker.cursor.close()

    def _next(self, worker: _Worker) -> _Call | None:
        with self._changed:
            while not self._ready:
                if self._closing.is_set():
                    return None
                self._changed.wait()
            lane = self._lanes[self._ready.popleft()]
            lane.is_busy = True
            worker.call = lane.calls.popleft()
            return worker.call

    def _free(self, owner: str) -> None:
        lane = self._lanes[owner]
        lane.is_busy = False
        if lane.calls:
            self._ready.append(owner)
            self._changed.notify()
        else:
            del self._lanes[owner]

    def _watch(self) -> None:
        while not self._closing.is_set() or self._has_running():
            now = time.monotonic()
            with self._changed:
                running = [
                    one
                    for one in self._workers
                    if (one.call is not None or one.thread is None) and not one.is_abandoned
                ]
            for worker in running:
                if worker.cursor is None or not worker.cursor.check(now):
                    continue
                if worker.thread is None:
                    worker.is_abandoned = True
                    self._on_stuck("")
                else:
                    self._abandon(worker)
            if not self._closing.wait(CHECK_S):
                continue
            if self._has_running():
                time.sleep(CHECK_S)

    def _has_running(self) -> bool:
        with self._changed:
            return any(one.call is not None and not one.is_abandoned for one in self._workers)

    def _abandon(self, worker: _Worker) -> None:
        with self._changed:
            call = worker.call
            if call is None:  # the call has returned since the check
                return
            worker.is_abandoned = True
            failed = [call, *self._lanes[call.owner].calls]
            self._lanes[call.owner].calls.clear()
            self._start()
        with suppress(RuntimeError):  # the loop may already be closed
            call.loop.call_soon_threadsafe(self._on_stuck, call.owner)
        for one in failed:
            _answer(one, None, StuckError())


def _answer(call: _Call, result: Any, error: BaseException | None) -> None:
    def answer() -> None:
        if call.answer.done():
            return
        if error is not None:
            call.answer.set_exception(error)
        else:
            call.answer.set_result(result)

    with suppress(RuntimeError):  # the loop may already be closed
        call.loop.call_soon_threadsafe(answer)
