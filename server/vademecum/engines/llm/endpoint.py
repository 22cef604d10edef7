"""Asking an endpoint: `POST {base}/chat/completions`, streamed.

Nobody else hears of it: no redirect is followed, and proxies of the environment are used only if the settings say so,
because they would read the question, the documents and the key.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx
import msgspec

from vademecum.engines.llm.pieces import Lines, Piece, piece
from vademecum.engines.llm.refusals import (
    broken_off,
    by_status,
    empty,
    garbled,
    silent,
    too_slow,
    unknown_model,
    unreachable,
)
from vademecum.errors import AssistantBroke, VademecumError
from vademecum.model.thinking import AnswerText

LISTING_MAX = 4 * 2**20
REFUSAL_MAX = 64 * 2**10
LIMIT, NEWER_LIMIT = "max_tokens", "max_completion_tokens"
STREAM = "text/event-stream"


class AnswerBounds(msgspec.Struct, frozen=True):
    """Seconds to connect, seconds of silence, and characters of an answer."""

    connect_s: float
    silence_s: float
    characters: int


class _WantsNewerLimit(AssistantBroke):
    """The endpoint refuses LIMIT and names NEWER_LIMIT."""


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
                text = "".join([piece.text async for piece in pieces])
        except TimeoutError:
            raise too_slow(within_s) from None
        if not text.strip():
            raise empty()
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
            if response.headers.get("content-type", "").partition(";")[0].strip().lower() != STREAM:
                raise garbled()
            yield self._pieces(response)

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

    async def _begun(
        self, stack: AsyncExitStack, body: Mapping[str, object], max_tokens: int
    ) -> httpx.Response:
        """Most endpoints know one name of the limit; some refuse it and want the newer one. Which it is, is not
        remembered: a refusal may repeat the question, and nobody's question may change what the next one is asked."""
        path = "/chat/completions"
        try:
            return await stack.enter_async_context(self._opened("POST", path, {**body, LIMIT: max_tokens}))
        except _WantsNewerLimit:
            newer = {**body, NEWER_LIMIT: max_tokens}
            return await stack.enter_async_context(self._opened("POST", path, newer))

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
        if status != httpx.codes.BAD_REQUEST:
            return refusal
        said = await self._start_of(response, REFUSAL_MAX)
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

    async def _pieces(self, response: httpx.Response) -> AsyncIterator[Piece]:
        """Text to show, the last piece with its `finish`. An answer over the bound ends there as one that is too long
        for the model does."""
        lines, shown = Lines(), AnswerText()
        left = self._bounds.characters
        async for data in self._bytes(response):
            for line in lines.feed(data):
                found = piece(line)
                if found is None:
                    continue
                text = shown.feed(found.text) + (shown.end() if found.finish else "")
                if len(text) > left:
                    yield Piece(text[:left], "length")
                    return
                left -= len(text)
                if text or found.finish:
                    yield Piece(text, found.finish)
                if found.finish:
                    return
        raise broken_off()
