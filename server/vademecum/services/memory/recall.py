"""Search memory within one scope, by words, meaning, mentioned dates and recency.

Each search resolves the scope to rows with the row index, so the turns of a moved session are found in its new project.
Every hit is checked against the records: it must be live, in scope and unchanged. The text of a result comes from the
records.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Container, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from vademecum.engines.lance import Hit, IndexDamaged
from vademecum.model.memory.indexable_text import (
    Kind,
    MemoryRow,
    decode,
    index_text,
    kind_of,
    may_enter_prompts,
)
from vademecum.model.memory.recency import CANDIDATES, score_candidates
from vademecum.model.memory.scope import PROJECTS, SESSIONS, InProject, MemoryPartition, MemoryScope, sees
from vademecum.model.records.store_interface import UserStore, UserStores
from vademecum.model.schema.json_values import SearchMode
from vademecum.model.schema.timestamps import age_days
from vademecum.model.text import dates_in_text
from vademecum.model.text.fusion import FUSION_DEPTH, boost_found_neighbors
from vademecum.services.memory.scope import locate_row
from vademecum.services.models.active_model import OPEN_TIMEOUT_S
from vademecum.services.runtime.job_queue import JobQueue
from vademecum.services.search.hybrid_search import HybridSearch
from vademecum.services.search.indexing import Indexer, Indexes, IndexReplaced
from vademecum.services.sync.batches import Batch, read_batches

if TYPE_CHECKING:
    from vademecum.engines.lance import VectorIndex

MAX_DEPTH = 16 * FUSION_DEPTH  # the maximum number of hits that are checked for a prompt


class Recollection(msgspec.Struct, rename="camel", frozen=True):
    """A row of memory that matches a query.

    `text`: the row's best passage. `relevance`: from 0 to 1. `score`: relevance combined with recency. `session_id` (of
    a turn or summary) and `project_id`: the current location of the row.
    """

    kind: Kind
    id: str
    text: str
    score: float
    relevance: float
    created_at: str
    updated_at: str
    session_id: str | None
    project_id: str | None


class RecallResult(NamedTuple):
    """The results of a search. `complete`: false if the index was not up to date, or rows wait for their vectors."""

    results: list[Recollection]
    complete: bool


class Recall:
    """Searches memory. `vectors`: the job that computes the vectors of new rows."""

    def __init__(
        self,
        users: UserStores,
        indexes: Indexes,
        indexer: Indexer,
        hybrid_search: HybridSearch,
        vectors: JobQueue,
        wait_s: float,
        clock: Callable[[], str],
    ) -> None:
        self._users = users
        self.indexes = indexes
        self.indexer = indexer
        self.hybrid_search = hybrid_search
        self._vectors = vectors
        self._wait_s = wait_s
        self._clock = clock

    async def search(
        self,
        user_id: str,
        scope: MemoryScope,
        query: str,
        kinds: frozenset[Kind],
        k: int,
        *,
        for_prompt: bool = False,
    ) -> list[Recollection]:
        """Return at most `k` rows, best first. Raises Busy under too many concurrent requests."""
        return (await self.recall(user_id, scope, query, kinds, k, for_prompt=for_prompt)).results

    async def recall(
        self,
        user_id: str,
        scope: MemoryScope,
        query: str,
        kinds: frozenset[Kind],
        k: int,
        among: Container[str] | None = None,
        *,
        for_prompt: bool = False,
    ) -> RecallResult:
        """Search as `search` does, and also return whether the result is complete.

        `among`: the keys to which the search is limited, if any. `for_prompt`: omit turns that must not enter a prompt.
        """
        embedder = await self.indexes.embedder(user_id, OPEN_TIMEOUT_S)
        async with self._users.open(user_id) as store:
            epoch, seq = store.epoch, store.seq
            ids = await _list_keys_in_scope(store, scope, kinds)
        if among is not None:
            ids = [key for key in ids if key in among]
        if not ids or not query.strip():
            return RecallResult([], True)
        mode: SearchMode = "hybrid" if embedder is not None else "words"
        depth = max(k, FUSION_DEPTH)
        while True:
            hits, read, _ = await self.hybrid_search.search_hybrid(
                user_id,
                query,
                ids,
                depth,
                mode,
                (epoch, seq),
                "turns",
                dates_in_text.query_date_terms(query, self._clock()),
            )
            async with self._users.open(user_id) as store:
                checked = await _check_hits(store, scope, hits, read)
            allowed = [one for one in checked if not for_prompt or may_enter_prompts(one.key, one.row)]
            if len(allowed) == len(checked) or len(allowed) >= k or depth >= MAX_DEPTH:
                break
            depth *= 4  # search deeper, because too many hits must not enter prompts
        async with self._users.open(user_id) as store:
            boosted = await _boost_turns(store, allowed)
            results = _rank_by_age(store, boosted[: max(k, CANDIDATES)], self._clock())
        is_whole = embedder is None or not self._vectors.is_pending(user_id)
        return RecallResult(results[:k], read >= seq and is_whole)

    async def nearest(
        self, user_id: str, partition: MemoryPartition, text: str, kind: Kind, k: int
    ) -> list[tuple[str, float]]:
        """Return (id, cosine similarity) of the `k` rows nearest in meaning to `text`. Without a model, return [].

        The search waits, for a bounded time, for the vectors of rows of this `kind` that have already been committed.
        The search does not wait for rows of any other kind: new turns, for example, are embedded more efficiently in
        batches.
        """
        if await self.indexes.embedder(user_id, OPEN_TIMEOUT_S) is None or not text.strip():
            return []
        async with self._users.open(user_id) as store:
            ids = await _list_keys_in_scope(store, partition, {kind})
            heads = store.row_index.rows
            at = store.epoch, max((heads[key].seq for key in ids), default=0)
        if not ids:
            return []
        await self._wait_for_vectors(user_id, ids, at)
        hits, read = await self.hybrid_search.nearest_texts(user_id, text, ids, max(k, FUSION_DEPTH), at)
        async with self._users.open(user_id) as store:
            checked = await _check_hits(store, partition, hits, read)
        return [(one.key.partition("/")[2], one.relevance) for one in checked][:k]

    async def _wait_for_vectors(self, user_id: str, ids: Collection[str], at: tuple[str, int]) -> None:
        with suppress(IndexDamaged, IndexReplaced):
            if await self.indexes.read(user_id, lambda index: _has_vectors(index, ids, *at)):
                return
        with suppress(TimeoutError):
            async with asyncio.timeout(self._wait_s):
                with self.indexer.request_priority.unthrottled():
                    await self._vectors.drain(user_id)


def _has_vectors(index: VectorIndex, ids: Collection[str], epoch: str, seq: int) -> bool:
    """Return whether the index has vectors of all these rows. `seq`: the highest `seq` of the rows."""
    its_epoch, its_seq = index.checkpoint
    return its_epoch == epoch and its_seq >= seq and set(index.without_vectors()).isdisjoint(ids)


def is_row_in_scope(store: UserStore, scope: MemoryScope, key: str) -> bool:
    """Return whether the row is live and currently within the scope."""
    place = locate_row(key, store.row_index.rows.get)
    return place is not None and sees(scope, place.project_id)


async def _list_keys_in_scope(store: UserStore, scope: MemoryScope, kinds: Collection[str]) -> list[str]:
    """Return the keys of all rows of these kinds within the scope."""
    candidates = _candidates(store, scope)  # a copy: commits may change the row index during the thread
    return await asyncio.to_thread(
        _filter_in_scope, store, scope, candidates, tuple(f"{kind}/" for kind in kinds)
    )


def _filter_in_scope(
    store: UserStore, scope: MemoryScope, keys: list[str], prefixes: tuple[str, ...]
) -> list[str]:
    """Return the keys within the scope.

    Live rows with the same parents have the same location, so each session is looked up once.
    """
    heads = store.row_index.rows
    seen: dict[tuple[str, ...], bool] = {}
    found = []
    for key in keys:
        if key.startswith(prefixes) and store.is_live(key):
            parents = heads[key].parents
            if parents not in seen:
                seen[parents] = is_row_in_scope(store, scope, key)
            if seen[parents]:
                found.append(key)
    return found


def _candidates(store: UserStore, scope: MemoryScope) -> list[str]:
    """Return the keys that may be in scope: for a project, its dependents and those of its sessions."""
    if not isinstance(scope, InProject):
        return list(store.row_index.rows)
    dependents = store.row_index.dependents
    project_dependents = list(dependents.get(PROJECTS + scope.project_id, ()))
    sessions = [key for key in project_dependents if key.startswith(SESSIONS)]
    return project_dependents + [key for session in sessions for key in dependents.get(session, ())]


class _CheckedHit(NamedTuple):
    """A hit that was checked against the records. `is_whole`: the hit covers the entire text of the row."""

    key: str
    text: str
    is_whole: bool
    relevance: float
    row: MemoryRow


async def _boost_turns(store: UserStore, checked: Sequence[_CheckedHit]) -> list[_CheckedHit]:
    """Boost turns by the relevance of neighboring turns, which often concern the same question in different words.

    Only checked hits boost their neighbors, so deleted, changed or out-of-scope rows have no influence.
    """
    found = {one.key: one.relevance for one in checked if kind_of(one.key) == "episodes"}
    heads, dependents = store.row_index.rows, store.row_index.dependents
    sessions = dict.fromkeys(session for key in found for session in heads[key].parents)
    # Copy the sets, because commits may change them while the thread runs.
    dependents_by_session = [list(dependents.get(session, ())) for session in sessions]
    boosted = await asyncio.to_thread(
        lambda: boost_found_neighbors(found, [_turns_in_order(store, keys) for keys in dependents_by_session])
    )
    counted = [one._replace(relevance=boosted.get(one.key, one.relevance)) for one in checked]
    return sorted(counted, key=lambda one: -one.relevance)


def _turns_in_order(store: UserStore, keys: Iterable[str]) -> list[str]:
    """Return the turns among these rows in the order of their `seq`, because the row index has no times."""
    heads = ((key, store.row_index.rows.get(key)) for key in keys if kind_of(key) == "episodes")
    return [
        key
        for _, key in sorted(
            (head.seq, key) for key, head in heads if head is not None and not head.deleted and head.seq
        )
    ]


def _rank_by_age(store: UserStore, checked: Sequence[_CheckedHit], now: str) -> list[Recollection]:
    """Return the results sorted by relevance combined with recency."""
    ages = [age_days(one.row.updated_at, now) for one in checked]
    scores = score_candidates([one.relevance for one in checked], ages, [one.row.pinned for one in checked])
    found = [_recollection(store, one, score) for one, score in zip(checked, scores, strict=True)]
    return sorted((one for one in found if one is not None), key=lambda one: (-one.score, one.kind, one.id))


async def _check_hits(
    store: UserStore, scope: MemoryScope, hits: Iterable[tuple[Hit, float]], read: int
) -> list[_CheckedHit]:
    """Return one checked hit for each row whose best passage is unchanged in the records.

    `read`: the `seq` up to which the index has read. A row with a later change is returned only if the hit covers the
    entire text of the row.
    """
    hits_by_key: dict[str, list[tuple[Hit, float]]] = {}
    for hit, relevance in hits:
        hits_by_key.setdefault(hit.document_id, []).append((hit, relevance))
    found: list[_CheckedHit] = []
    async for batch in read_batches(store, list(hits_by_key)):
        found += await asyncio.to_thread(_find_unchanged, batch, hits_by_key)
    # Check the scope last, to drop rows that were deleted or moved while bodies were read.
    rows = store.row_index.rows
    found = [
        one
        for one in found
        if is_row_in_scope(store, scope, one.key) and (one.is_whole or rows[one.key].seq <= read)
    ]
    return sorted(found, key=lambda one: -one.relevance)


def _find_unchanged(batch: Batch, hits_by_key: dict[str, list[tuple[Hit, float]]]) -> list[_CheckedHit]:
    """Return for each row the best hit whose text the row still contains."""
    found: list[_CheckedHit] = []
    for key, body in batch:
        row = decode(body)
        text = index_text(key, row)
        best = next(((hit.text, score) for hit, score in hits_by_key[key] if hit.text in text), None)
        if best is not None:
            passage, relevance = best
            found.append(_CheckedHit(key, passage, passage == text.strip(), relevance, row))
    return found


def _recollection(store: UserStore, one: _CheckedHit, score: float) -> Recollection | None:
    place = locate_row(one.key, store.row_index.rows.get)
    if place is None:
        return None
    kind, _, row_id = one.key.partition("/")
    return Recollection(
        msgspec.convert(kind, Kind),
        row_id,
        one.text,
        round(score, 6),
        round(one.relevance, 6),
        one.row.created_at,
        one.row.updated_at,
        *place,
    )
