"""Asking an endpoint: `POST {base}/chat/completions`, streamed.

Nobody else hears of it: no redirect is followed, and proxies of the environment are used only if the settings say so,
because they would read the question, the documents and the key.
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
    """Seconds to connect, seconds of silence, and characters of an answer."""

    connect_s: float
    silence_s: float
    characters: int


class _WantsNewerLimit(AssistantBroke):
    """The endpoint refuses LIMIT and names NEWER_LIMIT."""


class _NoSystemRole(AssistantBroke):
    """The model takes no system message."""


class _Listed(msgspec.Struct):
    id: str


class _Listing(msgspec.Struct):
    data: list[_Listed] | None = None


def _trusted(base: str, environment: bool) -> ssl.SSLContext:
    """Whose certificates are believed. To read them takes a tenth of a second, which a model on this machine need not
    wait for; but a proxy may be spoken to by TLS."""
    if base.startswith("http:") and not environment:
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # nobody's
    return httpx.create_ssl_context(trust_env=environment)


class Endpoint:
    def __init__(
        self, base: str, model: str, key: str, bounds: AnswerBounds, *, environment: bool = False
    ) -> None:
        """`base` as of `base_address`. `environment`: believe its proxies and certificates."""
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
            ),  # they would tie one person to another
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
        """The whole reply, which may have been cut off at its bound. Streamed all the same: so a model that is slow is told
        from one that is gone. Raises as `asked`."""
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
        """The pieces of the answer, once the endpoint has begun one. Leaving takes the question back. Raises
        AssistantError and AssistantBusy, in here and while the pieces come. `temperature`: None leaves it to the model."""
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
        """Raises AssistantError when the endpoint does not answer, or does not have the model."""
        try:
            async with asyncio.timeout(self._bounds.silence_s), self._opened("GET", "/models") as response:
                listing = await self._start_of(response, LISTING_MAX + 1)
        except TimeoutError:  # it dripped
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
        """Ask again with the newer name of the limit, or with the system prompt in the user's message, if the endpoint
        refuses these. The outcome is not remembered: a refusal may repeat the question, and one user's question must not
        change how the next one is asked."""
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
        """Of its body, `most` bytes or all."""
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
        """Yield the text to show, the last piece with its `finish`. An answer over the bound ends there as one that is too
        long for the model does."""
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
