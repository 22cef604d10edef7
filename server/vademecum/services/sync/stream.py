"""Send committed rows to the user's event streams, in order of `seq` and without gaps.

A stream whose client reads too slowly is closed, so that no event is skipped: the client reconnects and pulls the rows
that it missed. Each queue is bounded, and all streams of a user share the encoded events, so an unread stream uses
little memory.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Final

import msgspec

from vademecum.errors import TooManyStreams
from vademecum.model.records.store_interface import UserStore
from vademecum.model.schema.lenient_json import join_json_lines
from vademecum.model.sync.transaction import WAITING, Change
from vademecum.services.sync.pull import encode_page

EVENT_BYTES: Final = 2**20  # the maximum size of an event with several rows
RETRY_S: Final = 30
CLOSED: Final = None
WAKE: Final = b""


class StreamLimits(msgspec.Struct, frozen=True):
    """Limits of a user's streams: their number, and the events and bytes queued in each."""

    streams: int
    events: int
    bytes: int


class EventBatch:
    """Consecutive rows of a commit in one collection. They form one event, encoded once for all subscribers."""

    def __init__(self, store: UserStore, collection: str, seq: int = WAITING) -> None:
        self.collection = collection
        self.size = 0  # in bytes, without the negligible JSON around the rows
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
        """Return the event for a stream of one collection."""
        return encode_event(encode_page(self._store, self._bodies, self._seq))

    @cached_property
    def named(self) -> bytes:
        """Return the event for a stream of several collections, which names the collection."""
        return encode_event(encode_page(self._store, self._bodies, self._seq, self.collection))


def encode_event(data: bytes, event: str = "") -> bytes:
    """Return a server-sent event. A named event contains no rows, and clients ignore names that they do not know.

    Rows are stored as clients sent them, possibly with line breaks. A line break would end the data of the event, so
    spaces replace line breaks.
    """
    return (b"event: %s\n" % event.encode() if event else b"") + b"data: " + join_json_lines(data) + b"\n\n"


def group_into_batches(store: UserStore, changes: list[Change]) -> list[EventBatch]:
    """Group the changes of a commit into events in their order, omitting waiting rows."""
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
        """Queue the events of the subscribed collections. If they exceed the limits, close the stream instead."""
        if self.closed:
            return
        matching = [run for run in runs if run.collection in self._collections]
        events = self._queue.qsize() + len(matching)
        size = self._bytes + sum(run.size for run in matching)
        if events > self._bounds.events or size > self._bounds.bytes:
            self._drop()
            self.close()
            return
        for run in matching:
            event = run.named if self._named else run.plain
            self._queue.put_nowait(event)
            self._bytes += len(event)

    def publish_best_effort(self, collection: str, event: bytes) -> None:
        """Queue an optional event, or drop it if the queue is half full. An optional event never closes the stream."""
        has_room = 2 * self._queue.qsize() < self._bounds.events
        if has_room and not self.closed and collection in self._collections:
            self._queue.put_nowait(event)
            self._bytes += len(event)

    def enqueue_empty_page(self, store: UserStore) -> None:
        """Queue a page without rows, which contains the latest checkpoint and `forgottenAt`."""
        self.enqueue([EventBatch(store, min(self._collections), store.row_index.seq)])

    async def next(self) -> bytes | None:
        """Return the next event. After `WAKE`, the caller must check its token again. `CLOSED` ends the stream."""
        event = await self._queue.get()
        self._bytes -= len(event or b"")
        return event

    def wake(self) -> None:
        if not self.closed and self._queue.empty():
            self._queue.put_nowait(WAKE)

    def close(self) -> None:
        """Close the stream after the queued events."""
        if not self.closed:
            self.closed = True
            self._queue.put_nowait(CLOSED)

    def _drop(self) -> None:
        """Drop the queued events, to free memory: a client that does not read may keep its connection open for long."""
        while not self._queue.empty():
            self._queue.get_nowait()
        self._bytes = 0


class Hub:
    """The subscriptions of all users. Use it in the event loop only."""

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
        """Send `forgottenAt` to each stream, even if no row changed: a device may have rows that it never pushed."""
        for subscription in self._subscriptions.get(store.user_id, ()):
            subscription.enqueue_empty_page(store)

    def publish_best_effort(self, user_id: str, collection: str, event: bytes) -> None:
        """Send an optional event, which has no rows and is not stored, to the user's streams of this collection."""
        for subscription in self._subscriptions.get(user_id, ()):
            subscription.publish_best_effort(collection, event)

    def has_subscribers(self, user_id: str) -> bool:
        return user_id in self._subscriptions

    @contextmanager
    def subscribe(self, user_id: str, collections: frozenset[str], *, named: bool) -> Iterator[Subscription]:
        """Subscribe for the duration of the context. Raises TooManyStreams.

        Enter the context before the response headers are sent, so that no commit is missed.
        """
        if len(self._subscriptions.get(user_id, ())) >= self._bounds.streams:
            raise TooManyStreams(
                f"This account has {self._bounds.streams} open streams, which is the maximum. Nothing is lost: pull "
                f"and push work without a stream. Close the app where you do not need it, or try again in {RETRY_S} s.",
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
        """Make the streams of a user check their tokens again. Call this after a token was revoked."""
        for subscription in self._subscriptions.get(user_id, ()):
            subscription.wake()

    def close(self) -> None:
        """Close all streams, and all streams that are opened later, because a stopping server waits for each stream."""
        self._closed = True
        for user_id in list(self._subscriptions):
            self.close_user(user_id)

    def count(self) -> int:
        return sum(len(s) for s in self._subscriptions.values())
