"""Stream answers of the assistant. The assistant's address and API key never leave the server."""

import asyncio
import weakref
from collections.abc import AsyncIterator

import msgspec
from litestar import get, post
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
from vademecum.model.schema.collections import Id
from vademecum.services.chat.answer import AnswerStream, Delta, Done, Event, PromptSummary, Restart
from vademecum.services.chat.prompt_context import Question
from vademecum.services.sync.stream import encode_event

NAMES: dict[type[Event], str] = {PromptSummary: "context", Delta: "delta", Restart: "restart", Done: "done"}


class AnswerQuestion(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """A question to answer. `episodeId` is its turn, and the prompt contains only earlier turns of the session."""

    query: QueryText
    session_id: str
    episode_id: Id | None = None
    system_prompt: str = ""


class Assistant(msgspec.Struct):
    """States whether an assistant is configured, and its model."""

    available: bool
    model: str | None


class Failure(msgspec.Struct):
    code: str
    message: str


@get("/v1/assistant", operation_id="getAssistant", tags=["assistant"], summary="Get the assistant")
async def assistant_route(request: Req) -> Assistant:
    """Return the language model of the server, if one is configured. The server does not check whether the model can be
    reached."""
    endpoint = request.services.answers.endpoint
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
async def answer_route(request: Req, data: JSONBody[AnswerQuestion]) -> Stream:
    """Stream the answer to a turn as events. The first event, `context`, has a summary of the prompt and its passages in
    order. `delta` events contain pieces of the text. `restart` means that the text so far was the model's reasoning: discard
    it. The last event is `done`, or `failed` with a code and a message for people. Closing the connection cancels the
    answer. If an authoritative session has no passage for the question, the answer says so without a request to the
    model."""
    if not data.query.strip():
        raise BadRequest("`query` is empty. Send a question.")
    question = Question(data.query, data.session_id, data.episode_id, data.system_prompt)
    answering = request.services.answers.begin(request.services.requester(request.user), question)
    try:
        first = await while_connected(request, answering.next())
    except BaseException:
        answering.end()
        raise
    events = _events(request, answering, first)
    weakref.finalize(events, answering.end)  # needed if the client disconnects before the first event is read
    return event_stream(events)


async def _events(request: Req, answering: AnswerStream, first: Event) -> AsyncIterator[bytes]:
    try:
        yield _framed(first)
        while True:
            event = await _next(request, answering)
            if not request.services.tokens.is_valid(request.auth):
                raise SignedOut("You were signed out. Sign in and ask again.")
            yield HEARTBEAT if event is None else _framed(event)
            if isinstance(event, Done):
                return
    except VademecumError as error:
        yield encode_event(msgspec.json.encode(Failure(error.code, error.message)), "failed")
    finally:
        answering.end()


async def _next(request: Req, answering: AnswerStream) -> Event | None:
    """Return the next event, or None if a heartbeat is due first."""
    try:
        return await asyncio.wait_for(answering.next(), request.services.settings.heartbeat_s)
    except TimeoutError:
        return None


def _framed(event: Event) -> bytes:
    return encode_event(msgspec.json.encode(event), NAMES[type(event)])


ROUTES = [assistant_route, answer_route]
