"""Search observations and memories by words and by meaning, within a scope.

Filters apply before ranking, so that a narrow search still returns as many results as requested.
"""

from __future__ import annotations

import asyncio

import msgspec

from vademecum.model.memory.indexable_text import Kind, kind_of
from vademecum.model.memory.scope import MemoryScope
from vademecum.model.records.store_interface import UserStore, UserStores
from vademecum.model.schema.collections import ObservationKind
from vademecum.services.memory.recall import Recall, is_row_in_scope
from vademecum.services.memory.scope import list_scoped_keys
from vademecum.services.sync.pagination import ListEntry, count_fitting, read_list_entries

KINDS: frozenset[Kind] = frozenset({"observations", "memories"})


class Filter(msgspec.Struct, frozen=True):
    """The filters of a search.

    `path`: a file, or a folder with everything below it. `before`: only rows that were created before this time.
    `after`: only rows that were last changed or repeated after this time.
    """

    kind: ObservationKind | None = None
    path: str | None = None
    before: str | None = None
    after: str | None = None
    agent_session: str | None = None
    pinned: bool | None = None

    @property
    def excludes_memories(self) -> bool:
        """Return whether the filter uses fields that only observations have."""
        return any(value is not None for value in (self.kind, self.path, self.agent_session, self.pinned))

    def matches(self, entry: ListEntry) -> bool:
        return (
            (self.kind is None or entry.kind == self.kind)
            and (self.path is None or _is_below(entry.path, self.path))
            and (self.before is None or entry.created_at < self.before)
            and (self.after is None or entry.updated_at > self.after)
            and (self.agent_session is None or entry.agent_session == self.agent_session)
            and (self.pinned is None or entry.pinned == self.pinned)
        )


class ObservationHit(msgspec.Struct, frozen=True):
    """A stored row with its scores."""

    key: str
    row: bytes
    score: float
    relevance: float


class Hits(msgspec.Struct, frozen=True):
    """The hits of a search. `complete`: false while the newest rows are not fully indexed."""

    hits: list[ObservationHit]
    complete: bool


async def search_observations(
    users: UserStores,
    recall: Recall,
    user_id: str,
    scope: MemoryScope,
    query: str,
    row_filter: Filter,
    limit: int,
) -> Hits:
    """Return at most `limit` hits, best first. Raises Busy under too many concurrent searches."""
    async with users.open(user_id) as store:
        candidates = await _filter_rows(store, scope, row_filter)
    found = await recall.recall(user_id, scope, query, KINDS, limit, candidates)
    keys = [f"{result.kind}/{result.id}" for result in found.results]
    async with users.open(user_id) as store:
        keys = keys[: count_fitting(store, keys)]
        bodies = await store.read_bodies(keys)
        hits = [
            ObservationHit(key, bodies[key], result.score, result.relevance)
            for key, result in zip(keys, found.results, strict=False)
            if key in bodies and is_row_in_scope(store, scope, key)
        ]
    return Hits(hits, found.complete)


async def _filter_rows(store: UserStore, scope: MemoryScope, row_filter: Filter) -> frozenset[str]:
    """Return the keys of the matching rows."""
    keys = await list_scoped_keys(store, scope, "observations")
    if not row_filter.excludes_memories:
        keys += await list_scoped_keys(store, scope, "memories")
    if row_filter == Filter():
        return frozenset(keys)
    entries = await read_list_entries(store, keys)
    return await asyncio.to_thread(
        lambda: frozenset(key for key, entry in entries.items() if row_filter.matches(entry))
    )


def is_memory(hit: ObservationHit) -> bool:
    return kind_of(hit.key) == "memories"


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
