"""Context: what a model should be told before a question, out of what the session may see.

Documents come by search, so by what the session has borrowed; turns and the summary are the session's own, and the
overview its project's. Facts are the person's, and only those that belong to the question. What is too much for the
tier's budgets is left out and named.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from itertools import accumulate

import msgspec

from vademecum.engines.duckdb.users import Users
from vademecum.engines.duckdb.userstore import UserStore
from vademecum.errors import BadRequest, NotFound, TooLarge
from vademecum.model.collections import Id
from vademecum.model.limits import Limits, Tier
from vademecum.model.prompt import (
    BUDGETS,
    CHARACTERS,
    Allowed,
    Budget,
    Given,
    Ids,
    Mode,
    Passage,
    Recalled,
    SystemPromptTooLarge,
    Tokens,
    Turn,
    assemble,
    render,
)
from vademecum.model.ranking import query_terms
from vademecum.model.topic import Fact, belonging, most_useful
from vademecum.services.models import Inference
from vademecum.services.portions import portions
from vademecum.services.search import Found, Result, Searcher
from vademecum.services.search import Scope as Searched

PASSAGES = 50  # as many as the largest budget may take of short ones
TURNS = 200
FACTS = 200  # as many as the largest budget takes of usual ones
FACTS_LENGTHS = 8  # so many times the longest one are counted
FALLBACK = "This session is in authoritative mode, which belongs to JIGGA accounts: the context was made for analysis."


class Scope(msgspec.Struct, rename="camel", kw_only=True):
    """What was looked at. `search` is null when the tier has no document section; `notice`: a word to the person."""

    session_id: str
    project_id: str | None
    mode: Mode
    search: Searched | None
    notice: str | None = None


class Context(msgspec.Struct):
    prompt: str
    tokens: Tokens
    budget: Allowed
    dropped: Ids
    scope: Scope


class _Session(msgspec.Struct, rename="camel"):
    title: str = ""
    mode: Mode = "analysis"
    project_id: str | None = None


class _Episode(Turn, frozen=True, rename="camel"):
    created_at: str
    status: str


class _Summary(msgspec.Struct, rename="camel"):
    id: str
    updated_at: str
    content: str


class _Project(msgspec.Struct):
    name: str


_session = msgspec.json.Decoder(_Session)
_episode = msgspec.json.Decoder(_Episode)
_summary = msgspec.json.Decoder(_Summary)
_project = msgspec.json.Decoder(_Project)
_fact = msgspec.json.Decoder(Fact)


class Contexts:
    def __init__(self, users: Users, searcher: Searcher, inference: Inference) -> None:
        self._users = users
        self._searcher = searcher
        self._inference = inference

    async def context(
        self, user_id: str, tier: Tier, limits: Limits, query: str, session_id: str, system: str
    ) -> Context:
        """Raises NotFound for a deleted session, TooLarge for a system prompt that leaves no room, and Busy."""
        budget = BUDGETS[tier]
        async with self._users.open(user_id) as store:
            session = await _session_of(store, session_id)
            facts = await _facts(store, query, budget)
            turns = await _turns(store, session_id, budget)
            memories = await _summaries(store, session_id, session)
        found = await self._found(user_id, limits, budget, query, session_id)
        authoritative = session.mode == "authoritative"
        mode: Mode = "authoritative" if authoritative and limits.authoritative and found else "analysis"
        passages = [_passage(result) for result in found.results] if found else []
        given = Given(system, mode, facts, turns, memories, passages)
        draft = await asyncio.to_thread(render, given, budget)
        try:
            made = await assemble(draft, budget, self._inference.count_tokens)
        except SystemPromptTooLarge as error:
            raise TooLarge(
                f"The system prompt has {error.tokens} tokens or more, and {error.allowed} are the most that leave room "
                "for what is known and for an answer. Nothing was made: shorten it."
            ) from error
        scope = Scope(
            session_id=session_id,
            project_id=session.project_id,
            mode=mode,
            search=found.scope if found else None,
            notice=FALLBACK if mode != session.mode else None,
        )
        return Context(made.prompt, made.tokens, made.budget, made.dropped, scope)

    async def _found(
        self, user_id: str, limits: Limits, budget: Budget, query: str, session_id: str
    ) -> Found | None:
        if not (limits.searches_documents and budget.rag):
            return None
        return await self._searcher.search(user_id, limits, query, session_id, PASSAGES, "hybrid")


async def _session_of(store: UserStore, session_id: str) -> _Session:
    """One that is unknown here may be on its way, as when it borrows: it has nothing to tell yet."""
    try:
        msgspec.convert(session_id, Id)
    except msgspec.ValidationError as error:
        raise BadRequest("`sessionId` is not an id.") from error
    key = f"sessions/{session_id}"
    head = store.heads.rows.get(key)
    if head is not None and head.deleted:
        raise NotFound("There is no such session.")
    body = (await store.bodies([key])).get(key)
    return _session.decode(body) if body is not None else _Session()


async def _facts(store: UserStore, query: str, budget: Budget) -> Sequence[Fact]:
    """The most useful ones that belong to the question. A user may have a quarter of a gigabyte of them: not much more
    is kept at a time than may be told, and no more of a fact is looked at."""
    heads = list(store.heads.rows)  # a copy: while the thread looks, a commit may change the rows
    keys = await asyncio.to_thread(lambda: [k for k in heads if k.startswith("facts/") and store.live(k)])
    found: list[tuple[int, Fact]] = []
    longest = CHARACTERS * budget.state
    async for portion in portions(store, keys):
        bodies = [body for _, body in portion]
        found = await asyncio.to_thread(_more_facts, query, found, bodies, longest)
    return [fact for _, fact in found]


def _more_facts(
    query: str, found: Iterable[tuple[int, Fact]], bodies: Iterable[bytes], longest: int
) -> list[tuple[int, Fact]]:
    """The best of those found by now and of the next ones. What is longer than the whole section may be is cut, yet not
    so short that it would fit."""
    decoded = (_fact.decode(body) for body in bodies)
    more = (msgspec.structs.replace(fact, value=fact.value[: longest + 1]) for fact in decoded)
    best = most_useful([*found, *belonging(query, more, query_terms)])[:FACTS]
    sizes = accumulate(len(fact.value) for _, fact in best)
    return [pair for pair, size in zip(best, sizes, strict=True) if size <= FACTS_LENGTHS * longest]


async def _turns(store: UserStore, session_id: str, budget: Budget) -> Sequence[Turn]:
    """The latest turns that were answered, from old to new; hardly more are read than the budget can take."""
    keys = _latest(
        store, _children(store, f"sessions/{session_id}", "episodes"), CHARACTERS * budget.volatile
    )
    found: list[_Episode] = []
    async for portion in portions(store, keys):
        found += await asyncio.to_thread(_answered, [body for _, body in portion])
    return sorted(found, key=lambda turn: (turn.created_at, turn.id))


def _answered(bodies: Iterable[bytes]) -> list[_Episode]:
    turns = (_episode.decode(body) for body in bodies)
    return [turn for turn in turns if turn.status in ("done", "stopped")]


async def _summaries(store: UserStore, session_id: str, session: _Session) -> Sequence[Recalled]:
    """The session's own summary, then its project's overview; of several the newest."""
    places = [(f"sessions/{session_id}", f'session "{session.title}"')]
    if session.project_id:
        key = f"projects/{session.project_id}"
        body = (await store.bodies([key])).get(key)
        if body is not None:
            places.append((key, f'project "{_project.decode(body).name}"'))
    found: list[Recalled] = []
    for parent, name in places:
        keys = _latest(store, _children(store, parent, "summaries"), 0)
        rows = [_summary.decode(body) async for portion in portions(store, keys) for _, body in portion]
        found += [Recalled(row.id, row.updated_at[:10], name, row.content) for row in rows]
    return found


def _children(store: UserStore, parent: str, collection: str) -> list[str]:
    named = store.heads.dependents.get(parent, ())
    return [key for key in named if key.startswith(f"{collection}/") and store.live(key)]


def _latest(store: UserStore, keys: Iterable[str], enough: int) -> list[str]:
    """The rows last written, the newest first, until they have `enough` bytes: at least one, at most TURNS."""
    heads = [(store.heads.rows[key], key) for key in keys]
    some: list[str] = []
    size = 0
    for head, key in sorted(heads, key=lambda pair: -pair[0].seq)[:TURNS]:
        some.append(key)
        size += head.size
        if size > enough:
            break
    return some


def _passage(result: Result) -> Passage:
    place = f"{result.document_id}.{result.block}/{result.chunk_index}"
    return Passage(place, result.filename, result.text, result.page)
