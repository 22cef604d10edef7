"""Remember: a statement becomes a memory of one scope, unless that scope has it already; and search over memories.

Said again to the letter, the memory stays and is fresh again. Said again in almost the same words, the new text replaces
the old one, which stays as history; only with a model for which a threshold has been fitted, which E5 is not. Secrets are hidden before anything is looked up or stored.
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
from vademecum.services.sync import write_row
from vademecum.services.sync.pagination import PAGE_BYTES

NEAR = 10  # of the nearest memories, how many are looked at
LOOKED_AT = (
    20_000  # characters of a memory for whose words it is found; no statement is so long, but a row may be
)


class Statement(msgspec.Struct, frozen=True):
    """What is to be remembered, where it was said, and by whom: the person, or a language model that read along."""

    text: str
    session_id: str | None = None
    project: ProjectSelector = msgspec.UNSET
    pinned: bool = False
    source: str = "user"


class RememberedStatement(msgspec.Struct, frozen=True):
    """`deduplicated`: it was known, to the letter or, then `supersedes` says which, in other words. `redacted`: it held
    a secret, which was not stored."""

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
    """What was looked up about a text before the write. `seq`: rows of a later one came or changed meanwhile. `exact`:
    the current memories of `home` with its form; `near`: else the one that says it in other words."""

    home: MemoryPartition
    text: str
    seq: int
    exact: list[str]
    near: str | None


class Memories:
    """Without a model, words alone are searched, and only the exact form is known again."""

    def __init__(self, users: UserStores, recall: Recall, clock: Callable[[], str]) -> None:
        self._users = users
        self._recall = recall
        self._clock = clock

    async def remember(self, user_id: str, said: Statement, limits: Limits) -> RememberedStatement:
        """Raises BadRequest for a text that says nothing, or nothing but a secret, and as `resolve` does."""
        spoken, text = await asyncio.to_thread(normalize_and_redact, said.text)
        if not text or (text != spoken and secrets.is_bare(text)):
            raise BadRequest(
                "This says nothing but a secret, and secrets are not remembered. Nothing was stored."
                if text
                else "There is nothing to remember: `text` is empty."
            )
        while (kept := await self._kept(user_id, said, text, limits)) is None:
            pass  # the session went to another project meanwhile, or a backup took the file's place
        home, row, old = kept
        repeated = old is not None
        return RememberedStatement(home, row, repeated, old if old != row["id"] else None, text != spoken)

    async def _kept(
        self, user_id: str, said: Statement, text: str, limits: Limits
    ) -> tuple[MemoryPartition, Json, str | None] | None:
        """Where the memory is, and as `keep`; None, and nothing was stored, if it would not belong there any more."""
        async with self._users.open(user_id) as store:
            epoch, home = store.epoch, await _home(store, said)
        (known,) = await self.look_up(user_id, home, [text])
        moves_with = said.session_id if said.project is msgspec.UNSET else None

        def work(tx: Transaction) -> tuple[MemoryPartition, Json, str | None] | None:
            if tx.meta.epoch != epoch or (moves_with and find_session_home(tx.head, moves_with) != home):
                return None
            return home, *store_memory(tx, said, known, limits)

        async with self._users.open(user_id) as store:
            return await store.write(work)

    async def look_up(
        self, user_id: str, home: MemoryPartition, texts: Sequence[str], session_id: str | None = None
    ) -> list[MemoryLookup]:
        """What `home` knows of each of these texts. The file must not be held: the model's answer is waited for.

        `session_id`: they were extracted from this session. If it has as many as it may, the model compares nothing; if it
        loses one meanwhile, both memories stay."""
        if not texts:
            return []
        exact: list[list[str]] = [[] for _ in texts]
        forms = [exact_form(text) for text in texts]
        extracted = 0
        async with self._users.open(user_id) as store:
            seq = store.seq
            async for some in read_memories(store, await list_keys_in_scope(store, home)):
                extracted += sum(_is_extracted(one, session_id) for one, _ in some)
                found = await asyncio.to_thread(_of_forms, some, forms)
                exact = [[*ids, *more] for ids, more in zip(exact, found, strict=True)]
        full = extracted >= SESSION_MEMORIES_MAX
        return [
            MemoryLookup(
                home, text, seq, ids, None if ids or full else await self._repeated(user_id, home, text)
            )
            for text, ids in zip(texts, exact, strict=True)
        ]

    async def _repeated(self, user_id: str, home: MemoryPartition, text: str) -> str | None:
        """The current memory of this scope that says the same in other words, as far as the model can tell."""
        embedder = await self._recall.indexes.embedder(user_id, OPEN_TIMEOUT_S)
        if embedder is None or embedder.same_memory is None:
            return None
        cosines = dict(await self._recall.nearest(user_id, home, text, "memories", NEAR))
        async with self._users.open(user_id) as store:
            keys = [key_of(one) for one in cosines if is_within(home, store.row_index.rows.get(key_of(one)))]
            found = [one async for some in read_memories(store, keys) for one, _ in some if is_current(one)]
        near = [SimilarMemory(one.id, one.text, cosines[one.id]) for one in found]
        return await asyncio.to_thread(find_superseded, text, near, embedder.same_memory)

    async def search(self, user_id: str, scope: MemoryScope, query: str, limit: int) -> list[MemoryHit]:
        """The current memories that fit best, best first; without a question, the freshest."""
        embedder = await self._recall.indexes.embedder(user_id, OPEN_TIMEOUT_S)
        if embedder is None or not query.strip():
            async with self._users.open(user_id) as store:
                return _bounded(await _by_words(store, scope, query, limit, self._clock()))
        hits = await self._recall.search(user_id, scope, query, frozenset({"memories"}), FUSION_DEPTH)
        found = {one.id: one for one in hits}
        async with self._users.open(user_id) as store:
            keys = [key_of(one) for one in found if is_within(scope, store.row_index.rows.get(key_of(one)))]
            shown = [one async for some in read_memories(store, keys) for one in some if is_current(one[0])]
        hits_shown = [MemoryHit(body, found[one.id].score, found[one.id].relevance) for one, body in shown]
        return _bounded(hits_shown[:limit])


def _bounded(hits: list[MemoryHit]) -> list[MemoryHit]:
    """The best that fit into an answer: at least one."""
    sizes = accumulate(len(hit.memory) for hit in hits)
    return [
        hit for at, (hit, size) in enumerate(zip(hits, sizes, strict=True)) if not at or size <= PAGE_BYTES
    ]


def normalize_and_redact(text: str) -> tuple[str, str]:
    """What was said, and what of it may be stored."""
    spoken = normalize(text).strip()
    return spoken, secrets.redact(spoken)


async def _home(store: UserStore, said: Statement) -> MemoryPartition:
    if said.session_id is not None:
        write_row.check_live(store, "sessions", said.session_id)
    scope = await resolve_scope(store, said.session_id, said.project)
    if isinstance(scope, Everything):
        raise BadRequest("A memory is in one project, or in none: name the project, or leave `project` out.")
    return scope


def _is_extracted(memory: Memory, session_id: str | None) -> bool:
    return is_current(memory) and memory.source == "extracted" and session_id in memory.session_ids


def _of_forms(some: list[tuple[Memory, bytes]], forms: list[str]) -> list[list[str]]:
    """For each of the forms, the ids of the current memories that have it."""
    current = [(exact_form(one.text), one.id) for one, _ in some if is_current(one)]
    return [[memory_id for has, memory_id in current if has == form] for form in forms]


def store_memory(
    tx: Transaction, said: Statement, known: MemoryLookup, limits: Limits
) -> tuple[Json, str | None]:
    """The memory, and the id of the one that it repeats: its own if it was there to the letter."""
    row = _refreshed(tx, said, known, limits)
    if row is not None:
        return row, row["id"]
    # Extraction recognizes a deleted memory and does not store it again; its user may.
    memory_id = _derived_id(tx, known)
    return _added(tx, said, known, limits, memory_id if tx.head(key_of(memory_id)) is None else None)


def store_extracted_memory(tx: Transaction, said: Statement, known: MemoryLookup, limits: Limits) -> None:
    """As `keep`, but what a person deleted does not come back, and one conversation has only so many memories."""
    if _refreshed(tx, said, known, limits) is not None:
        return
    memory_id = _derived_id(tx, known)
    head = tx.head(key_of(memory_id))
    if head is not None and head.deleted:
        return
    if _extracted_from(tx, said.session_id) < SESSION_MEMORIES_MAX:
        _added(tx, said, known, limits, memory_id if head is None else None)


def _derived_id(tx: Transaction, known: MemoryLookup) -> str:
    project_id = known.home.project_id if isinstance(known.home, InProject) else ""
    return derived_ids.memory_id(tx.meta.id_key, project_id, exact_form(known.text))


def _refreshed(tx: Transaction, said: Statement, known: MemoryLookup, limits: Limits) -> Json | None:
    """The memory that says the same to the letter, as said again now; None if there is none."""
    form = exact_form(known.text)
    came = [key for key in tx.keys("memories") if not _is_as_seen(tx, key, known.seq)]
    for memory_id in [*known.exact, *(key.partition("/")[2] for key in came)]:
        row = _current(tx, known.home, memory_id)
        if row is not None and exact_form(row["text"]) == form:
            fresh = {
                "sessionIds": list(dict.fromkeys([*row["sessionIds"], *_sessions(said)])),
                "pinned": row["pinned"] or said.pinned,
                "updatedAt": max(tx.now, row["updatedAt"]),
            }
            return write_row.change(tx, "memories", memory_id, fresh, limits)
    return None


def _added(
    tx: Transaction, said: Statement, known: MemoryLookup, limits: Limits, row_id: str | None
) -> tuple[Json, str | None]:
    """A new memory, and the id of the one whose place it takes: not of one that was edited since it was compared."""
    home = known.home
    unchanged = known.near is not None and _is_as_seen(tx, key_of(known.near), known.seq)
    old = _current(tx, home, known.near) if known.near is not None and unchanged else None
    fields: Json = {
        "text": known.text,
        "sessionIds": _sessions(said),
        "source": said.source,
        "pinned": said.pinned or (old is not None and old["pinned"]),
        "projectId": home.project_id if isinstance(home, InProject) else None,
        "supersedes": old["id"] if old is not None else None,
    }
    row = write_row.add(tx, "memories", fields, limits, row_id)
    if old is not None:
        write_row.change_keeping_updated_at(tx, "memories", old["id"], {"supersededBy": row["id"]}, limits)
    return row, old["id"] if old is not None else None


def _sessions(said: Statement) -> list[str]:
    return [said.session_id] if said.session_id is not None else []


def _extracted_from(tx: Transaction, session_id: str | None) -> int:
    """How many current memories were extracted from this conversation."""
    named = [key for key in tx.dependents(f"sessions/{session_id}") if key.startswith("memories/")]
    found = [tx.row(key) for key in named if tx.row_state(key) == "live"]
    return sum(row["source"] == "extracted" and not row.get("supersededBy") for row in found)


def _is_as_seen(tx: Transaction, key: str, seq: int) -> bool:
    head = tx.head(key)
    return head is not None and head.seq <= seq


def _current(tx: Transaction, home: MemoryPartition, memory_id: str) -> Json | None:
    """The row, if it is still live, in this scope and current."""
    key = key_of(memory_id)
    if tx.row_state(key) != "live" or not is_within(home, tx.head(key)):
        return None
    row = tx.row(key)
    return None if row.get("supersededBy") else row


async def _by_words(
    store: UserStore, scope: MemoryScope, query: str, limit: int, now: str
) -> list[MemoryHit]:
    found: list[tuple[Memory, bytes]] = []
    async for some in read_memories(store, await list_keys_in_scope(store, scope)):
        found += [one for one in some if is_current(one[0])]
    return await asyncio.to_thread(_ranked, found, tokenize_query(query), limit, now)


def _ranked(found: list[tuple[Memory, bytes]], wanted: list[str], limit: int, now: str) -> list[MemoryHit]:
    """By BM25 and age; where nothing is wanted, all fit equally well."""
    if wanted:
        postings = Postings.of_texts([memory.text[:LOOKED_AT] for memory, _ in found])
        scores = bm25_scores([(postings, postings.lengths >= 0)], wanted)[0]
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
