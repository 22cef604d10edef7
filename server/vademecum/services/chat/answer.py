"""Answer a question of a session with the assistant, the language model behind the configured endpoint.

The model receives the context of the session (`prompt_context`) and nothing else. One task per answer writes events
into a bounded queue. A slow client delays the task. A disconnect, the time limit or a server stop cancels it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Literal

import msgspec
import structlog
from msgspec import UNSET, UnsetType

from vademecum.engines.llm.errors import empty_answer_error
from vademecum.engines.llm.sse_parser import Finish
from vademecum.errors import (
    AnswerTooSlow,
    AssistantBusy,
    AssistantError,
    Broken,
    NoAssistant,
    Stopping,
    VademecumError,
)
from vademecum.fair_queue import FairSlots
from vademecum.model.chat.endpoint_url import base_address
from vademecum.model.chat.prompt import SectionBudgets, SectionIds, Tokens, nothing_found
from vademecum.model.records.store_interface import UserStores
from vademecum.model.sync.quotas import DOCUMENTS
from vademecum.services.chat.prompt_context import Context, ContextBuilder, ContextScope, Question, Requester
from vademecum.services.documents.documents import read_filenames
from vademecum.services.runtime.concurrency_limits import QuestionLimit
from vademecum.services.search.document_search import Result
from vademecum.settings import Settings

if TYPE_CHECKING:
    from vademecum.engines.llm.client import Endpoint

RETRY_AFTER_S = 5
HEAD_START_S = 1.0  # seconds to wait for an early error of the endpoint before the response starts
MAX_QUEUED_EVENTS = 64  # the maximum number of events of one answer that wait for a slow client
_log = structlog.get_logger("vademecum.answer")


class CitedPassage(msgspec.Struct, frozen=True, rename="camel"):
    """A passage in the prompt. `n`: its number, by which the answer cites it."""

    n: int
    document_id: str
    filename: str
    block: int
    chunk_index: int
    text: str
    page: int | UnsetType = UNSET


class PromptSummary(msgspec.Struct, frozen=True):
    """A summary of the prompt. `model`: the model that received the prompt, or null if no model did."""

    citations: list[CitedPassage]
    tokens: Tokens
    budget: SectionBudgets
    dropped: SectionIds
    scope: ContextScope
    model: str | None


class Delta(msgspec.Struct, frozen=True):
    text: str


class Done(msgspec.Struct, frozen=True):
    """The end of the answer. `finish`: the reason for the end."""

    finish: Finish


class Restart(msgspec.Struct, frozen=True):
    """The text so far was the model's reasoning; the answer starts after this event."""

    discards_text: Literal[True] = msgspec.field(name="discardsText")


Event = PromptSummary | Delta | Restart | Done
Emit = Callable[[Event], Awaitable[None]]


class AnswerStream:
    """An answer in progress."""

    def __init__(self, write: Callable[[Emit], Awaitable[None]], timeout_s: float) -> None:
        self._events: asyncio.Queue[Event | VademecumError] = asyncio.Queue()
        self._free_slots = asyncio.Semaphore(MAX_QUEUED_EVENTS)
        self.task = asyncio.create_task(_run_answer(partial(write, self._emit), timeout_s))
        self.task.add_done_callback(self._queue_failure)

    async def next(self) -> Event:
        """Return the next event; `Done` is the last. Raises the error of a failed answer, which ends the stream."""
        event = await self._events.get()
        self._free_slots.release()
        if isinstance(event, VademecumError):
            raise event
        return event

    def end(self) -> None:
        """Cancel the answer. A client that still reads it gets the error `Stopping`."""
        self.task.cancel()

    async def _emit(self, event: Event) -> None:
        await self._free_slots.acquire()
        self._events.put_nowait(event)

    def _queue_failure(self, task: asyncio.Task[VademecumError | None]) -> None:
        """Queue a failure even if the queue is full. Otherwise a stalled client would delay the end of the task."""
        failure = _stopping_error() if task.cancelled() else task.result()
        if failure is not None:
            self._events.put_nowait(failure)


async def _run_answer(write: Callable[[], Awaitable[None]], timeout_s: float) -> VademecumError | None:
    """Write an answer and return its error, or None. Only error codes are logged, never content."""
    try:
        async with asyncio.timeout(timeout_s):
            await write()
        return None
    except (AssistantError, AssistantBusy) as error:
        _log.warning("no answer", code=error.code)
        return error
    except VademecumError as error:
        return error
    except TimeoutError:
        _log.warning("no answer", code=AnswerTooSlow.code)
        return AnswerTooSlow(f"The answer took longer than {timeout_s:g} s. Ask for something shorter.")
    except Exception as error:
        _log.error("defect", exc_info=error)
        return Broken("The server failed. Try again.")


class Answers:
    def __init__(
        self,
        endpoint: Endpoint | None,
        contexts: ContextBuilder,
        users: UserStores,
        question_limit: QuestionLimit,
        timeout_s: float,
    ) -> None:
        self.endpoint = endpoint
        self._contexts = contexts
        self._users = users
        self._question_limit = question_limit
        self._longest_s = timeout_s
        self._running: set[AnswerStream] = set()
        self._is_stopped = False

    def begin(self, asker: Requester, question: Question) -> AnswerStream:
        """Start an answer. Raises NoAssistant, RateLimited, Busy, Stopping."""
        endpoint = self.endpoint
        if endpoint is None:
            raise NoAssistant(
                "No assistant is set up on this server. You can still search your documents. The administrator can set "
                "up an assistant (VADEMECUM_ASSISTANT_URL)."
            )
        if self._is_stopped:
            raise _stopping_error()
        release = self._question_limit.acquire(asker.user_id)
        answering = AnswerStream(partial(self._write, endpoint, asker, question), self._longest_s)
        self._running.add(answering)
        answering.task.add_done_callback(lambda _: self._running.discard(answering))
        answering.task.add_done_callback(lambda _: release())
        return answering

    def count(self) -> int:
        return len(self._running)

    def stop(self) -> None:
        """Cancel all answers and refuse new ones."""
        self._is_stopped = True
        for answering in self._running:
            answering.end()

    async def close(self) -> None:
        self.stop()
        await asyncio.gather(*(answering.task for answering in self._running), return_exceptions=True)
        if self.endpoint is not None:
            await self.endpoint.close()

    async def _write(self, endpoint: Endpoint, asker: Requester, question: Question, emit: Emit) -> None:
        context, passages = await self._contexts.with_passages(asker, question)
        if context.scope.mode == "authoritative" and not passages:
            await emit(_prompt_summary(context, passages, None))
            await emit(Delta(nothing_found(await self._searched_filenames(asker.user_id, context.scope))))
            await emit(Done("stop"))
            return
        summary = _prompt_summary(context, passages, endpoint.model)
        async with AsyncExitStack() as stack:
            stream = endpoint.stream_answer(context.prompt, question.query, context.budget.response)
            opening = asyncio.create_task(stack.enter_async_context(stream))
            stack.callback(opening.cancel)
            await asyncio.wait({opening}, timeout=HEAD_START_S)
            if opening.done():
                opening.result()
            # Loading a model takes long, so the prompt summary is sent first and the client shows it during that time.
            await emit(summary)
            is_empty = True
            async for piece in await opening:
                if piece.restarts:
                    is_empty = True
                    await emit(Restart(True))
                if piece.text:
                    is_empty = False
                    await emit(Delta(piece.text))
                if piece.finish and is_empty:
                    raise empty_answer_error(piece.finish, context.budget.response)
                if piece.finish:
                    await emit(Done(piece.finish))

    async def _searched_filenames(self, user_id: str, scope: ContextScope) -> list[str]:
        if scope.search is None:
            return []
        async with self._users.open(user_id) as store:
            return sorted((await read_filenames(store, scope.search.document_ids)).values())[:DOCUMENTS]


def create_endpoint(settings: Settings, model: str = "", slots: FairSlots | None = None) -> Endpoint | None:
    """Return the configured endpoint with this model or the assistant's model, or None if no endpoint is configured."""
    if not settings.assistant_url:
        return None
    # Imported here, because it imports httpx, which only an endpoint needs.
    from vademecum.engines.llm.client import AnswerBounds, Endpoint

    bounds = AnswerBounds(
        settings.assistant_connect_s, settings.assistant_idle_timeout_s, settings.assistant_characters
    )
    return Endpoint(
        base_address(settings.assistant_url),
        model.strip() or settings.assistant_model.strip(),
        settings.assistant_key.reveal(),
        bounds,
        environment=settings.assistant_environment,
        slots=slots,
    )


def _prompt_summary(context: Context, passages: dict[int, Result], model: str | None) -> PromptSummary:
    citations = [_citation(number, passage) for number, passage in passages.items()]
    return PromptSummary(citations, context.tokens, context.budget, context.dropped, context.scope, model)


def _citation(number: int, passage: Result) -> CitedPassage:
    return CitedPassage(
        number,
        passage.document_id,
        passage.filename,
        passage.block,
        passage.chunk_index,
        passage.text,
        UNSET if passage.page is None else passage.page,
    )


def _stopping_error() -> Stopping:
    return Stopping("The server is stopping. Ask again when it is running.", retry_after_s=RETRY_AFTER_S)
