"""Search: the passages of a session's borrowed documents that fit a question best.

Invariant 1: the scope is what the session has borrowed (`activeSessions`), never where a document came from, and an
empty scope gives an empty answer. Every hit is read back through the records: live, owned, active, with the text that
was found, or it is dropped. What is shown comes from there, never from the index.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from math import inf

import msgspec

from vademecum.engines.duckdb.user_store import UserStore
from vademecum.engines.duckdb.user_stores import UserStores
from vademecum.engines.lance import Hit
from vademecum.errors import TierTooLow
from vademecum.model.documents.filename_match import asked_about
from vademecum.model.schema.json_values import SearchMode
from vademecum.model.sync.quotas import Limits
from vademecum.model.text.ranking import DEPTH, by_turns, goes_first, same_text
from vademecum.services.documents.documents import check_session_id, list_borrowed_ids, read_filenames
from vademecum.services.models.active_model import OPENING_S, Inference
from vademecum.services.search.hybrid_search import HybridSearch, ScoredHits

BLOCKS = "vectorEmbeddings"


class PassageLocation(msgspec.Struct, rename="camel"):
    """Where a passage stands."""

    document_id: str
    filename: str
    block: int
    chunk_index: int
    page: int | None
    section: str | None


class Repeat(PassageLocation):
    """Another place where the same passage stands."""


class Result(PassageLocation):
    """A passage. `also` names the other places where it stands word for word; it is shown once."""

    text: str
    score: float
    also: list[Repeat] = []


class _StoredChunk(msgspec.Struct):
    index: int
    text: str
    page: int | None = None
    section: str | None = None


class _StoredBlock(msgspec.Struct):
    """What is shown of a block, without its vectors. A tombstone has no chunks."""

    chunks: list[_StoredChunk]


_stored = msgspec.json.Decoder(_StoredBlock)


class SearchScope(msgspec.Struct, rename="camel"):
    """What was searched, and how: `mode` is what was possible, `complete` false when the index was still behind. `pending`:
    how many of the documents are found by words only so far, because some of their passages wait for vectors."""

    session_id: str
    document_ids: list[str]
    mode: SearchMode
    complete: bool
    pending: int


class Found(msgspec.Struct):
    scope: SearchScope
    results: list[Result]


class DocumentSearch:
    def __init__(self, users: UserStores, seeker: HybridSearch, inference: Inference) -> None:
        self._users = users
        self._seeker = seeker
        self._inference = inference

    async def search(
        self, user_id: str, limits: Limits, query: str, session_id: str, k: int, mode: SearchMode
    ) -> Found:
        """At most `k` passages, best first. Raises BadRequest for what is no id, TierTooLow, and Busy when too many ask
        at once."""
        check_session_id(session_id)
        if not limits.searches_documents:
            raise TierTooLow(
                "Searching documents belongs to JIVE and JIGGA accounts. Your documents are kept and synced all the same."
            )
        embedder = await self._inference.for_user(user_id, OPENING_S)
        possible: SearchMode = mode if embedder is not None else "words"
        async with self._users.open(user_id) as store:
            scope = list_borrowed_ids(store, session_id)
            names = await read_filenames(store, scope)
            at = store.epoch, store.latest_seq(BLOCKS)  # other rows are not in the index
        if not scope:
            return Found(SearchScope(session_id, [], possible, True, 0), [])
        depth = max(k, DEPTH)
        hits, read = await self._seeker.search_hybrid(user_id, query, scope, depth, possible, at)
        named = await asyncio.to_thread(asked_about, query, names)
        if named.documents and named.documents < names.keys():
            own, _ = await self._seeker.search_hybrid(user_id, query, named.documents, depth, possible, at)
            hits = _by_turns(own, hits, surely=named.surely)
        async with self._users.open(user_id) as store:
            results = await _read_back(store, session_id, hits, k)
            active = list_borrowed_ids(store, session_id)
            pending = _pending(store, active, self._inference.models(user_id))
        return Found(SearchScope(session_id, sorted(active), possible, read >= at[1], pending), results)


def _by_turns(own: ScoredHits, all_of_them: ScoredHits, *, surely: bool) -> ScoredHits:
    """Who names a document asks about it, but perhaps not about it alone: its best passages have every second place, and
    the first one, unless the name may be none and others fit far better."""
    scored = {hit.place: (hit, score) for hit, score in (*own, *all_of_them)}
    own_places = [hit.place for hit, _ in own]
    every = [(hit.place, score) for hit, score in all_of_them]
    every_place = [place for place, _ in every]
    own_first = surely or not own or goes_first(own_places[0], every)
    places = by_turns(own_places, every_place) if own_first else by_turns(every_place, own_places)
    return [scored[place] for place in places]


def _pending(store: UserStore, document_ids: Iterable[str], models: Collection[str]) -> int:
    """How many of the documents lack vectors. None if there is no model to make them."""
    return sum(
        1
        for i in document_ids
        if max((store.chunk_count(i, model) for model in models), default=inf) < store.chunk_count(i)
    )


async def _read_back(
    store: UserStore, session_id: str, hits: Iterable[tuple[Hit, float]], k: int
) -> list[Result]:
    """The first `k` passages that still stand in the records; hardly more blocks are read than that takes."""
    standing: list[Result] = []
    groups_of_hits = await asyncio.to_thread(group_by_text, hits)
    group_of = {hit.place: number for number, group in enumerate(groups_of_hits) for hit, _ in group}
    candidates = iter(groups_of_hits)
    while (missing := k - len(_shown_once(standing, group_of))) > 0 and (
        groups := list(islice(candidates, missing))
    ):
        active = list_borrowed_ids(store, session_id)
        some = [
            (hit, score)
            for group in groups
            for hit, score in group
            if hit.document_id in active and store.is_live(_block(hit))
        ]
        bodies = await store.read_bodies(list({_block(hit) for hit, _ in some}))
        standing += await asyncio.to_thread(_standing, some, bodies)
    names = await read_filenames(store, {result.document_id for result in standing})
    active = list_borrowed_ids(
        store, session_id
    )  # asked last: what died or was returned meanwhile is dropped
    return _shown_once(
        [
            msgspec.structs.replace(result, filename=names[result.document_id])
            for result in standing
            if result.document_id in active and result.document_id in names and store.is_live(_block(result))
        ],
        group_of,
    )


def group_by_text(hits: Iterable[tuple[Hit, float]]) -> list[list[tuple[Hit, float]]]:
    """Hits grouped by what they say, the best of a group first."""
    groups: dict[str, list[tuple[Hit, float]]] = {}
    for hit, score in hits:
        groups.setdefault(same_text(hit.text), []).append((hit, score))
    return list(groups.values())


def _shown_once(results: Iterable[Result], group_of: Mapping[tuple[str, int, int], int]) -> list[Result]:
    """Every passage once, where it fits best; where else it stands is named beside it."""
    groups: dict[int, list[Result]] = {}
    for result in results:
        place = result.document_id, result.block, result.chunk_index
        groups.setdefault(group_of[place], []).append(result)
    return [
        msgspec.structs.replace(first, also=[_repeat(other) for other in others])
        for first, *others in groups.values()
    ]


def _repeat(result: Result) -> Repeat:
    place = result.document_id, result.filename, result.block, result.chunk_index
    return Repeat(*place, result.page, result.section)


def _block(found: Hit | Result) -> str:
    return f"vectorEmbeddings/{found.document_id}.{found.block}"


def _standing(hits: list[tuple[Hit, float]], bodies: Mapping[str, bytes]) -> list[Result]:
    """The hits whose text is still the block's, as the block has them now; their filenames are looked up later."""
    blocks = {key: _stored.decode(body).chunks for key, body in bodies.items()}
    found: list[Result] = []
    for hit, score in hits:
        chunks = blocks.get(_block(hit), [])
        chunk = next((c for c in chunks if c.index == hit.chunk_index), None)
        if chunk is not None and chunk.text == hit.text:
            place = hit.document_id, "", hit.block, hit.chunk_index
            found.append(Result(*place, chunk.page, chunk.section, chunk.text, score))
    return found
