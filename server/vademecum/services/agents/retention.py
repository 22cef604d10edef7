"""Retain: observations go when their time is over, by kind. What is pinned stays, and so do decisions.

Looked at once a day for as long as a user has any; what goes is a delete like any other, and leaves the disk like one.
No device is told of it, so a day later its tombstone goes, too: an agent makes more rows than a person deletes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial

import msgspec

from vademecum.engines.duckdb.user_store import UserStore
from vademecum.engines.duckdb.user_stores import UserStores
from vademecum.model.agents.observations import days_before, expired
from vademecum.model.schema.collections import ObservationKind
from vademecum.model.sync import cascade
from vademecum.model.sync.transaction import Change, RowHead, Transaction
from vademecum.services.agents.ingest import OBSERVATIONS
from vademecum.services.agents.spool import Spool
from vademecum.services.sync.batches import Batch, list_live_keys, read_batches

EVERY_S = 86_400.0
SOON_S = 60.0  # after a start
TAKEN_DAYS = 30.0  # how long the ids of events are known; a file in the spool is taken up long before
AT_ONCE = 500  # rows of one commit


def is_news(changes: Iterable[Change]) -> bool:
    """Has a commit brought what is not kept for ever?"""
    return any(
        change.key.startswith(f"{OBSERVATIONS}/") and change.head is not None and not change.head.deleted
        for change in changes
    )


class Retention:
    """`follow`: has the index of memory read all that was committed. `again`: asks for another look at this user, so many
    seconds later."""

    def __init__(
        self,
        users: UserStores,
        spool: Spool,
        kept_days: Mapping[ObservationKind, float],
        clock: Callable[[], str],
        follow: Callable[[str], Awaitable[None]],
        again: Callable[[str, float], None],
    ) -> None:
        self._users = users
        self._spool = spool
        self._kept_days = kept_days
        self._clock = clock
        self._follow = follow
        self._again = again

    async def work(self, user_id: str) -> None:
        await self._spool.take_up()  # an event whose file outlived it is still known by then
        now = self._clock()
        dead = await self._read_by_the_index(user_id)
        async with self._users.open(user_id) as store:
            await self._drop(store, dead)
            old = await self._expired(store, now)
            for at in range(0, max(1, len(old)), AT_ONCE):
                await store.write(partial(self._sweep, old[at : at + AT_ONCE], now))
            if (
                await list_live_keys(store, OBSERVATIONS)
                or await store.has_ingested_events()
                or await _tombstones(store)
            ):
                self._again(user_id, EVERY_S)

    async def _read_by_the_index(self, user_id: str) -> list[tuple[str, RowHead]]:
        """The tombstones that no device is told of; the index of memory has read them."""
        async with self._users.open(user_id) as store:
            dead = await _tombstones(store)
        if dead:
            await self._follow(user_id)  # it opens the file itself
        return dead

    async def _drop(self, store: UserStore, dead: list[tuple[str, RowHead]]) -> None:
        """Once the ledger holds them, and no pack an older version of theirs: without a tombstone it would live again."""
        if dead:
            await store.sync_ledger()
            await store.compact()
        for at in range(0, len(dead), AT_ONCE):
            await store.write(partial(_drop, dead[at : at + AT_ONCE]))

    async def _expired(self, store: UserStore, now: str) -> list[str]:
        found: list[str] = []
        async for portion in read_batches(store, await list_live_keys(store, OBSERVATIONS)):
            found += await asyncio.to_thread(self._of_portion, portion, now)
        return found

    def _of_portion(self, portion: Batch, now: str) -> list[str]:
        return [key for key, body in portion if expired(msgspec.json.decode(body), now, self._kept_days)]

    def _sweep(self, keys: list[str], now: str, tx: Transaction) -> None:
        """Looked at again: it may have been pinned, or done once more, since."""
        tx.prefetch(keys)
        live = [key for key in keys if tx.row_state(key) == "live"]
        old = [key for key in live if expired(tx.row(key), now, self._kept_days)]
        for key in old:
            tx.put_tombstone(key, tx.row(key), expired=True)
        cascade.delete_dependents(tx, old)
        tx.ingested_events.expire_before = days_before(now, TAKEN_DAYS)


async def _tombstones(store: UserStore) -> list[tuple[str, RowHead]]:
    """Those of the collections that devices do not have."""
    rows = list(store.row_index.rows.items())  # a copy, for the thread
    ours = tuple(f"{one.name}/" for one in store.collections.values() if not one.synced)
    return await asyncio.to_thread(
        lambda: [(key, head) for key, head in rows if head.deleted and key.startswith(ours)]
    )


def _drop(dead: list[tuple[str, RowHead]], tx: Transaction) -> None:
    """Looked at again: one may have come alive, and died once more, since."""
    for key, head in dead:
        if tx.head(key) == head:
            tx.purge(key)
