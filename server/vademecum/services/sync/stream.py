"""Follow: what is committed flows to the streams of its user, in the order of `seq`, with no gap.

A subscriber that falls behind is closed, never skipped: its client reconnects and pulls what it missed. So a stream
that nobody reads costs little: its queue is bounded, and what lies in it is shared with the user's other streams.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Final

import msgspec

from vademecum.engines.duckdb.user_store import UserStore
from vademecum.errors import TooManyStreams
from vademecum.model.schema.lenient_json import on_one_line
from vademecum.model.sync.transaction import WAITING, Change
from vademecum.services.sync.pull import encode_page

EVENT_BYTES: Final = 2**20  # a larger row is an event by itself
RETRY_S: Final = 30
CLOSED: Final = None
WAKE: Final = b""


class StreamLimits(msgspec.Struct, frozen=True):
    """How many streams a user may have, and how many events and bytes may wait in each."""

    streams: int
    events: int
    bytes: int


class EventBatch:
    """Neighbouring rows of a commit, all of one collection: an event, encoded once for all who want it."""

    def __init__(self, store: UserStore, collection: str, seq: int = WAITING) -> None:
        self.collection = collection
        self.size = 0  # bytes of its rows; the few around them are not worth counting
        self._store = store
        self._bodies: list[bytes] = []
        self._seq = seq

    def has_room(self, collection: str, body: bytes) -> bool:
        return collection == self.collection and self.size + len(body) <= EVENT_BYTES

    def add(self, seq: int, body: bytes) -> None:
        self._bodies.append(body)
        self._seq = seq
        self.size += len(body)

    @cached_property
    def plain(self) -> bytes:
        """For a stream of one collection."""
        return encode_event(encode_page(self._store, self._bodies, self._seq))

    @cached_property
    def named(self) -> bytes:
        """For a stream of several."""
        return encode_event(encode_page(self._store, self._bodies, self._seq, self.collection))


def encode_event(data: bytes, event: str = "") -> bytes:
    """A server-sent event. One with a name is no replication: clients that do not know the name pass over it.

    A row is given back as it was sent, and a program may have sent it over several lines: a line break ends the data.
    """
    return (b"event: %s\n" % event.encode() if event else b"") + b"data: " + on_one_line(data) + b"\n\n"


def group_into_batches(store: UserStore, changes: list[Change]) -> list[EventBatch]:
    """A commit as runs, so that order holds across collections; rows that wait for a parent are not shown."""
    runs: list[EventBatch] = []
    for change in changes:
        if change.head is None or change.head.seq == WAITING:
            continue
        collection = change.key.partition("/")[0]
        if not runs or not runs[-1].has_room(collection, change.body):
            runs.append(EventBatch(store, collection))
        runs[-1].add(change.head.seq, change.body)
    return runs


class Subscription:
    """A bounded queue of server-sent events."""

    def __init__(self, collections: frozenset[str], named: bool, bounds: StreamLimits) -> None:
        self.closed = False
        self._collections = collections
        self._named = named
        self._bounds = bounds
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._bytes = 0

    def enqueue(self, runs: list[EventBatch]) -> None:
        """Queue what is wanted of a commit: all of it, or the stream ends."""
        if self.closed:
            return
        wanted = [run for run in runs if run.collection in self._collections]
        events = self._queue.qsize() + len(wanted)
        size = self._bytes + sum(run.size for run in wanted)
        if events > self._bounds.events or size > self._bounds.bytes:
            self._drop()
            self.close()
            return
        for run in wanted:
            event = run.named if self._named else run.plain
            self._queue.put_nowait(event)
            self._bytes += len(event)

    def publish_best_effort(self, collection: str, event: bytes) -> None:
        """Queue what may as well be missed: it is left out of a queue that is half full, and never ends the stream."""
        has_room = 2 * self._queue.qsize() < self._bounds.events
        if has_room and not self.closed and collection in self._collections:
            self._queue.put_nowait(event)
            self._bytes += len(event)

    def enqueue_empty_page(self, store: UserStore) -> None:
        """Queue a page without rows, for what stands beside them: up to here, nothing was missed."""
        self.enqueue([EventBatch(store, min(self._collections), store.row_index.seq)])

    async def next(self) -> bytes | None:
        """The next event; `WAKE` means look around, `CLOSED` that there is no more."""
        event = await self._queue.get()
        self._bytes -= len(event or b"")
        return event

    def wake(self) -> None:
        if not self.closed and self._queue.empty():
            self._queue.put_nowait(WAKE)

    def close(self) -> None:
        """End after what is queued."""
        if not self.closed:
            self.closed = True
            self._queue.put_nowait(CLOSED)

    def _drop(self) -> None:
        """Let go of what is queued: a client that does not read may keep its connection for long."""
        while not self._queue.empty():
            self._queue.get_nowait()
        self._bytes = 0


class Hub:
    """Who follows whom. Lives in the event loop alone."""

    def __init__(self, bounds: StreamLimits) -> None:
        self._bounds = bounds
        self._subscriptions: dict[str, set[Subscription]] = defaultdict(set)
        self._closed = False

    def publish(self, store: UserStore, changes: list[Change]) -> None:
        if subscriptions := self._subscriptions.get(store.user_id):
            runs = group_into_batches(store, changes)
            for subscription in subscriptions:
                subscription.enqueue(runs)

    def publish_forget(self, store: UserStore) -> None:
        """Each stream hears that everything was forgotten, though none of what it follows had a row: a device may hold
        what never came to the server."""
        for subscription in self._subscriptions.get(store.user_id, ()):
            subscription.enqueue_empty_page(store)

    def publish_best_effort(self, user_id: str, collection: str, event: bytes) -> None:
        """Tell the user's streams of this collection something that is no row and is kept nowhere."""
        for subscription in self._subscriptions.get(user_id, ()):
            subscription.publish_best_effort(collection, event)

    def has_subscribers(self, user_id: str) -> bool:
        return user_id in self._subscriptions

    @contextmanager
    def subscribe(self, user_id: str, collections: frozenset[str], *, named: bool) -> Iterator[Subscription]:
        """Registered at once: enter this before the response's headers go out. Raises TooManyStreams."""
        if len(self._subscriptions.get(user_id, ())) >= self._bounds.streams:
            raise TooManyStreams(
                f"This account has {self._bounds.streams} live streams open, which is the most. Nothing is lost: "
                f"pull and push go on without one. Close the app where you do not need it, or try again in {RETRY_S} s.",
                retry_after_s=RETRY_S,
            )
        subscription = Subscription(collections, named, self._bounds)
        self._subscriptions[user_id].add(subscription)
        if self._closed:
            subscription.close()
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
        """End all streams, and those that are asked for from now on at once: a server that stops waits for each."""
        self._closed = True
        for user_id in list(self._subscriptions):
            self.close_user(user_id)

    def count(self) -> int:
        return sum(len(s) for s in self._subscriptions.values())
