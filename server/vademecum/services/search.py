"""Search: the passages of a session's borrowed documents that fit a question best.

Invariant 1: the scope is what the session has borrowed (`activeSessions`), never where a document came from, and an
empty scope gives an empty answer. Every hit is read back through the records: live, owned, active, or it is dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Literal

import msgspec

from vademecum.engines.duckdb.users import Users
from vademecum.engines.lance import Hit, IndexDamaged
from vademecum.engines.onnx.embedder import Embedder
from vademecum.errors import TierTooLow
from vademecum.model.limits import Limits
from vademecum.model.ranking import fuse
from vademecum.services.documents import borrowed_by, filenames
from vademecum.services.index import Indexer, Indexes
from vademecum.services.jobs import Job
from vademecum.services.models import Inference

Mode = Literal["hybrid", "meaning", "words"]
WEIGHTS = {"meaning": 1.0, "words": 1.0}
DEPTH = 50  # hits taken from each arm before they are fused


class Result(msgspec.Struct, rename="camel"):
    document_id: str
    filename: str
    block: int
    chunk_index: int
    page: int | None
    section: str | None
    text: str
    score: float


class Scope(msgspec.Struct, rename="camel"):
    """What was searched, and how: `mode` is what was possible, `complete` false when the index was still behind."""

    session_id: str
    document_ids: list[str]
    mode: Mode
    complete: bool


class Found(msgspec.Struct):
    scope: Scope
    results: list[Result]


class Searcher:
    def __init__(
        self, users: Users, indexes: Indexes, indexer: Indexer, job: Job, inference: Inference, wait_s: float
    ) -> None:
        self._users = users
        self._indexes = indexes
        self._indexer = indexer
        self._job = job
        self._inference = inference
        self._wait_s = wait_s

    async def search(
        self, user_id: str, limits: Limits, query: str, session_id: str, k: int, mode: Mode
    ) -> Found:
        """At most `k` passages, best first. Raises TierTooLow, and Busy when too many ask at once."""
        if not limits.searches_documents:
            raise TierTooLow(
                "Searching documents belongs to JIVE and JIGGA accounts. Your documents are kept and synced all the same."
            )
        embedder = await self._inference.get()
        possible: Mode = mode if embedder is not None else "words"
        async with self._users.open(user_id) as store:
            scope = borrowed_by(store, session_id)
            epoch, seq = store.epoch, store.seq
        if not scope:
            return Found(Scope(session_id, [], possible, True), [])
        complete = await self._wait(user_id, epoch, seq)
        try:
            hits = await self._hits(user_id, embedder, query, scope, max(k, DEPTH), possible)
        except IndexDamaged:  # it was emptied; it is rebuilt from the records
            self._indexer.forget(user_id)
            complete = await self._wait(user_id, epoch, seq)
            hits = await self._hits(user_id, embedder, query, scope, max(k, DEPTH), possible)
        async with self._users.open(user_id) as store:
            names = await filenames(store, {hit.document_id for hit, _ in hits})
            active = borrowed_by(
                store, session_id
            )  # read back: what died or was returned meanwhile is dropped
            results = [
                _result(hit, names[hit.document_id], score)
                for hit, score in hits
                if hit.document_id in active
                and hit.document_id in names
                and store.live(f"vectorEmbeddings/{hit.document_id}.{hit.block}")
            ]
        return Found(Scope(session_id, sorted(active), possible, complete), results[:k])

    async def _wait(self, user_id: str, epoch: str, seq: int) -> bool:
        """Wait, bounded, until the index has what was committed before the question."""
        if self._indexer.has(user_id, epoch, seq):
            return True
        self._job.hurry(user_id)
        try:
            async with asyncio.timeout(self._wait_s):
                await self._indexer.wait_for(user_id, epoch, seq)
        except TimeoutError:
            return False
        return True

    async def _hits(
        self,
        user_id: str,
        embedder: Embedder | None,
        query: str,
        scope: Iterable[str],
        depth: int,
        mode: Mode,
    ) -> list[tuple[Hit, float]]:
        ids = list(scope)
        meaning: list[Hit] = []
        words: list[Hit] = []
        if mode != "words" and embedder is not None and query.strip():
            vector = await embedder.query(query)
            meaning = await self._indexes.read(user_id, lambda index: index.meaning(vector, ids, depth))
        if mode != "meaning":
            words = await self._indexes.read(user_id, lambda index: index.words(query, ids, depth))
        if mode == "meaning":
            return [(hit, hit.score) for hit in meaning]
        if mode == "words":
            return [(hit, hit.score) for hit in words]
        by_place = {hit.place: hit for hit in (*meaning, *words)}
        fused = fuse(
            [[h.place for h in meaning], [h.place for h in words]],
            [WEIGHTS["meaning"], WEIGHTS["words"]],
            depth,
        )
        return [(by_place[place], score) for place, score in fused]


def _result(hit: Hit, filename: str, score: float) -> Result:
    return Result(
        hit.document_id, filename, hit.block, hit.chunk_index, hit.page, hit.section, hit.text, score
    )
