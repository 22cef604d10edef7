"""Context: what a model should be told before a question, out of what the session may see.

Documents come by search, so by what the session has borrowed; turns are the session's own, and memory is that of the
scope it is at home in (`prompt_memory`). Facts are the person's, and only those that belong to the question. What is too much
for the tier's budgets is left out and named.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from itertools import accumulate, islice
from typing import NamedTuple

import msgspec

from vademecum.engines.duckdb.user_store import UserStore
from vademecum.engines.duckdb.user_stores import UserStores
from vademecum.errors import TooLarge, no_such
from vademecum.model.chat.answers import enters_prompts
from vademecum.model.chat.fact_relevance import Fact, belonging, most_useful
from vademecum.model.chat.prompt import (
    BUDGETS,
    CHARACTERS,
    Allowed,
    Budget,
    Given,
    Ids,
    Mode,
    Passage,
    Prompt,
    Recalled,
    SystemPromptTooLarge,
    Tokens,
    Turn,
    assemble,
    render,
)
from vademecum.model.memory.scope import MemoryPartition
from vademecum.model.sync.quotas import Limits, Tier
from vademecum.model.text.ranking import query_terms
from vademecum.services.chat.prompt_memory import (
    MemoryQuery,
    PromptMemory,
    PromptMemoryResult,
    Source,
    TurnPosition,
    parse_source,
    read_summaries,
)
from vademecum.services.documents.documents import check_session_id
from vademecum.services.memory.scope import find_session_home
from vademecum.services.models.active_model import Inference
from vademecum.services.search.document_search import DocumentSearch, Found, Result, SearchScope
from vademecum.services.sync.batches import list_live_children, list_live_keys, read_batches

PASSAGES = 50  # as many as the largest budget may take of short ones
TURNS = 200
FACTS = 200  # as many as the largest budget takes of usual ones
FACTS_LENGTHS = 8  # so many times the longest one are counted
FALLBACK = "This session is in authoritative mode, which belongs to JIGGA accounts: the context was made for analysis."


class ContextScope(msgspec.Struct, rename="camel", kw_only=True):
    """What was looked at. `search` is null when the tier has no document section, `memory` when the session is not here
    yet. `recalled`: the rows of memory that are in the prompt, in its order; `notice`: a word to the person."""

    session_id: str
    project_id: str | None
    mode: Mode
    search: SearchScope | None
    memory: MemoryPartition | None
    recalled: list[Source]
    notice: str | None = None


class Context(msgspec.Struct):
    prompt: str
    tokens: Tokens
    budget: Allowed
    dropped: Ids
    scope: ContextScope


class Requester(msgspec.Struct, frozen=True):
    user_id: str
    tier: Tier
    limits: Limits


class Question(msgspec.Struct, frozen=True):
    """`system`: the client's own part of the prompt. `episode_id`: the turn that is being answered, if it is one: it and
    those after it are not told."""

    query: str
    session_id: str
    episode_id: str | None = None
    system: str = ""


class _Session(msgspec.Struct, rename="camel"):
    mode: Mode = "analysis"
    project_id: str | None = None


class _Episode(Turn, frozen=True, rename="camel"):
    created_at: str
    status: str
    model: str = ""


class _Known(NamedTuple):
    """What is told without a search. `home`: where the session is, nowhere while it is on its way here; `end`: the moment
    of the turn that is being answered."""

    session: _Session
    home: MemoryPartition | None
    facts: Sequence[Fact]
    end: TurnPosition | None
    turns: Sequence[Turn]
    summaries: Sequence[Recalled]


_session = msgspec.json.Decoder(_Session)
_episode = msgspec.json.Decoder(_Episode)
_fact = msgspec.json.Decoder(Fact)


class ContextBuilder:
    def __init__(
        self, users: UserStores, searcher: DocumentSearch, reminder: PromptMemory, inference: Inference
    ) -> None:
        self._users = users
        self._searcher = searcher
        self._reminder = reminder
        self._inference = inference

    async def context(self, asker: Requester, question: Question) -> Context:
        """Raises NotFound for a deleted session, TooLarge for a system prompt that leaves no room, and Busy."""
        context, _ = await self.with_passages(asker, question)
        return context

    async def with_passages(self, asker: Requester, question: Question) -> tuple[Context, list[Result]]:
        """As `context`, and the passages that are in the prompt, in its order."""
        budget = BUDGETS[asker.tier]
        async with self._users.open(asker.user_id) as store:
            known = await _known(store, question, budget)
        found, reminded = await self._looked_up(asker, question, budget, known)
        mode = _mode(known.session, asker.limits, found)
        results = found.results if found else []
        told = [*known.summaries, *reminded.lines]
        passages = [_passage(result) for result in results]
        made = await self._made(
            Given(question.system, mode, known.facts, known.turns, told, passages), budget
        )
        notices = [FALLBACK if mode != known.session.mode else None, reminded.notice]
        scope = ContextScope(
            session_id=question.session_id,
            project_id=known.session.project_id,
            mode=mode,
            search=found.scope if found else None,
            memory=known.home,
            recalled=[parse_source(key) for key in made.kept.memories],
            notice=" ".join(notice for notice in notices if notice) or None,
        )
        by_place = {_place(result): result for result in results}
        context = Context(made.prompt, made.tokens, made.budget, made.dropped, scope)
        return context, [by_place[place] for place in made.kept.passages]

    async def _made(self, given: Given, budget: Budget) -> Prompt:
        tx = await asyncio.to_thread(render, given, budget)
        try:
            return await assemble(tx, budget, self._inference.count_tokens)
        except SystemPromptTooLarge as error:
            raise TooLarge(
                f"The system prompt has {error.tokens} tokens or more, and {error.allowed} are the most that leave room "
                "for what is known and for an answer. Nothing was made: shorten it."
            ) from error

    async def _looked_up(
        self, asker: Requester, question: Question, budget: Budget, known: _Known
    ) -> tuple[Found | None, PromptMemoryResult]:
        """Documents and memory, side by side: one slow index is not waited for after the other."""
        if known.home is None:
            return await self._found(asker, question, budget), PromptMemoryResult([])
        asking = MemoryQuery(question.query, question.session_id, known.home, known.end)
        reminding = asyncio.create_task(self._reminder.recall_for_prompt(asker.user_id, asking))
        try:
            found = await self._found(asker, question, budget)
            return found, await reminding
        finally:
            reminding.cancel()

    async def _found(self, asker: Requester, question: Question, budget: Budget) -> Found | None:
        if not (asker.limits.searches_documents and budget.rag):
            return None
        return await self._searcher.search(
            asker.user_id, asker.limits, question.query, question.session_id, PASSAGES, "hybrid"
        )


async def _known(store: UserStore, question: Question, budget: Budget) -> _Known:
    """Raises NotFound for a deleted session, BadRequest for what is no id of one."""
    session_id = question.session_id
    session = await _session_of(store, session_id)
    home = _home(store, session_id)
    facts = await _facts(store, question.query, budget)
    end = await _moment_of(store, session_id, question.episode_id)
    turns = await _turns(store, session_id, budget, end)
    return _Known(
        session,
        home,
        facts,
        end,
        turns,
        await read_summaries(store, session_id, home) if home is not None else [],
    )


def _mode(session: _Session, limits: Limits, found: Found | None) -> Mode:
    """The session's own, where the tier has it and documents were searched."""
    return session.mode if limits.authoritative and found else "analysis"


async def _session_of(store: UserStore, session_id: str) -> _Session:
    """One that is unknown here may be on its way, as when it borrows: it has nothing to tell yet."""
    check_session_id(session_id)
    key = f"sessions/{session_id}"
    head = store.row_index.rows.get(key)
    if head is not None and head.deleted:
        raise no_such("sessions")
    body = (await store.read_bodies([key])).get(key)
    return _session.decode(body) if body is not None else _Session()


def _home(store: UserStore, session_id: str) -> MemoryPartition | None:
    """Where the session is at this moment; nowhere while it is on its way here."""
    rows = store.row_index.rows
    return find_session_home(rows.get, session_id) if f"sessions/{session_id}" in rows else None


async def _facts(store: UserStore, query: str, budget: Budget) -> Sequence[Fact]:
    """The most useful ones that belong to the question. A user may have a quarter of a gigabyte of them: not much more
    is kept at a time than may be told, and no more of a fact is looked at."""
    keys = await list_live_keys(store, "facts")
    found: list[tuple[int, Fact]] = []
    longest = CHARACTERS * budget.state
    async for portion in read_batches(store, keys):
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


async def _turns(
    store: UserStore, session_id: str, budget: Budget, end: TurnPosition | None
) -> Sequence[Turn]:
    """The latest turns that were answered, from old to new, before the moment `end`; hardly more are read than the
    budget can take."""
    keys = _newest(store, list_live_children(store, f"sessions/{session_id}", "episodes"))
    enough = most = CHARACTERS * budget.volatile
    found: list[_Episode] = []
    while keys and len(found) < TURNS and enough >= 0:
        some = _first(store, keys, enough)
        keys = keys[len(some) :]
        async for portion in read_batches(store, some):
            turns = await asyncio.to_thread(_answered, [body for _, body in portion], end)
            # Of a very long turn no more than half of the room is told, and others come before it.
            enough -= sum(min(len(turn.user_message) + len(turn.ai_response), most // 2) for turn in turns)
            found += turns
    return sorted(found, key=_moment)


async def _moment_of(store: UserStore, session_id: str, episode_id: str | None) -> TurnPosition | None:
    """The place in time of a turn of the session; one that is not here yet bounds nothing."""
    key = f"episodes/{episode_id}"
    body = (await store.read_bodies([key])).get(key)
    if body is None or key not in list_live_children(store, f"sessions/{session_id}", "episodes"):
        return None
    return _moment(_episode.decode(body))


def _moment(turn: _Episode) -> TurnPosition:
    return turn.created_at, turn.id


def _answered(bodies: Iterable[bytes], end: TurnPosition | None) -> list[_Episode]:
    turns = (_episode.decode(body) for body in bodies)
    return [
        _told(turn)
        for turn in turns
        if turn.status in ("done", "stopped") and (end is None or _moment(turn) < end)
    ]


def _told(turn: _Episode) -> _Episode:
    """Leave out an answer that no prompt may hold. What the user said in this session stays."""
    if enters_prompts(turn.model, turn.ai_response):
        return turn
    return msgspec.structs.replace(turn, ai_response="")


def _newest(store: UserStore, keys: Iterable[str]) -> list[str]:
    """Keys of live rows, the last written first."""
    return sorted(keys, key=lambda key: -store.row_index.rows[key].seq)


def _first(store: UserStore, keys: Iterable[str], enough: int) -> list[str]:
    """The first rows, until they have `enough` bytes: at least one, at most TURNS."""
    some: list[str] = []
    size = 0
    for key in islice(keys, TURNS):
        some.append(key)
        size += store.row_index.rows[key].size
        if size > enough:
            break
    return some


def _passage(result: Result) -> Passage:
    return Passage(_place(result), result.filename, result.text, result.page)


def _place(result: Result) -> str:
    return f"{result.document_id}.{result.block}/{result.chunk_index}"
