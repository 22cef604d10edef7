"""Delete observations after their retention period, which depends on the kind. Pinned ones and decisions are kept.

The job runs daily for each user with observations. Expired rows are deleted and erased like all deleted rows. Their
tombstones are purged a day later, because they would accumulate and devices, which have no observations, do not need
them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial

import msgspec

from vademecum.model.agents.observations import days_before, is_expired
from vademecum.model.records.store_interface import UserStore, UserStores
from vademecum.model.schema.collections import ObservationKind
from vademecum.model.sync import cascade
from vademecum.model.sync.transaction import Change, RowHead, Transaction
from vademecum.services.agents.ingest import OBSERVATIONS
from vademecum.services.agents.spool import Spool
from vademecum.services.sync.batches import Batch, list_live_keys, read_batches

INTERVAL_S = 86_400.0
START_DELAY_S = 60.0  # the delay of the first run after the server's start
EVENT_ID_DAYS = 30.0  # retention of ingested event ids, in days; spool files are ingested much sooner
BATCH = 500  # the maximum number of rows that one commit deletes or purges
Tombstones = list[tuple[str, RowHead]]


def adds_observations(changes: Iterable[Change]) -> bool:
    """Return whether a commit added or changed an observation."""
    return any(
        change.key.startswith(f"{OBSERVATIONS}/") and change.head is not None and not change.head.deleted
        for change in changes
    )


class Retention:
    """Runs the retention job.

    `update_index`: waits until the user's memory index has read all commits. `schedule`: schedules the next run of a
    user after a number of seconds.
    """

    def __init__(
        self,
        users: UserStores,
        spool: Spool,
        kept_days: Mapping[ObservationKind, float],
        clock: Callable[[], str],
        update_index: Callable[[str], Awaitable[None]],
        schedule: Callable[[str, float], None],
    ) -> None:
        self._users = users
        self._spool = spool
        self._kept_days = kept_days
        self._clock = clock
        self._update_index = update_index
        self._schedule = schedule

    async def run(self, user_id: str) -> None:
        # Ingest first, because event ids expire below. A leftover spool file whose id has expired would be ingested a
        # second time.
        await self._spool.ingest_all()
        now = self._clock()
        tombstones = await self._find_indexed_tombstones(user_id)
        async with self._users.open(user_id) as store:
            await self._purge(store, tombstones)
            expired = await self._find_expired(store, now)
            for start in range(0, max(1, len(expired)), BATCH):
                await store.write(partial(self._delete_expired, expired[start : start + BATCH], now))
            if (
                await list_live_keys(store, OBSERVATIONS)
                or await store.has_ingested_events()
                or await _find_tombstones(store)
            ):
                self._schedule(user_id, INTERVAL_S)

    async def _find_indexed_tombstones(self, user_id: str) -> Tombstones:
        """Return tombstones of server-only rows that the memory index has read."""
        async with self._users.open(user_id) as store:
            tombstones = await _find_tombstones(store)
        if tombstones:
            await self._update_index(user_id)  # outside the `with` block, because it opens the store itself
        return tombstones

    async def _purge(self, store: UserStore, tombstones: Tombstones) -> None:
        """Purge tombstones after the ledger lists them and no segment contains an older version of their rows.

        Without its tombstone, an older version would become live again.
        """
        if tombstones:
            await store.sync_ledger()
            await store.compact()
        for start in range(0, len(tombstones), BATCH):
            await store.write(partial(_purge_unchanged, tombstones[start : start + BATCH]))

    async def _find_expired(self, store: UserStore, now: str) -> list[str]:
        keys: list[str] = []
        async for batch in read_batches(store, await list_live_keys(store, OBSERVATIONS)):
            keys += await asyncio.to_thread(self._find_expired_in_batch, batch, now)
        return keys

    def _find_expired_in_batch(self, batch: Batch, now: str) -> list[str]:
        return [key for key, body in batch if is_expired(msgspec.json.decode(body), now, self._kept_days)]

    def _delete_expired(self, keys: list[str], now: str, tx: Transaction) -> None:
        """Delete the rows that are still expired. A row may have been pinned or repeated since it was found."""
        tx.prefetch(keys)
        live = [key for key in keys if tx.row_state(key) == "live"]
        expired = [key for key in live if is_expired(tx.row(key), now, self._kept_days)]
        for key in expired:
            tx.put_tombstone(key, tx.row(key), expired=True)
        cascade.delete_dependents(tx, expired)
        tx.ingested_events.expire_before = days_before(now, EVENT_ID_DAYS)


async def _find_tombstones(store: UserStore) -> Tombstones:
    """Return the tombstones of collections that devices do not have."""
    rows = list(store.row_index.rows.items())  # copied, because the index changes while the thread runs
    prefixes = tuple(f"{one.name}/" for one in store.collections.values() if not one.synced)
    return await asyncio.to_thread(
        lambda: [(key, head) for key, head in rows if head.deleted and key.startswith(prefixes)]
    )


def _purge_unchanged(tombstones: Tombstones, tx: Transaction) -> None:
    """Purge tombstones that have not changed since they were found. A revived row may already have a new tombstone."""
    for key, head in tombstones:
        if tx.head(key) == head:
            tx.purge(key)
