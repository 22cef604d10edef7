"""Search an index by words and by meaning, and fuse the scores. Callers check the hits against the records."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

from vademecum.engines.lance import Hit, IndexDamaged
from vademecum.engines.onnx.errors import EmbedderClosed
from vademecum.errors import Busy
from vademecum.model.schema.json_values import SearchMode
from vademecum.model.schema.vector_codec import Vectors
from vademecum.model.text.fusion import (
    LANGUAGE_SAMPLE,
    common_share,
    fuse_hybrid,
    is_foreign_script,
    language_share,
)
from vademecum.services.runtime.job_queue import JobQueue
from vademecum.services.search.indexing import Indexer, Indexes, IndexReplaced

if TYPE_CHECKING:
    from vademecum.engines.lance import VectorIndex
    from vademecum.engines.onnx.embedder import Embedder

T = TypeVar("T")
MAX_ATTEMPTS = 3  # attempts of a search, because the index may be replaced or found damaged meanwhile
ScoredHits = list[tuple[Hit, float]]


class HybridResult(NamedTuple):
    """The result of a search.

    `hits`: best first. `seq`: the index has certainly read up to this `seq`; if it is below the `seq` at the time of
    the question, the index was not up to date. `vector_share`: the share of the vector weight that the search used.
    """

    hits: ScoredHits
    seq: int
    vector_share: float


class HybridSearch:
    """Hybrid search in one kind of index. `job` updates the index; a search waits for it at most `wait_s` seconds."""

    def __init__(self, indexes: Indexes, indexer: Indexer, job: JobQueue, wait_s: float) -> None:
        self._indexes = indexes
        self._indexer = indexer
        self._job = job
        self._wait_s = wait_s

    async def search_hybrid(
        self,
        user_id: str,
        query: str,
        ids: Collection[str],
        depth: int,
        mode: SearchMode,
        at: tuple[str, int],
        rows: Literal["chunks", "turns"] = "chunks",
        date_terms: str = "",
        vector_share: float | None = None,
    ) -> HybridResult:
        """Return the best hits within `ids`.

        `at`: epoch and `seq` at the time of the question. `rows`: what the index contains; the weight of vector search
        depends on it. `date_terms`: search terms in addition to the query. `vector_share`: the share of an earlier search
        for the same question; without it, the share is computed. Raises Busy while the index is being rebuilt.
        """
        (hits, share), seq = await self._with_retries(
            user_id,
            at,
            lambda: self._search(user_id, query, date_terms, ids, depth, mode, rows, vector_share),
        )
        return HybridResult(hits, seq, share)

    async def nearest_texts(
        self, user_id: str, text: str, ids: Collection[str], depth: int, at: tuple[str, int]
    ) -> tuple[ScoredHits, int]:
        """Return the hits whose meaning is nearest to `text`, with both sides embedded as statements."""
        return await self._with_retries(user_id, at, lambda: self._search_nearest(user_id, text, ids, depth))

    async def _with_retries(
        self, user_id: str, at: tuple[str, int], work: Callable[[], Awaitable[T]]
    ) -> tuple[T, int]:
        seq = await self._wait_for_index(user_id, *at)
        for _ in range(MAX_ATTEMPTS):
            try:
                return await work(), seq
            except IndexDamaged:  # the index was reset and is being rebuilt from the records
                seq = await self._wait_for_index(user_id, *at)
            except (IndexReplaced, EmbedderClosed):  # the model has changed, so embed the query again
                continue
        raise Busy("The search index is being rebuilt. Try again in a second.", retry_after_s=1)

    async def _wait_for_index(self, user_id: str, epoch: str, seq: int) -> int:
        """Wait at most `wait_s` until the index has read up to `seq`. Return the `seq` that it has certainly read."""
        index_epoch, index_seq = await self._indexes.read(user_id, lambda index: index.checkpoint)
        reached = index_seq if index_epoch == epoch else 0
        if reached >= seq:
            return reached
        self._indexer.forget(user_id)  # the recorded progress may belong to an index that has been replaced
        self._job.run_now(user_id)
        try:
            async with asyncio.timeout(self._wait_s):
                await self._indexer.wait_for(user_id, epoch, seq)
        except TimeoutError:
            return reached
        return seq

    async def _search(
        self,
        user_id: str,
        query: str,
        date_terms: str,
        ids: Collection[str],
        depth: int,
        mode: SearchMode,
        rows: Literal["chunks", "turns"],
        vector_share: float | None,
    ) -> tuple[ScoredHits, float]:
        embedder = await self._indexes.embedder(user_id)
        vector_hits: list[Hit] = []
        keyword_hits: list[Hit] = []
        if mode != "words" and embedder is not None and query.strip():
            vector, model = await embedder.embed_query(query), embedder.model
            foreign_last = mode == "hybrid" and not (embedder.is_multilingual or is_foreign_script(query))
            vector_hits = await self._indexes.read(
                user_id, lambda index: _nearest(index, model, vector, ids, depth, foreign_last=foreign_last)
            )
        if mode != "meaning":
            terms = f"{query} {date_terms}"
            keyword_hits = await self._indexes.read(
                user_id, lambda index: index.keyword_search(terms, ids, depth)
            )
        if mode == "meaning":
            return [(hit, hit.score) for hit in vector_hits], 1.0
        if mode == "words":
            return [(hit, hit.score) for hit in keyword_hits], 1.0
        weight = 0.0
        share = 1.0 if vector_share is None else vector_share
        if vector_hits and embedder is not None:
            if vector_share is None:
                share = await asyncio.to_thread(_vector_share, embedder, query, keyword_hits)
            weight = share * (embedder.chunk_weight if rows == "chunks" else embedder.turn_weight)
        by_place = {hit.place: hit for hit in (*vector_hits, *keyword_hits)}
        fused = fuse_hybrid(
            [(h.place, h.score) for h in keyword_hits],
            [(h.place, h.score) for h in vector_hits],
            depth,
            weight,
        )
        return [(by_place[place], score) for place, score in fused], share

    async def _search_nearest(self, user_id: str, text: str, ids: Collection[str], depth: int) -> ScoredHits:
        embedder = await self._indexes.embedder(user_id)
        if embedder is None:
            return []
        vector, model = await embedder.embed_statement(text), embedder.model
        hits = await self._indexes.read(user_id, lambda index: _nearest(index, model, vector, ids, depth))
        return [(hit, hit.score) for hit in hits]


def _vector_share(embedder: Embedder, query: str, keyword_hits: Sequence[Hit]) -> float:
    """Return the share of the weight of vector search, which depends on the languages of question and passages."""
    if embedder.is_multilingual or not keyword_hits:
        return 1.0
    question = language_share(query, embedder.count_tokens(query))
    if question == 1:
        return 1.0
    passages = [hit.text for hit in keyword_hits[:LANGUAGE_SAMPLE]]
    return common_share(question, [language_share(text, embedder.count_tokens(text)) for text in passages])


def _nearest(
    index: VectorIndex,
    model: str,
    vector: Vectors,
    ids: Collection[str],
    depth: int,
    *,
    foreign_last: bool = False,
) -> list[Hit]:
    """Search by vector. Raises IndexReplaced for an index of another model, whose vectors are not comparable."""
    if index.model != model:
        raise IndexReplaced
    return index.vector_search(vector, ids, depth, foreign_last=foreign_last)
