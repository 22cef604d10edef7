"""Build the prompt for a question from the data that the session may see.

Passages come from a search of the borrowed documents, turns from the session, and memory from the session's scope
(`prompt_memory`). Of the user's facts, only those that relate to the question are included. Content beyond the tier's
budgets is left out and listed in `dropped`. Passages that score far below the best one are left out, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from itertools import accumulate, islice
from typing import NamedTuple

import msgspec

from vademecum.errors import TooLarge, no_such
from vademecum.model.chat.answers import enters_prompts
from vademecum.model.chat.fact_relevance import Fact, select_relevant, sort_by_usefulness
from vademecum.model.chat.prompt import (
    BUDGETS,
    MAX_TOKEN_CHARS,
    Budget,
    Mode,
    Passage,
    Prompt,
    PromptInput,
    RecalledMemory,
    SectionBudgets,
    SectionIds,
    SystemPromptTooLarge,
    Tokens,
    Turn,
    assemble,
    render,
)
from vademecum.model.memory.scope import MemoryPartition
from vademecum.model.records.store_interface import UserStore, UserStores
from vademecum.model.sync.quotas import Limits, Tier
from vademecum.model.text.tokenize import tokenize_query
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

PASSAGES = 50  # the number of passages to search for; the largest budget has room for 50 short ones
TURNS = 200
FACTS = 200  # the number of facts to select; the largest budget has room for about 200 of usual length
FACTS_TOTAL_FACTOR = 8  # the maximum total length of the selected facts, in lengths of the state section
FALLBACK_NOTICE = (
    "This session is in authoritative mode, which requires a JIGGA account. The prompt is built for analysis "
    "mode."
)


class ContextScope(msgspec.Struct, rename="camel", kw_only=True):
    """The sources of a prompt. `search` is null if the tier has no document section, `memory` if the session is unknown.

    `recalled`: the rows of memory in the prompt, in the same order. `notice`: a message to the user.
    """

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
    budget: SectionBudgets
    dropped: SectionIds
    scope: ContextScope


class Requester(msgspec.Struct, frozen=True):
    user_id: str
    tier: Tier
    limits: Limits


class Question(msgspec.Struct, frozen=True):
    """A question. `system`: the client's own part of the prompt.

    `episode_id`: the turn that is being answered, if any. This turn and later turns do not enter the prompt.
    """

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
    """The parts of a prompt that need no search.

    `partition`: the session's project or pool, or None if the session has not arrived yet. `end`: the position of the
    turn that is being answered.
    """

    session: _Session
    partition: MemoryPartition | None
    facts: Sequence[Fact]
    end: TurnPosition | None
    turns: Sequence[Turn]
    summaries: Sequence[RecalledMemory]


_session = msgspec.json.Decoder(_Session)
_episode = msgspec.json.Decoder(_Episode)
_fact = msgspec.json.Decoder(Fact)


class ContextBuilder:
    def __init__(
        self,
        users: UserStores,
        searcher: DocumentSearch,
        prompt_memory: PromptMemory,
        inference: Inference,
        min_score_share: float,
    ) -> None:
        self._users = users
        self._searcher = searcher
        self._prompt_memory = prompt_memory
        self._inference = inference
        self._min_score_share = min_score_share

    async def context(self, asker: Requester, question: Question) -> Context:
        """Build the context of a question.

        Raises NotFound for a deleted session, TooLarge for a system prompt that leaves no room, and Busy.
        """
        context, _ = await self.with_passages(asker, question)
        return context

    async def with_passages(self, asker: Requester, question: Question) -> tuple[Context, dict[int, Result]]:
        """Return the context and its passages by their numbers in the prompt. Raises the same errors as `context`."""
        budget = BUDGETS[asker.tier]
        async with self._users.open(asker.user_id) as store:
            known = await _read_known(store, question, budget)
        found, memories = await self._search_all(asker, question, budget, known)
        mode = _mode(known.session, asker.limits, found)
        results = found.results if found else []
        lines = [*known.summaries, *memories.lines]
        passages = [_passage(result) for result in results]
        prompt = await self._assemble(
            PromptInput(
                question.system, mode, known.facts, known.turns, lines, passages, self._min_score_share
            ),
            budget,
        )
        notices = [FALLBACK_NOTICE if mode != known.session.mode else None, memories.notice]
        scope = ContextScope(
            session_id=question.session_id,
            project_id=known.session.project_id,
            mode=mode,
            search=found.scope if found else None,
            memory=known.partition,
            recalled=[parse_source(key) for key in prompt.kept.memories],
            notice=" ".join(notice for notice in notices if notice) or None,
        )
        by_place = {_place(result): result for result in results}
        context = Context(prompt.prompt, prompt.tokens, prompt.budget, prompt.dropped, scope)
        numbered = zip(prompt.numbers, prompt.kept.passages, strict=True)
        return context, {number: by_place[key] for number, key in numbered}

    async def _assemble(self, given: PromptInput, budget: Budget) -> Prompt:
        tx = await asyncio.to_thread(render, given, budget)
        try:
            return await assemble(tx, budget, self._inference.count_tokens)
        except SystemPromptTooLarge as error:
            raise TooLarge(
                f"The system prompt has at least {error.tokens} tokens, but at most {error.allowed} leave room for "
                "facts and an answer. Nothing was sent. Shorten the system prompt."
            ) from error

    async def _search_all(
        self, asker: Requester, question: Question, budget: Budget, known: _Known
    ) -> tuple[Found | None, PromptMemoryResult]:
        """Search documents and memory concurrently, so that the waits for their indexes do not add up."""
        if known.partition is None:
            return await self._search_documents(asker, question, budget), PromptMemoryResult([])
        memory_query = MemoryQuery(question.query, question.session_id, known.partition, known.end)
        memory_task = asyncio.create_task(self._prompt_memory.recall_for_prompt(asker.user_id, memory_query))
        try:
            found = await self._search_documents(asker, question, budget)
            return found, await memory_task
        finally:
            memory_task.cancel()

    async def _search_documents(self, asker: Requester, question: Question, budget: Budget) -> Found | None:
        if not (asker.limits.searches_documents and budget.rag):
            return None
        return await self._searcher.search(
            asker.user_id, asker.limits, question.query, question.session_id, PASSAGES, "hybrid"
        )


async def _read_known(store: UserStore, question: Question, budget: Budget) -> _Known:
    """Read the parts that need no search. Raises NotFound for a deleted session, BadRequest for an invalid id."""
    session_id = question.session_id
    session = await _read_session(store, session_id)
    partition = _find_partition(store, session_id)
    facts = await _facts(store, question.query, budget)
    end = await _find_position(store, session_id, question.episode_id)
    turns = await _turns(store, session_id, budget, end)
    return _Known(
        session,
        partition,
        facts,
        end,
        turns,
        await read_summaries(store, session_id, partition) if partition is not None else [],
    )


def _mode(session: _Session, limits: Limits, found: Found | None) -> Mode:
    """Return the session's mode if the tier includes it and documents were searched, else "analysis"."""
    return session.mode if limits.authoritative and found else "analysis"


async def _read_session(store: UserStore, session_id: str) -> _Session:
    """Return the session, or an empty session if it has not arrived yet. Raises NotFound for a deleted session."""
    check_session_id(session_id)
    key = f"sessions/{session_id}"
    head = store.row_index.rows.get(key)
    if head is not None and head.deleted:
        raise no_such("sessions")
    body = (await store.read_bodies([key])).get(key)
    return _session.decode(body) if body is not None else _Session()


def _find_partition(store: UserStore, session_id: str) -> MemoryPartition | None:
    """Return the current project or pool of the session, or None if the session has not arrived yet."""
    rows = store.row_index.rows
    return find_session_home(rows.get, session_id) if f"sessions/{session_id}" in rows else None


async def _facts(store: UserStore, query: str, budget: Budget) -> Sequence[Fact]:
    """Return the most useful facts that relate to the question.

    A user may have 256 MB of facts. So long facts are truncated, and few more facts are read into memory at a time than
    the prompt can contain.
    """
    keys = await list_live_keys(store, "facts")
    found: list[tuple[int, Fact]] = []
    max_length = MAX_TOKEN_CHARS * budget.state
    async for batch in read_batches(store, keys):
        bodies = [body for _, body in batch]
        found = await asyncio.to_thread(_merge_facts, query, found, bodies, max_length)
    return [fact for _, fact in found]


def _merge_facts(
    query: str, found: Iterable[tuple[int, Fact]], bodies: Iterable[bytes], max_length: int
) -> list[tuple[int, Fact]]:
    """Return the best facts of both the facts found so far and the next batch, `bodies`.

    A value longer than the whole section is cut to one character more than fits, so that the prompt still omits it.
    """
    decoded = (_fact.decode(body) for body in bodies)
    more = (msgspec.structs.replace(fact, value=fact.value[: max_length + 1]) for fact in decoded)
    best = sort_by_usefulness([*found, *select_relevant(query, more, tokenize_query)])[:FACTS]
    sizes = accumulate(len(fact.value) for _, fact in best)
    return [pair for pair, size in zip(best, sizes, strict=True) if size <= FACTS_TOTAL_FACTOR * max_length]


async def _turns(
    store: UserStore, session_id: str, budget: Budget, end: TurnPosition | None
) -> Sequence[Turn]:
    """Return the latest answered turns before `end`, oldest first. Read few more turns than the budget can contain."""
    keys = _sort_newest_first(store, list_live_children(store, f"sessions/{session_id}", "episodes"))
    remaining = budget_chars = MAX_TOKEN_CHARS * budget.volatile
    found: list[_Episode] = []
    while keys and len(found) < TURNS and remaining >= 0:
        page = _take_until(store, keys, remaining)
        keys = keys[len(page) :]
        async for batch in read_batches(store, page):
            turns = await asyncio.to_thread(_decode_answered, [body for _, body in batch], end)
            # A very long turn uses at most half of the budget, so that earlier turns are read, too.
            remaining -= sum(
                min(len(turn.user_message) + len(turn.ai_response), budget_chars // 2) for turn in turns
            )
            found += turns
    return sorted(found, key=_position)


async def _find_position(store: UserStore, session_id: str, episode_id: str | None) -> TurnPosition | None:
    """Return the position of a turn of the session, or None if the turn has not arrived yet."""
    key = f"episodes/{episode_id}"
    body = (await store.read_bodies([key])).get(key)
    if body is None or key not in list_live_children(store, f"sessions/{session_id}", "episodes"):
        return None
    return _position(_episode.decode(body))


def _position(turn: _Episode) -> TurnPosition:
    return turn.created_at, turn.id


def _decode_answered(bodies: Iterable[bytes], end: TurnPosition | None) -> list[_Episode]:
    turns = (_episode.decode(body) for body in bodies)
    return [
        _without_excluded_answer(turn)
        for turn in turns
        if turn.status in ("done", "stopped") and (end is None or _position(turn) < end)
    ]


def _without_excluded_answer(turn: _Episode) -> _Episode:
    """Remove an answer that must not enter a prompt. The user's message stays."""
    if enters_prompts(turn.model, turn.ai_response):
        return turn
    return msgspec.structs.replace(turn, ai_response="")


def _sort_newest_first(store: UserStore, keys: Iterable[str]) -> list[str]:
    """Sort the keys of live rows by `seq`, the last written first."""
    return sorted(keys, key=lambda key: -store.row_index.rows[key].seq)


def _take_until(store: UserStore, keys: Iterable[str], remaining: int) -> list[str]:
    """Return the first keys, up to the key with which their rows exceed `remaining` bytes, and at most TURNS keys."""
    page: list[str] = []
    size = 0
    for key in islice(keys, TURNS):
        page.append(key)
        size += store.row_index.rows[key].size
        if size > remaining:
            break
    return page


def _passage(result: Result) -> Passage:
    return Passage(_place(result), result.filename, result.text, result.score, result.page)


def _place(result: Result) -> str:
    return f"{result.document_id}.{result.block}/{result.chunk_index}"
