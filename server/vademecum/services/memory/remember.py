"""Store statements as memories, deduplicated within their scope, and search memories.

An exact repetition refreshes the existing memory. A repetition in similar words supersedes the old memory, which stays
as history. Similar wording is detected only with a model that has a fitted threshold. Secrets are redacted before any
lookup or write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import accumulate

import msgspec

from vademecum.errors import BadRequest
from vademecum.model import secrets
from vademecum.model.memory.deduplication import SimilarMemory, exact_form, find_superseded
from vademecum.model.memory.extraction import SESSION_MEMORIES_MAX
from vademecum.model.memory.recency import score_candidates
from vademecum.model.memory.scope import Everything, InProject, MemoryPartition, MemoryScope
from vademecum.model.records.store_interface import UserStore, UserStores
from vademecum.model.schema import derived_ids
from vademecum.model.schema.collections import Json, Memory
from vademecum.model.schema.timestamps import age_days
from vademecum.model.sync.quotas import Limits
from vademecum.model.sync.transaction import Transaction
from vademecum.model.text.bm25 import Postings, bm25_scores, top_k_with_ties
from vademecum.model.text.fusion import FUSION_DEPTH
from vademecum.model.text.normalization import normalize
from vademecum.model.text.tokenize import tokenize_query
from vademecum.services.memory.memories import is_current, key_of, list_keys_in_scope, read_memories
from vademecum.services.memory.recall import Recall
from vademecum.services.memory.scope import ProjectSelector, find_session_home, is_within, resolve_scope
from vademecum.services.models.active_model import OPEN_TIMEOUT_S
from vademecum.services.sync import row_operations
from vademecum.services.sync.pagination import PAGE_BYTES

NEAREST = 10  # the number of old memories that are compared with a new one
SEARCHED_LENGTH = 20_000  # the characters of a memory that keyword search reads; only pushed rows have more


class Statement(msgspec.Struct, frozen=True):
    """A text to remember, its session or project, and its source: the user or extraction."""

    text: str
    session_id: str | None = None
    project: ProjectSelector = msgspec.UNSET
    pinned: bool = False
    source: str = "user"


class RememberedStatement(msgspec.Struct, frozen=True):
    """The result of storing a statement.

    `deduplicated`: the same memory existed before, in the same words or, if `supersedes` is set, in similar words.
    `redacted`: a secret in the statement was not stored.
    """

    scope: MemoryPartition
    memory: Json
    deduplicated: bool
    supersedes: str | None
    redacted: bool


class MemoryHit(msgspec.Struct, frozen=True):
    memory: bytes
    score: float
    relevance: float


class MemoryLookup(msgspec.Struct, frozen=True):
    """The result of looking up a text before the transaction.

    `seq`: the account's `seq` at the lookup; rows with a higher `seq` have changed since. `exact`: the ids of current
    memories in the partition with the same `exact_form`. `near`: the id of the memory that the text repeats in similar
    words, or None. `near` is not searched if `exact` has ids.
    """

    partition: MemoryPartition
    text: str
    seq: int
    exact: list[str]
    near: str | None


class Memories:
    """Stores and searches memories. Without a model, search uses words only and only exact repetitions are detected."""

    def __init__(self, users: UserStores, recall: Recall, clock: Callable[[], str]) -> None:
        self._users = users
        self._recall = recall
        self._clock = clock

    async def remember(self, user_id: str, statement: Statement, limits: Limits) -> RememberedStatement:
        """Store a statement.

        Raises BadRequest if the text is empty or only a secret, and the same errors as `resolve_scope`.
        """
        normalized, text = await asyncio.to_thread(normalize_and_redact, statement.text)
        if not text or (text != normalized and secrets.is_bare(text)):
            raise BadRequest(
                "The text contains only a secret, and the server never stores secrets. Nothing was stored."
                if text
                else "There is nothing to remember: `text` is empty."
            )
        while (result := await self._try_store(user_id, statement, text, limits)) is None:
            pass  # try again: the session has changed project, or the file was restored
        partition, row, old = result
        repeated = old is not None
        return RememberedStatement(
            partition, row, repeated, old if old != row["id"] else None, text != normalized
        )

    async def _try_store(
        self, user_id: str, statement: Statement, text: str, limits: Limits
    ) -> tuple[MemoryPartition, Json, str | None] | None:
        """Store a statement. Return the partition and the result of `store_memory`.

        If the session has changed project or the file was restored since the lookup, store nothing and return None.
        """
        async with self._users.open(user_id) as store:
            epoch, partition = store.epoch, await _resolve_partition(store, statement)
        (lookup,) = await self.look_up(user_id, partition, [text])
        moves_with = statement.session_id if statement.project is msgspec.UNSET else None

        def work(tx: Transaction) -> tuple[MemoryPartition, Json, str | None] | None:
            if tx.meta.epoch != epoch or (moves_with and find_session_home(tx.head, moves_with) != partition):
                return None
            return partition, *store_memory(tx, statement, lookup, limits)

        async with self._users.open(user_id) as store:
            return await store.write(work)

    async def look_up(
        self, user_id: str, partition: MemoryPartition, texts: Sequence[str], session_id: str | None = None
    ) -> list[MemoryLookup]:
        """Look up each text in the partition.

        This waits for the embedder, so the caller must not have the user's store open. `session_id`: the session that
        the texts were extracted from, if any. If it already has SESSION_MEMORIES_MAX extracted memories, similar
        memories are not searched.
        """
        if not texts:
            return []
        exact: list[list[str]] = [[] for _ in texts]
        forms = [exact_form(text) for text in texts]
        extracted = 0
        async with self._users.open(user_id) as store:
            seq = store.seq
            async for batch in read_memories(store, await list_keys_in_scope(store, partition)):
                extracted += sum(_is_extracted(one, session_id) for one, _ in batch)
                found = await asyncio.to_thread(_ids_by_form, batch, forms)
                exact = [[*ids, *more] for ids, more in zip(exact, found, strict=True)]
        is_full = extracted >= SESSION_MEMORIES_MAX
        return [
            MemoryLookup(
                partition,
                text,
                seq,
                ids,
                None if ids or is_full else await self._find_repeated(user_id, partition, text),
            )
            for text, ids in zip(texts, exact, strict=True)
        ]

    async def _find_repeated(self, user_id: str, partition: MemoryPartition, text: str) -> str | None:
        """Return the id of the current memory of the partition that the text repeats in similar words, or None."""
        embedder = await self._recall.indexes.embedder(user_id, OPEN_TIMEOUT_S)
        if embedder is None or embedder.same_memory is None:
            return None
        cosines = dict(await self._recall.nearest(user_id, partition, text, "memories", NEAREST))
        async with self._users.open(user_id) as store:
            keys = [
                key_of(one) for one in cosines if is_within(partition, store.row_index.rows.get(key_of(one)))
            ]
            found = [one async for batch in read_memories(store, keys) for one, _ in batch if is_current(one)]
        near = [SimilarMemory(one.id, one.text, cosines[one.id]) for one in found]
        return await asyncio.to_thread(find_superseded, text, near, embedder.same_memory)

    async def search(self, user_id: str, scope: MemoryScope, query: str, limit: int) -> list[MemoryHit]:
        """Return the best matching current memories, or the newest for an empty query."""
        embedder = await self._recall.indexes.embedder(user_id, OPEN_TIMEOUT_S)
        if embedder is None or not query.strip():
            async with self._users.open(user_id) as store:
                return _limit_bytes(await _search_words(store, scope, query, limit, self._clock()))
        hits = await self._recall.search(user_id, scope, query, frozenset({"memories"}), FUSION_DEPTH)
        found = {one.id: one for one in hits}
        async with self._users.open(user_id) as store:
            keys = [key_of(one) for one in found if is_within(scope, store.row_index.rows.get(key_of(one)))]
            current = [
                one async for batch in read_memories(store, keys) for one in batch if is_current(one[0])
            ]
        memory_hits = [MemoryHit(body, found[one.id].score, found[one.id].relevance) for one, body in current]
        return _limit_bytes(memory_hits[:limit])


def _limit_bytes(hits: list[MemoryHit]) -> list[MemoryHit]:
    """Return the best hits that fit a response, at least one."""
    sizes = accumulate(len(hit.memory) for hit in hits)
    return [
        hit for at, (hit, size) in enumerate(zip(hits, sizes, strict=True)) if not at or size <= PAGE_BYTES
    ]


def normalize_and_redact(text: str) -> tuple[str, str]:
    """Return the normalized text, and the same text with secrets redacted."""
    normalized = normalize(text).strip()
    return normalized, secrets.redact(normalized)


async def _resolve_partition(store: UserStore, statement: Statement) -> MemoryPartition:
    if statement.session_id is not None:
        row_operations.check_live(store, "sessions", statement.session_id)
    scope = await resolve_scope(store, statement.session_id, statement.project)
    if isinstance(scope, Everything):
        raise BadRequest("A memory belongs to one project or to none. Name the project, or omit `project`.")
    return scope


def _is_extracted(memory: Memory, session_id: str | None) -> bool:
    return is_current(memory) and memory.source == "extracted" and session_id in memory.session_ids


def _ids_by_form(batch: list[tuple[Memory, bytes]], forms: list[str]) -> list[list[str]]:
    """Return a list of ids for each form: the current memories with that exact form."""
    current = [(exact_form(one.text), one.id) for one, _ in batch if is_current(one)]
    return [[memory_id for has, memory_id in current if has == form] for form in forms]


def store_memory(
    tx: Transaction, statement: Statement, lookup: MemoryLookup, limits: Limits
) -> tuple[Json, str | None]:
    """Store a statement. Return the stored memory and the id of the memory that the statement repeats, or None.

    An exact repetition refreshes the existing memory, so the returned memory has that id.
    """
    row = _refresh(tx, statement, lookup, limits)
    if row is not None:
        return row, row["id"]
    # If the user deleted this memory, store it again under a new id, unlike `store_extracted_memory`.
    memory_id = _derived_id(tx, lookup)
    return _add(tx, statement, lookup, limits, memory_id if tx.head(key_of(memory_id)) is None else None)


def store_extracted_memory(
    tx: Transaction, statement: Statement, lookup: MemoryLookup, limits: Limits
) -> None:
    """Store an extracted memory as `store_memory` does.

    Nothing is stored if the user deleted the same memory, or if the session already has SESSION_MEMORIES_MAX extracted
    memories.
    """
    if _refresh(tx, statement, lookup, limits) is not None:
        return
    memory_id = _derived_id(tx, lookup)
    head = tx.head(key_of(memory_id))
    if head is not None and head.deleted:
        return
    if _count_extracted(tx, statement.session_id) < SESSION_MEMORIES_MAX:
        _add(tx, statement, lookup, limits, memory_id if head is None else None)


def _derived_id(tx: Transaction, lookup: MemoryLookup) -> str:
    project_id = lookup.partition.project_id if isinstance(lookup.partition, InProject) else ""
    return derived_ids.memory_id(tx.meta.id_key, project_id, exact_form(lookup.text))


def _refresh(tx: Transaction, statement: Statement, lookup: MemoryLookup, limits: Limits) -> Json | None:
    """Refresh the memory with the same exact form and return its row, or return None if there is none."""
    form = exact_form(lookup.text)
    new_keys = [key for key in tx.keys("memories") if not _is_unchanged_since(tx, key, lookup.seq)]
    for memory_id in [*lookup.exact, *(key.partition("/")[2] for key in new_keys)]:
        row = _read_current(tx, lookup.partition, memory_id)
        if row is not None and exact_form(row["text"]) == form:
            fresh = {
                "sessionIds": list(dict.fromkeys([*row["sessionIds"], *_sessions(statement)])),
                "pinned": row["pinned"] or statement.pinned,
                "updatedAt": max(tx.now, row["updatedAt"]),
            }
            return row_operations.change(tx, "memories", memory_id, fresh, limits)
    return None


def _add(
    tx: Transaction, statement: Statement, lookup: MemoryLookup, limits: Limits, row_id: str | None
) -> tuple[Json, str | None]:
    """Add a memory. Return the memory and the id of the memory that it supersedes, or None.

    A similar memory that was edited after the comparison is not superseded.
    """
    partition = lookup.partition
    unchanged = lookup.near is not None and _is_unchanged_since(tx, key_of(lookup.near), lookup.seq)
    old = _read_current(tx, partition, lookup.near) if lookup.near is not None and unchanged else None
    fields: Json = {
        "text": lookup.text,
        "sessionIds": _sessions(statement),
        "source": statement.source,
        "pinned": statement.pinned or (old is not None and old["pinned"]),
        "projectId": partition.project_id if isinstance(partition, InProject) else None,
        "supersedes": old["id"] if old is not None else None,
    }
    row = row_operations.add(tx, "memories", fields, limits, row_id)
    if old is not None:
        row_operations.change_keeping_updated_at(
            tx, "memories", old["id"], {"supersededBy": row["id"]}, limits
        )
    return row, old["id"] if old is not None else None


def _sessions(statement: Statement) -> list[str]:
    return [statement.session_id] if statement.session_id is not None else []


def _count_extracted(tx: Transaction, session_id: str | None) -> int:
    """Count the current memories that were extracted from this session."""
    memory_keys = [key for key in tx.dependents(f"sessions/{session_id}") if key.startswith("memories/")]
    found = [tx.row(key) for key in memory_keys if tx.row_state(key) == "live"]
    return sum(row["source"] == "extracted" and not row.get("supersededBy") for row in found)


def _is_unchanged_since(tx: Transaction, key: str, seq: int) -> bool:
    head = tx.head(key)
    return head is not None and head.seq <= seq


def _read_current(tx: Transaction, partition: MemoryPartition, memory_id: str) -> Json | None:
    """Return the row of a memory if it is live, in the partition and not superseded, else None."""
    key = key_of(memory_id)
    if tx.row_state(key) != "live" or not is_within(partition, tx.head(key)):
        return None
    row = tx.row(key)
    return None if row.get("supersededBy") else row


async def _search_words(
    store: UserStore, scope: MemoryScope, query: str, limit: int, now: str
) -> list[MemoryHit]:
    found: list[tuple[Memory, bytes]] = []
    async for batch in read_memories(store, await list_keys_in_scope(store, scope)):
        found += [one for one in batch if is_current(one[0])]
    return await asyncio.to_thread(_rank, found, tokenize_query(query), limit, now)


def _rank(found: list[tuple[Memory, bytes]], terms: list[str], limit: int, now: str) -> list[MemoryHit]:
    """Rank memories by BM25 and age, or without terms by age only."""
    if terms:
        postings = Postings.of_texts([memory.text[:SEARCHED_LENGTH] for memory, _ in found])
        scores = bm25_scores([(postings, postings.lengths >= 0)], terms)[0]
        fitting = [(found[at], float(scores[at])) for at in top_k_with_ties(scores, FUSION_DEPTH, 0.0)]
    else:
        fitting = [(one, 1.0) for one in found]
    ages = [age_days(memory.updated_at, now) for (memory, _), _ in fitting]
    relevances = [relevance for _, relevance in fitting]
    scored_ones = score_candidates(relevances, ages, [memory.pinned for (memory, _), _ in fitting])
    hits = [
        (score, memory.id, MemoryHit(body, score, relevance))
        for score, ((memory, body), relevance) in zip(scored_ones, fitting, strict=True)
    ]
    return [hit for _, _, hit in sorted(hits, key=lambda hit: (-hit[0], hit[1]))[:limit]]
