"""Send prompts to an endpoint: `POST {base}/chat/completions`, streamed.

No redirect is followed, and the environment's proxies are used only if the settings allow it. A redirect's target or
a proxy would receive the question, the documents and the key.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import httpx
import msgspec

from vademecum.engines.llm.errors import (
    content_filter_error,
    empty_answer_error,
    interrupted_error,
    invalid_reply_error,
    silence_error,
    status_error,
    timeout_error,
    unknown_model_error,
    unreachable_error,
)
from vademecum.engines.llm.sse_parser import LINE_MAX, AnswerPiece, LineBuffer, parse_json_answer, parse_line
from vademecum.errors import AssistantBroke, VademecumError
from vademecum.fair_queue import FairSlots, current_user
from vademecum.model.chat.strip_reasoning import AnswerText

MODEL_LIST_MAX = 4 * 2**20  # in bytes
ERROR_BODY_MAX = 64 * 2**10  # in bytes
LIMIT, NEWER_LIMIT = "max_tokens", "max_completion_tokens"
JSON, HTML = "application/json", "text/html"
_STATUSES_WITH_DETAILS = (
    httpx.codes.BAD_REQUEST,
    httpx.codes.UNPROCESSABLE_ENTITY,
    httpx.codes.INTERNAL_SERVER_ERROR,
)
# Errors of the chat templates of Gemma, older Mistral models and others that accept no system message.
_NO_SYSTEM_ROLE = re.compile(
    rb"system (?:role|message|prompt)s?(?: is| are)? (?:not|un) ?support|only user and assistant roles|roles must alternate",
    re.I,
)


class AnswerBounds(msgspec.Struct, frozen=True):
    """Maximum values: seconds to connect, seconds without data, and characters of an answer."""

    connect_s: float
    silence_s: float
    characters: int


class _WantsNewerLimit(AssistantBroke):
    """The endpoint rejects the parameter LIMIT and asks for NEWER_LIMIT."""


class _NoSystemRole(AssistantBroke):
    """The model does not accept system messages."""


class _ListedModel(msgspec.Struct):
    id: str


class _ModelList(msgspec.Struct):
    data: list[_ListedModel] | None = None


def _create_tls_context(base: str, environment: bool) -> ssl.SSLContext:
    """Return the TLS context.

    Loading certificates takes 0.1 s. Loading is skipped if the base URL is plain HTTP, unless a proxy of the
    environment may use TLS.
    """
    if base.startswith("http:") and not environment:
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # without certificates, because no connection uses TLS
    return httpx.create_ssl_context(trust_env=environment)


class Endpoint:
    def __init__(
        self,
        base: str,
        model: str,
        key: str,
        bounds: AnswerBounds,
        *,
        environment: bool = False,
        slots: FairSlots | None = None,
    ) -> None:
        """Create a client. `base` is an address as `base_address` returns it.

        If `environment` is true, the proxies and certificates of the environment are used. A prompt waits for one of the
        `slots` before it is sent.
        """
        self.base = base
        self.model = model
        self._bounds = bounds
        self._slots = slots
        headers = {"Accept-Encoding": "identity", "User-Agent": "vademecum"}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        self._client = httpx.AsyncClient(
            headers=headers,
            # Accept no cookies, because they would link the requests of different users.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            timeout=httpx.Timeout(bounds.silence_s, connect=bounds.connect_s),
            follow_redirects=False,
            trust_env=environment,
            verify=_create_tls_context(base, environment),
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def answer(
        self, prompt: str, question: str, max_tokens: int, *, temperature: float, within_s: float
    ) -> str:
        """Return the complete reply, truncated at `max_tokens`.

        The request streams, to distinguish a slow model from a dead one. Raises AnswerTooSlow after `within_s` seconds,
        and the errors of `stream_answer`.
        """
        try:
            async with (
                asyncio.timeout(within_s),
                self.stream_answer(prompt, question, max_tokens, temperature) as pieces,
            ):
                texts: list[str] = []
                finish = None
                async for piece in pieces:
                    if piece.restarts:
                        texts.clear()
                    texts.append(piece.text)
                    finish = piece.finish
        except TimeoutError:
            raise timeout_error(within_s) from None
        text = "".join(texts)
        if not text.strip():
            raise empty_answer_error(finish, max_tokens)
        return text

    @asynccontextmanager
    async def stream_answer(
        self, prompt: str, question: str, max_tokens: int, temperature: float | None = None
    ) -> AsyncIterator[AsyncIterator[AnswerPiece]]:
        """Yield an iterator over the answer's pieces once the answer starts. Leaving the context cancels the request.

        If `temperature` is None, the model's default applies. Raises AssistantError and AssistantBusy, on entry and
        during iteration.
        """
        body = {
            "model": self.model,
            "messages": [{"role": "system", "content": prompt}, {"role": "user", "content": question}],
            "stream": True,
        }
        if temperature is not None:
            body["temperature"] = temperature
        async with AsyncExitStack() as stack:
            if self._slots is not None:
                await stack.enter_async_context(self._slots.hold(current_user.get()))
            response = await self._start(stack, body, max_tokens)
            kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind == HTML:
                raise invalid_reply_error()
            yield self._visible_pieces(
                self._parse_json(response) if kind == JSON else self._parse_stream(response)
            )

    async def check(self) -> None:
        """Check that the endpoint answers and has the model. Raises AssistantError."""
        try:
            async with asyncio.timeout(self._bounds.silence_s), self._open("GET", "/models") as response:
                body = await self._read_beginning(response, MODEL_LIST_MAX + 1)
        except TimeoutError:  # data arrived, but too slowly
            raise silence_error(self._bounds.silence_s) from None
        if len(body) > MODEL_LIST_MAX:
            raise invalid_reply_error()
        try:
            models = msgspec.json.decode(body, type=_ModelList).data or []
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise invalid_reply_error() from None
        # Ollama lists `llama3.2:latest` but also accepts `llama3.2`.
        if not {self.model, f"{self.model}:latest"} & {model.id for model in models}:
            raise unknown_model_error(self.model)

    async def _start(self, stack: AsyncExitStack, body: Mapping[str, Any], max_tokens: int) -> httpx.Response:
        """Send the request and return the response.

        If the endpoint rejects the name of the token limit or system messages, retry with the newer name or with the
        system prompt in the user message. The outcome is not cached: an error text may quote the question, so one
        user's question could otherwise change the next user's request.
        """
        limit = LIMIT
        while True:
            request = self._open("POST", "/chat/completions", {**body, limit: max_tokens})
            try:
                return await stack.enter_async_context(request)
            except _WantsNewerLimit:
                if limit == NEWER_LIMIT:
                    raise
                limit = NEWER_LIMIT
            except _NoSystemRole:
                if len(body["messages"]) == 1:
                    raise
                text = "\n\n".join(message["content"] for message in body["messages"])
                body = {**body, "messages": [{"role": "user", "content": text}]}

    @asynccontextmanager
    async def _open(self, method: str, path: str, body: object = None) -> AsyncIterator[httpx.Response]:
        request = self._client.build_request(method, self.base + path, json=body)
        try:
            response = await self._client.send(request, stream=True)
        except httpx.ReadTimeout as error:
            raise silence_error(self._bounds.silence_s) from error
        except httpx.HTTPError as error:
            raise unreachable_error() from error
        try:
            if response.status_code != httpx.codes.OK:
                raise await self._read_error(response)
            yield response
        finally:
            await response.aclose()

    async def _read_error(self, response: httpx.Response) -> VademecumError:
        status = response.status_code
        error = status_error(status, self.model, response.headers.get("retry-after"))
        if status not in _STATUSES_WITH_DETAILS:
            return error
        details = await self._read_beginning(response, ERROR_BODY_MAX)
        if _NO_SYSTEM_ROLE.search(details):
            return _NoSystemRole(error.message)
        if status != httpx.codes.BAD_REQUEST:
            return error
        if b'"content_filter"' in details:  # as Azure reports it
            return content_filter_error()
        return _WantsNewerLimit(error.message) if NEWER_LIMIT.encode() in details else error

    async def _read_beginning(self, response: httpx.Response, max_bytes: int) -> bytes:
        """Return the first `max_bytes` bytes of the body."""
        body = bytearray()
        async for data in self._read_bytes(response):
            body += data
            if len(body) >= max_bytes:
                break
        return bytes(body[:max_bytes])

    async def _read_bytes(self, response: httpx.Response) -> AsyncIterator[bytes]:
        try:
            async for data in response.aiter_raw():
                yield data
        except httpx.ReadTimeout as error:
            raise silence_error(self._bounds.silence_s) from error
        except httpx.HTTPError as error:
            raise interrupted_error() from error

    async def _parse_json(self, response: httpx.Response) -> AsyncIterator[AnswerPiece]:
        """Yield the answer of an endpoint that does not stream."""
        body = await self._read_beginning(response, LINE_MAX + 1)
        piece = parse_json_answer(body) if len(body) <= LINE_MAX else None
        if piece is None:
            raise invalid_reply_error()
        yield piece

    async def _parse_stream(self, response: httpx.Response) -> AsyncIterator[AnswerPiece]:
        lines, is_answer = LineBuffer(), False
        async for data in self._read_bytes(response):
            for line in lines.feed(data):
                if (piece := parse_line(line)) is not None:
                    is_answer = True
                    yield piece
        last = parse_line(lines.flush())
        if last is not None:
            yield last
        elif not is_answer:
            raise invalid_reply_error()

    async def _visible_pieces(self, pieces: AsyncIterator[AnswerPiece]) -> AsyncIterator[AnswerPiece]:
        """Yield the visible text. The last piece has `finish`.

        An answer that exceeds the character limit is truncated there, with "length" as its `finish`.
        """
        visible = AnswerText()
        remaining = self._bounds.characters
        async for piece in pieces:
            text = visible.feed(piece.text) + (visible.end() if piece.finish else "")
            restarts, visible.has_restarted = visible.has_restarted, False
            remaining = self._bounds.characters if restarts else remaining
            if len(text) > remaining:
                yield AnswerPiece(text[:remaining], "length", restarts)
                return
            remaining -= len(text)
            if text or piece.finish or restarts:
                yield AnswerPiece(text, piece.finish, restarts)
            if piece.finish:
                return
        raise interrupted_error()
