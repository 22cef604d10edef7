"""Follow: what is committed flows to the streams of its user, in the order of `seq`, with no gap.

A subscriber that falls behind is closed, never skipped: its client reconnects and pulls what it missed.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from typing import Final

from vademecum.model.draft import Change
from vademecum.services.pull import envelope

CLOSED: Final = None
WAKE: Final = b""


class Subscription:
    """A bounded queue of events, each one SSE `data:` payload. `None` is the end."""

    def __init__(self, collections: frozenset[str], named: bool, size: int) -> None:
        self.queue: asyncio.Queue[bytes | None] = asyncio.Queue(size + 1)
        self._collections = collections
        self._named = named
        self._size = size
        self.closed = False

    def offer(self, epoch: str, changes: list[Change]) -> None:
        if self.closed:
            return
        events = list(_events(changes, self._collections, epoch, self._named))
        if self.queue.qsize() + len(events) > self._size:
            self.close()
            return
        for event in events:
            self.queue.put_nowait(event)

    def wake(self) -> None:
        if not self.closed and not self.queue.full():
            self.queue.put_nowait(WAKE)

    def close(self) -> None:
        """End after what is queued; a full queue has kept one place free for this."""
        if not self.closed:
            self.closed = True
            if self.queue.full():
                self.queue.get_nowait()
            self.queue.put_nowait(CLOSED)


def _events(changes: list[Change], wanted: frozenset[str], epoch: str, named: bool) -> Iterator[bytes]:
    """One event a run of rows of one collection, so that order holds across collections."""
    visible = [
        c for c in changes if c.head is not None and c.head.seq > 0 and c.key.partition("/")[0] in wanted
    ]
    for collection, run in groupby(visible, lambda c: c.key.partition("/")[0]):
        rows = list(run)
        last = rows[-1].head
        assert last is not None
        yield envelope([row.body for row in rows], last.seq, epoch, collection if named else None)


class Hub:
    """Who follows whom. Lives in the event loop alone."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._subscriptions: dict[str, set[Subscription]] = defaultdict(set)

    def publish(self, user_id: str, epoch: str, changes: list[Change]) -> None:
        for subscription in self._subscriptions.get(user_id, ()):
            subscription.offer(epoch, changes)

    @contextmanager
    def subscribe(self, user_id: str, collections: frozenset[str], *, named: bool) -> Iterator[Subscription]:
        """Registered at once: enter this before the response's headers go out."""
        subscription = Subscription(collections, named, self._size)
        self._subscriptions[user_id].add(subscription)
        try:
            yield subscription
        finally:
            self._subscriptions[user_id].discard(subscription)
            if not self._subscriptions[user_id]:
                del self._subscriptions[user_id]

    def close_user(self, user_id: str) -> None:
        for subscription in list(self._subscriptions.get(user_id, ())):
            subscription.close()

    def wake_user(self, user_id: str) -> None:
        """Let the streams of a user look again whether they may go on: a token was revoked."""
        for subscription in self._subscriptions.get(user_id, ()):
            subscription.wake()

    def close(self) -> None:
        for user_id in list(self._subscriptions):
            self.close_user(user_id)

    def count(self) -> int:
        return sum(len(s) for s in self._subscriptions.values())
