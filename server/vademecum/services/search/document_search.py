"""Search the documents that a session has borrowed for the passages that best match a question.

Invariant 1: the scope is the session's borrowed documents (`activeSessions`), regardless of their origin, and an empty
scope gives an empty result. Every hit is checked against the records: it is dropped if its block was deleted or changed
or its document was returned. The text of a result comes from the records, never from the index.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from math import inf

import msgspec

from vademecum.engines.lance import Hit
from vademecum.errors import TierTooLow
from vademecum.model.documents.filename_match import find_named_documents
from vademecum.model.records.store_interface import UserStore, UserStores
from vademecum.model.schema.json_values import SearchMode
from vademecum.model.sync.quotas import Limits
from vademecum.model.text.fusion import FUSION_DEPTH, interleave, is_near_best
from vademecum.model.text.tokenize import duplicate_key
from vademecum.services.documents.blocks import count_chunks
from vademecum.services.documents.documents import check_session_id, list_borrowed_ids, read_filenames
from vademecum.services.models.active_model import OPEN_TIMEOUT_S, Inference
from vademecum.services.search.hybrid_search import HybridSearch, ScoredHits

BLOCKS = "vectorEmbeddings"


class PassageLocation(msgspec.Struct, rename="camel"):
    """The location of a passage."""

    document_id: str
    filename: str
    block: int
    chunk_index: int
    page: int | None
    section: str | None


class Repeat(PassageLocation):
    """Another location of the same passage."""


class Result(PassageLocation):
    """A passage, shown once. `also` lists its other locations with identical text."""

    text: str
    score: float
    also: list[Repeat] = []


class _StoredChunk(msgspec.Struct):
    index: int
    text: str
    page: int | None = None
    section: str | None = None


class _StoredBlock(msgspec.Struct):
    """The chunks of a block, without its vectors. A tombstone has no chunks."""

    chunks: list[_StoredChunk]


_stored = msgspec.json.Decoder(_StoredBlock)


class SearchScope(msgspec.Struct, rename="camel"):
    """The scope and mode of a search.

    `mode`: the mode used; without a model it is "words". `complete`: false if the index was not up to date. `pending`:
    the number of documents with passages that still wait for vectors and are found by words only.
    """

    session_id: str
    document_ids: list[str]
    mode: SearchMode
    complete: bool
    pending: int


class Found(msgspec.Struct):
    scope: SearchScope
    results: list[Result]


class DocumentSearch:
    def __init__(self, users: UserStores, hybrid_search: HybridSearch, inference: Inference) -> None:
        self._users = users
        self._hybrid_search = hybrid_search
        self._inference = inference

    async def search(
        self, user_id: str, limits: Limits, query: str, session_id: str, k: int, mode: SearchMode
    ) -> Found:
        """Return at most `k` passages, best first.

        Raises BadRequest for an invalid session id, TierTooLow, and Busy under too many concurrent requests.
        """
        check_session_id(session_id)
        if not limits.searches_documents:
            raise TierTooLow(
                "Document search requires a JIVE or JIGGA account. Your documents are still stored and synced."
            )
        embedder = await self._inference.for_user(user_id, OPEN_TIMEOUT_S)
        used_mode: SearchMode = mode if embedder is not None else "words"
        async with self._users.open(user_id) as store:
            scope = list_borrowed_ids(store, session_id)
            names = await read_filenames(store, scope)
            at = store.epoch, store.latest_seq(BLOCKS)  # the index contains only rows of this collection
        if not scope:
            return Found(SearchScope(session_id, [], used_mode, True, 0), [])
        depth = max(k, FUSION_DEPTH)
        hits, read, share = await self._hybrid_search.search_hybrid(
            user_id, query, scope, depth, used_mode, at
        )
        mentioned = await asyncio.to_thread(find_named_documents, query, names)
        if mentioned.documents and mentioned.documents < names.keys():
            mentioned_hits, *_ = await self._hybrid_search.search_hybrid(
                user_id, query, mentioned.documents, depth, used_mode, at, vector_share=share
            )
            hits = _interleave_named(mentioned_hits, hits, is_certain=mentioned.is_certain)
        async with self._users.open(user_id) as store:
            results = await _check_hits(store, session_id, hits, k)
            active = list_borrowed_ids(store, session_id)
            pending = _pending(store, active, self._inference.searched_models(user_id))
        return Found(SearchScope(session_id, sorted(active), used_mode, read >= at[1], pending), results)


def _interleave_named(named_hits: ScoredHits, all_hits: ScoredHits, *, is_certain: bool) -> ScoredHits:
    """Interleave the hits of documents named in the question with the hits of all documents.

    The question is probably about the named documents, but perhaps not only about them. Hits of the named documents
    come first, unless the names are uncertain and hits of other documents match far better. A hit of both searches has
    the higher score.
    """
    by_score = sorted((*named_hits, *all_hits), key=lambda found: found[1])
    scored = {hit.place: (hit, score) for hit, score in by_score}
    named_places = [hit.place for hit, _ in named_hits]
    scored_places = [(hit.place, score) for hit, score in all_hits]
    all_places = [place for place, _ in scored_places]
    is_named_first = is_certain or not named_hits or is_near_best(named_places[0], scored_places)
    places = interleave(named_places, all_places) if is_named_first else interleave(all_places, named_places)
    return [scored[place] for place in places]


def _pending(store: UserStore, document_ids: Iterable[str], models: Collection[str]) -> int:
    """Return the number of documents that lack vectors, or 0 without a model."""
    return sum(
        1
        for i in document_ids
        if max((count_chunks(store, i, model) for model in models), default=inf) < count_chunks(store, i)
    )


async def _check_hits(
    store: UserStore, session_id: str, hits: Iterable[tuple[Hit, float]], k: int
) -> list[Result]:
    """Return the first `k` passages that are unchanged in the records, reading few more blocks than needed."""
    checked: list[Result] = []
    groups_of_hits = await asyncio.to_thread(group_by_text, hits)
    group_of = {hit.place: number for number, group in enumerate(groups_of_hits) for hit, _ in group}
    candidates = iter(groups_of_hits)
    while (missing := k - len(_merge_repeats(checked, group_of))) > 0 and (
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
        checked += await asyncio.to_thread(_unchanged_results, some, bodies)
    names = await read_filenames(store, {result.document_id for result in checked})
    # Read the ids again, to drop documents that were deleted or returned during the reads above.
    active = list_borrowed_ids(store, session_id)
    return _merge_repeats(
        [
            msgspec.structs.replace(result, filename=names[result.document_id])
            for result in checked
            if result.document_id in active and result.document_id in names and store.is_live(_block(result))
        ],
        group_of,
    )


def group_by_text(hits: Iterable[tuple[Hit, float]]) -> list[list[tuple[Hit, float]]]:
    """Group hits with the same text, the best of each group first."""
    groups: dict[str, list[tuple[Hit, float]]] = {}
    for hit, score in hits:
        groups.setdefault(duplicate_key(hit.text), []).append((hit, score))
    return list(groups.values())


def _merge_repeats(results: Iterable[Result], group_of: Mapping[tuple[str, int, int], int]) -> list[Result]:
    """Return every passage once, with its other locations in `also`."""
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


def _unchanged_results(hits: list[tuple[Hit, float]], bodies: Mapping[str, bytes]) -> list[Result]:
    """Return results for the hits whose text is unchanged in their block. The caller sets their filenames."""
    blocks = {key: _stored.decode(body).chunks for key, body in bodies.items()}
    found: list[Result] = []
    for hit, score in hits:
        chunks = blocks.get(_block(hit), [])
        chunk = next((c for c in chunks if c.index == hit.chunk_index), None)
        if chunk is not None and chunk.text == hit.text:
            place = hit.document_id, "", hit.block, hit.chunk_index
            found.append(Result(*place, chunk.page, chunk.section, chunk.text, score))
    return found
