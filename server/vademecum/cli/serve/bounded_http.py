"""HTTP as uvicorn speaks it, with a bound to what strangers make the server hold: the head of a request is read before
anybody can ask who sends it.

Without one, a header of a hundred megabytes costs as much memory, and the server's time for seconds: it is put together
again with each piece that arrives.
"""

from __future__ import annotations

import asyncio

import msgspec
from uvicorn._types import ASGISendEvent, HTTPResponseStartEvent
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

HEAD_MAX = 64 * 2**10  # bytes; what comes in one piece is read whole, so that a little more may pass
HEAD_S = 60.0  # from a connection, or the first byte of its next request, to the end of the head
SILENT_S = 60.0  # a body of which nothing comes from one look to the next is not waited for
_NOTHING = "Nothing was changed."


def _send_unframed(cycle: RequestResponseCycle) -> None:
    """HTTP/1.0 knows no chunks: an answer without a length ends with the connection (RFC 9112, 6.1)."""
    send = cycle.send
    is_unframed = False

    async def send_unframed(message: ASGISendEvent) -> None:
        nonlocal is_unframed
        if message["type"] == "http.response.start" and not _has_length(message):
            cycle.chunked_encoding, is_unframed = False, True
        elif message["type"] == "http.response.body" and is_unframed:
            cycle.expected_content_length = len(message.get("body", b""))
        await send(message)

    cycle.send = send_unframed  # type: ignore[method-assign]


def _has_length(message: HTTPResponseStartEvent) -> bool:
    return any(name.lower() == b"content-length" for name, _ in message.get("headers", ()))


class BoundedProtocol(HttpToolsProtocol):
    """What is no part of a body counts: the head, and what may follow a body in pieces."""

    _held = 0
    _heard = 0  # bytes, since the connection was made
    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_wait()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._held += len(data)
        self._heard += len(data)
        super().data_received(data)
        if self._held > HEAD_MAX and not self.transport.is_closing():
            said = f"The head of this request is longer than {HEAD_MAX:,} bytes. {_NOTHING}"
            self._refuse(431, "Request Header Fields Too Large", "TOO_LARGE", said)
        elif self._is_idle():
            self._wait_for_head()

    def _is_idle(self) -> bool:
        """Does nobody wait for anything? What came ended the wait for the next request, and was none: a blank line, or what
        is left of a body that was answered before it had come."""
        is_answered = self.cycle is None or self.cycle.response_complete
        return is_answered and self._late is None and self.timeout_keep_alive_task is None

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._wait_for_head()

    def on_headers_complete(self) -> None:
        self._held = 0
        self._wait_for_body(None)
        super().on_headers_complete()
        if self.scope["http_version"] == "1.0":
            _send_unframed(self.cycle)

    def on_body(self, body: bytes) -> None:
        self._held = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._end_wait()
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, "Bad Request", "BAD_REQUEST", f"{msg} {_NOTHING}")

    def _wait_for_head(self) -> None:
        self._end_wait()
        self._late = self.loop.call_later(HEAD_S, self._close)

    def _wait_for_body(self, heard: int | None) -> None:
        """`heard`: what it was at the last look; None after one at which nothing was read, since what is there already has
        not been taken."""
        before = None if self.flow.read_paused else self._heard
        if heard is not None and heard == before:
            self._close()
            return
        self._end_wait()
        self._late = self.loop.call_later(SILENT_S, self._wait_for_body, before)

    def _end_wait(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _close(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()

    def _refuse(self, status: int, title: str, code: str, detail: str) -> None:
        """A problem, like every refusal; but nothing in the middle of another answer."""
        if self.cycle is None or self.cycle.response_complete:
            body = msgspec.json.encode(
                {
                    "title": title,
                    "detail": detail,
                    "status": status,
                    "code": code,
                    "error": True,
                    "type": "about:blank",
                }
            )
            head = (
                f"HTTP/1.1 {status} {title}\r\ncontent-type: application/problem+json\r\n"
                f"content-length: {len(body)}\r\nx-content-type-options: nosniff\r\ncache-control: no-store\r\n"
                "connection: close\r\n\r\n"
            )
            self.transport.write(head.encode() + body)
        self._close()
