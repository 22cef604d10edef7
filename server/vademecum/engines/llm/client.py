"""Send prompts to an endpoint: `POST {base}/chat/completions`, streamed.

No redirect is followed, and the environment's proxies are used only if the settings allow it. Either would receive the
question, the documents and the key.
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
    broken_off,
    by_status,
    empty,
    filtered,
    garbled,
    silent,
    too_slow,
    unknown_model,
    unreachable,
)
from vademecum.engines.llm.sse_parser import LINE_MAX, Lines, Piece, piece, whole
from vademecum.errors import AssistantBroke, VademecumError
from vademecum.model.chat.strip_reasoning import AnswerText

LISTING_MAX = 4 * 2**20
REFUSAL_MAX = 64 * 2**10
LIMIT, NEWER_LIMIT = "max_tokens", "max_completion_tokens"
JSON, HTML = "application/json", "text/html"
_EXPLAINED = (httpx.codes.BAD_REQUEST, httpx.codes.UNPROCESSABLE_ENTITY, httpx.codes.INTERNAL_SERVER_ERROR)
# Errors of the chat templates of Gemma, older Mistral models and others that accept no system message.
_NO_SYSTEM_ROLE = re.compile(
    rb"system (?:role|message|prompt)s?(?: is| are)? (?:not|un) ?support|only user and assistant roles|roles must alternate",
    re.I,
)


class AnswerBounds(msgspec.Struct, frozen=True):
    """The maximum seconds to connect, seconds without data, and characters of an answer."""

    connect_s: float
    silence_s: float
    characters: int


class _WantsNewerLimit(AssistantBroke):
    """The endpoint rejects the parameter LIMIT and asks for NEWER_LIMIT."""


class _NoSystemRole(AssistantBroke):
    """The model does not accept system messages."""


class _Listed(msgspec.Struct):
    id: str


class _Listing(msgspec.Struct):
    data: list[_Listed] | None = None


def _trusted(base: str, environment: bool) -> ssl.SSLContext:
    """Return the TLS context. Loading certificates takes 0.1 s, so a plain HTTP base skips it, unless a proxy of the
    environment may use TLS."""
    if base.startswith("http:") and not environment:
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # trusts no certificate
    return httpx.create_ssl_context(trust_env=environment)


class Endpoint:
    def __init__(
        self, base: str, model: str, key: str, bounds: AnswerBounds, *, environment: bool = False
    ) -> None:
        """Create a client. `base`: as `base_address` returns it. `environment`: use its proxies and certificates."""
        self.base = base
        self.model = model
        self._bounds = bounds
        headers = {"Accept-Encoding": "identity", "User-Agent": "vademecum"}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        self._client = httpx.AsyncClient(
            headers=headers,
            cookies=CookieJar(
                DefaultCookiePolicy(allowed_domains=[])
            ),  # cookies would link the requests of different users
            timeout=httpx.Timeout(bounds.silence_s, connect=bounds.connect_s),
            follow_redirects=False,
            trust_env=environment,
            verify=_trusted(base, environment),
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def whole(
        self, prompt: str, question: str, max_tokens: int, *, temperature: float, within_s: float
    ) -> str:
        """Return the complete reply, truncated at `max_tokens`. The request streams, to tell a slow model from a dead one.
        Raises AnswerTooSlow after `within_s` seconds, and the errors of `asked`."""
        try:
            async with (
                asyncio.timeout(within_s),
                self.asked(prompt, question, max_tokens, temperature) as pieces,
            ):
                texts: list[str] = []
                finish = None
                async for found in pieces:
                    if found.restarts:
                        texts.clear()
                    texts.append(found.text)
                    finish = found.finish
        except TimeoutError:
            raise too_slow(within_s) from None
        text = "".join(texts)
        if not text.strip():
            raise empty(finish, max_tokens)
        return text

    @asynccontextmanager
    async def asked(
        self, prompt: str, question: str, max_tokens: int, temperature: float | None = None
    ) -> AsyncIterator[AsyncIterator[Piece]]:
        """Yield an iterator over the answer's pieces once the answer starts. Leaving the context cancels the request. Raises
        AssistantError and AssistantBusy, on entry and during iteration. `temperature`: None means the model's default."""
        body = {
            "model": self.model,
            "messages": [{"role": "system", "content": prompt}, {"role": "user", "content": question}],
            "stream": True,
        }
        if temperature is not None:
            body["temperature"] = temperature
        async with AsyncExitStack() as stack:
            response = await self._begun(stack, body, max_tokens)
            kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind == HTML:
                raise garbled()
            yield self._shown(self._whole(response) if kind == JSON else self._streamed(response))

    async def check(self) -> None:
        """Check that the endpoint answers and has the model. Raises AssistantError."""
        try:
            async with asyncio.timeout(self._bounds.silence_s), self._opened("GET", "/models") as response:
                listing = await self._start_of(response, LISTING_MAX + 1)
        except TimeoutError:  # data arrived, but too slowly
            raise silent(self._bounds.silence_s) from None
        if len(listing) > LISTING_MAX:
            raise garbled()
        try:
            listed = msgspec.json.decode(listing, type=_Listing).data or []
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise garbled() from None
        # Ollama lists `llama3.2:latest` and answers to `llama3.2`.
        if not {self.model, f"{self.model}:latest"} & {one.id for one in listed}:
            raise unknown_model(self.model)

    async def _begun(self, stack: AsyncExitStack, body: Mapping[str, Any], max_tokens: int) -> httpx.Response:
        """Send the request. If the endpoint rejects the limit's name or system messages, retry with the newer name or with
        the system prompt in the user message. The outcome is not cached: an error text may quote the question, so one
        user's question could otherwise change the next user's request."""
        limit = LIMIT
        while True:
            opened = self._opened("POST", "/chat/completions", {**body, limit: max_tokens})
            try:
                return await stack.enter_async_context(opened)
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
    async def _opened(self, method: str, path: str, body: object = None) -> AsyncIterator[httpx.Response]:
        request = self._client.build_request(method, self.base + path, json=body)
        try:
            response = await self._client.send(request, stream=True)
        except httpx.ReadTimeout as error:
            raise silent(self._bounds.silence_s) from error
        except httpx.HTTPError as error:
            raise unreachable() from error
        try:
            if response.status_code != httpx.codes.OK:
                raise await self._refusal(response)
            yield response
        finally:
            await response.aclose()

    async def _refusal(self, response: httpx.Response) -> VademecumError:
        status = response.status_code
        refusal = by_status(status, self.model, response.headers.get("retry-after"))
        if status not in _EXPLAINED:
            return refusal
        said = await self._start_of(response, REFUSAL_MAX)
        if _NO_SYSTEM_ROLE.search(said):
            return _NoSystemRole(refusal.message)
        if status != httpx.codes.BAD_REQUEST:
            return refusal
        if b'"content_filter"' in said:  # Azure
            return filtered()
        return _WantsNewerLimit(refusal.message) if NEWER_LIMIT.encode() in said else refusal

    async def _start_of(self, response: httpx.Response, most: int) -> bytes:
        """Return the first `most` bytes of the body."""
        found = bytearray()
        async for data in self._bytes(response):
            found += data
            if len(found) >= most:
                break
        return bytes(found[:most])

    async def _bytes(self, response: httpx.Response) -> AsyncIterator[bytes]:
        try:
            async for data in response.aiter_raw():
                yield data
        except httpx.ReadTimeout as error:
            raise silent(self._bounds.silence_s) from error
        except httpx.HTTPError as error:
            raise broken_off() from error

    async def _whole(self, response: httpx.Response) -> AsyncIterator[Piece]:
        """Yield the answer of an endpoint that does not stream."""
        body = await self._start_of(response, LINE_MAX + 1)
        found = whole(body) if len(body) <= LINE_MAX else None
        if found is None:
            raise garbled()
        yield found

    async def _streamed(self, response: httpx.Response) -> AsyncIterator[Piece]:
        lines, is_answer = Lines(), False
        async for data in self._bytes(response):
            for line in lines.feed(data):
                if (found := piece(line)) is not None:
                    is_answer = True
                    yield found
        rest = piece(lines.rest())
        if rest is not None:
            yield rest
        elif not is_answer:
            raise garbled()

    async def _shown(self, pieces: AsyncIterator[Piece]) -> AsyncIterator[Piece]:
        """Yield the visible text; the last piece has `finish`. An answer over the character limit ends there with
        `finish` "length"."""
        shown = AnswerText()
        left = self._bounds.characters
        async for found in pieces:
            text = shown.feed(found.text) + (shown.end() if found.finish else "")
            restarts, shown.has_restarted = shown.has_restarted, False
            left = self._bounds.characters if restarts else left
            if len(text) > left:
                yield Piece(text[:left], "length", restarts)
                return
            left -= len(text)
            if text or found.finish or restarts:
                yield Piece(text, found.finish, restarts)
            if found.finish:
                return
        raise broken_off()
