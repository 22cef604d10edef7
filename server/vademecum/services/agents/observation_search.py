"""Search over what agents did, and over what is remembered beside it: by words and by meaning, in one scope.

What does not fit the filters is left out before it is ranked, so that a narrow question still finds as much as it asks for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import msgspec

from vademecum.engines.duckdb.user_store import UserStore
from vademecum.engines.duckdb.user_stores import UserStores
from vademecum.model.memory.indexable_text import Kind, kind_of
from vademecum.model.memory.scope import MemoryScope
from vademecum.model.schema.collections import ObservationKind
from vademecum.services.memory.recall import Recall, is_row_in_scope
from vademecum.services.memory.scope import list_scoped_keys
from vademecum.services.sync.pagination import ListEntry, count_fitting, read_list_entries

KINDS: frozenset[Kind] = frozenset({"observations", "memories"})


class Filter(msgspec.Struct, frozen=True):
    """`path`: a file, or a folder with all below it. `before` and `after`: it was done between these times, or also then."""

    kind: ObservationKind | None = None
    path: str | None = None
    before: str | None = None
    after: str | None = None
    agent_session: str | None = None
    pinned: bool | None = None

    @property
    def asks_of_agents(self) -> bool:
        """Whether it asks what only observations have."""
        return any(asked is not None for asked in (self.kind, self.path, self.agent_session, self.pinned))

    def fits(self, card: ListEntry) -> bool:
        return (
            (self.kind is None or card.kind == self.kind)
            and (self.path is None or _is_below(card.path, self.path))
            and (self.before is None or card.created_at < self.before)
            and (self.after is None or card.updated_at > self.after)
            and (self.agent_session is None or card.agent_session == self.agent_session)
            and (self.pinned is None or card.pinned == self.pinned)
        )


class ObservationHit(msgspec.Struct, frozen=True):
    """A row as it is stored, with how well it fits."""

    key: str
    row: bytes
    score: float
    relevance: float


class Hits(msgspec.Struct, frozen=True):
    """`complete` is false while the newest rows cannot be found by all their means yet."""

    hits: list[ObservationHit]
    complete: bool


async def search(
    users: UserStores, recall: Recall, user_id: str, scope: MemoryScope, query: str, asked: Filter, limit: int
) -> Hits:
    """Best first. Raises Busy when too many ask at once."""
    async with users.open(user_id) as store:
        among = await _among(store, scope, asked)
    found = await recall.recall(user_id, scope, query, KINDS, limit, among)
    keys = [f"{one.kind}/{one.id}" for one in found.results]
    async with users.open(user_id) as store:
        keys = keys[: count_fitting(store, keys)]
        bodies = await store.read_bodies(keys)
        hits = [
            ObservationHit(key, bodies[key], one.score, one.relevance)
            for key, one in zip(keys, found.results, strict=False)
            if key in bodies and is_row_in_scope(store, scope, key)
        ]
    return Hits(hits, found.complete)


async def _among(store: UserStore, scope: MemoryScope, asked: Filter) -> frozenset[str]:
    """The rows that the filter lets through. A filter that only observations can fit leaves memories out."""
    keys = await list_scoped_keys(store, scope, "observations")
    if not asked.asks_of_agents:
        keys += await list_scoped_keys(store, scope, "memories")
    if asked == Filter():
        return frozenset(keys)
    cards: Mapping[str, ListEntry] = await read_list_entries(store, keys)
    return await asyncio.to_thread(lambda: frozenset(key for key, card in cards.items() if asked.fits(card)))


def is_memory(hit: ObservationHit) -> bool:
    return kind_of(hit.key) == "memories"


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
