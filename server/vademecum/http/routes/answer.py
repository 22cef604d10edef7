"""Answers of the assistant, streamed. Its address and key never leave the server."""

import asyncio
import weakref
from collections.abc import AsyncIterator

import msgspec
from litestar import get, post
from litestar.datastructures import State
from litestar.params import JSONBody
from litestar.response import Stream

from vademecum.errors import (
    AssistantBroke,
    AssistantBusy,
    AssistantKeyRefused,
    AssistantUnreachable,
    BadRequest,
    Busy,
    ModelUnknown,
    NoAssistant,
    NotFound,
    SignedOut,
    TooLarge,
    VademecumError,
)
from vademecum.http.disconnect import while_connected
from vademecum.http.parameters import QueryText, Req
from vademecum.http.problem_details import problem_specs
from vademecum.http.responses import EVENTS, HEARTBEAT, event_stream, response_spec
from vademecum.model.records.accounts import Token
from vademecum.model.schema.collections import Id
from vademecum.services.accounts.tokens import is_valid
from vademecum.services.chat.answer import AnswerStream, Delta, Done, Event, PromptSummary, Restart
from vademecum.services.chat.prompt_context import Question
from vademecum.services.runtime.container import Services
from vademecum.services.sync.stream import encode_event

NAMES: dict[type[Event], str] = {PromptSummary: "context", Delta: "delta", Restart: "restart", Done: "done"}


class AnswerQuestion(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """`episodeId`: the turn that is being answered. It and those after it are not told."""

    query: QueryText
    session_id: str
    episode_id: Id | None = None
    system_prompt: str = ""


class Assistant(msgspec.Struct):
    """Whether an assistant is set up, and its model."""

    available: bool
    model: str | None


class Failure(msgspec.Struct):
    code: str
    message: str


@get("/v1/assistant", operation_id="getAssistant", tags=["assistant"], summary="Who answers questions?")
async def assistant_route(state: State) -> Assistant:
    """The language model that the server asks, if one is set up. Whether it can be reached is seen by asking."""
    services: Services = state.services
    endpoint = services.answers.endpoint
    return Assistant(endpoint is not None, endpoint.model if endpoint is not None else None)


@post(
    "/v1/answer",
    status_code=200,
    opt={"rate": "answer"},
    media_type=EVENTS,
    operation_id="answer",
    tags=["assistant"],
    summary="Answer a question",
    responses=response_spec(PromptSummary | Delta | Restart | Done | Failure, media_type=EVENTS)
    | problem_specs(
        NotFound,
        TooLarge,
        Busy,
        NoAssistant,
        AssistantUnreachable,
        AssistantKeyRefused,
        ModelUnknown,
        AssistantBroke,
        AssistantBusy,
    ),
)
async def answer_route(request: Req, data: JSONBody[AnswerQuestion], state: State) -> Stream:
    """Events: first `context`, what went into the prompt, with the passages in its order; then `delta`s, the text as it
    comes; `restart` if the text so far was the model's reasoning and is to be discarded; last `done`, or `failed` with a code and words for a person. Closing the connection ends the answer. In an
    authoritative session for whose question nothing is found, the answer says so and no model is asked."""
    services: Services = state.services
    if not data.query.strip():
        raise BadRequest("There is no question.")
    question = Question(data.query, data.session_id, data.episode_id, data.system_prompt)
    answering = services.answers.begin(services.asker(request.user), question)
    try:
        first = await while_connected(request, answering.next())
    except BaseException:
        answering.end()
        raise
    events = _events(services, request.auth, answering, first)
    weakref.finalize(events, answering.end)  # also if the client is gone before the first event is asked for
    return event_stream(events)


async def _events(
    services: Services, token: Token, answering: AnswerStream, first: Event
) -> AsyncIterator[bytes]:
    try:
        yield _framed(first)
        while True:
            event = await _next(services, answering)
            if not is_valid(services, token):
                raise SignedOut("You were signed out. Sign in to ask again.")
            yield HEARTBEAT if event is None else _framed(event)
            if isinstance(event, Done):
                return
    except VademecumError as error:
        yield encode_event(msgspec.json.encode(Failure(error.code, error.message)), "failed")
    finally:
        answering.end()


async def _next(services: Services, answering: AnswerStream) -> Event | None:
    """None when there is none for so long that the connection needs a sign of life."""
    try:
        return await asyncio.wait_for(answering.next(), services.settings.heartbeat_s)
    except TimeoutError:
        return None


def _framed(event: Event) -> bytes:
    return encode_event(msgspec.json.encode(event), NAMES[type(event)])


ROUTES = [assistant_route, answer_route]
