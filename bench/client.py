"""The HTTP/1.1 client of the load generator. Its overhead is the same for all servers, and as small as Python allows.

Requests are complete byte strings that are built before the clock starts. Responses are stored as bytes and parsed
after the clock stops. A connection has one request in flight. A connection reset or a malformed response raises
`Broken`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import httptools

HOST = "127.0.0.1"


class Broken(Exception):
    """Raised if no complete response arrived: the connection was closed, or the response was not HTTP."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: dict[bytes, bytes]
    body: bytes

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300


def request(method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes = b"") -> bytes:
    """Return a complete request as bytes to write to the socket."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {HOST}", "Accept: application/json"]
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    elif method in ("POST", "PUT"):
        lines.append("Content-Length: 0")
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class Connection(asyncio.Protocol):
    """One keep-alive connection."""

    def __init__(self) -> None:
        self._transport: asyncio.WriteTransport | None = None
        self._waiting: asyncio.Future[Answer] | None = None
        self._headers: dict[bytes, bytes] = {}
        self._pieces: list[bytes] = []
        self._parser = httptools.HttpResponseParser(self)

    @classmethod
    async def open(cls, port: int) -> Connection:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(cls, HOST, port)
        return connection

    async def send(self, raw: bytes) -> Answer:
        """Send one request and return its response."""
        if self._transport is None or self._transport.is_closing():
            raise Broken("the server closed the connection")
        self._waiting = asyncio.get_running_loop().create_future()
        self._transport.write(raw)
        return await self._waiting

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # callbacks of asyncio.Protocol
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(f"not HTTP: {error!r}")
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._fail(f"connection lost: {exc!r}")

    def _fail(self, why: str) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(Broken(why))

    # callbacks of the HTTP parser
    def on_message_begin(self) -> None:
        self._headers, self._pieces = {}, []

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.lower()] = value

    def on_body(self, piece: bytes) -> None:
        self._pieces.append(piece)

    def on_message_complete(self) -> None:
        waiting, self._waiting = self._waiting, None
        answer = Answer(self._parser.get_status_code(), self._headers, b"".join(self._pieces))
        if not self._parser.should_keep_alive():
            self.close()
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)


class Stream(Connection):
    """A connection with an endless response. It reports when bytes that contain a given text arrive."""

    def __init__(self) -> None:
        super().__init__()
        self._needle = b""
        self._tail = b""
        self._found: asyncio.Future[float] | None = None
        self.opened: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def start(self, raw: bytes) -> None:
        assert self._transport is not None
        self._transport.write(raw)

    def expect(self, needle: bytes) -> asyncio.Future[float]:
        """Return a future that resolves to the time at which `needle` arrives."""
        self._needle, self._tail = needle, b""
        self._found = asyncio.get_running_loop().create_future()
        return self._found

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if not self.opened.done():
            self.opened.set_result(status)

    def on_body(self, piece: bytes) -> None:
        now = time.perf_counter()
        if self._found is None or self._found.done():
            return
        seen = self._tail + piece
        if self._needle in seen:
            self._found.set_result(now)
        self._tail = seen[-len(self._needle) :]

    def on_message_complete(self) -> None:
        self._fail("the stream ended")

    def _fail(self, why: str) -> None:
        for future in (self.opened, self._found):
            if future is not None and not future.done():
                future.set_exception(Broken(why))
                future.exception()  # mark as retrieved, because the workload may have ended and not await it
