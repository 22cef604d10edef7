"""Limit the size and the duration of request heads in uvicorn, because they arrive before the client is authenticated.

Without a limit, a header of 100 MB takes that much memory and blocks the server for seconds, because uvicorn copies the
whole header again for each chunk that arrives.
"""

from __future__ import annotations

import asyncio

import msgspec
from uvicorn._types import ASGISendEvent, HTTPResponseStartEvent
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

HEAD_MAX = 64 * 2**10  # in bytes; checked after each received chunk, so a slightly larger head may pass
# Time limit in seconds for a complete request head, from the opening of the connection or from the first byte of a later
# request.
HEAD_S = 60.0
BODY_IDLE_S = 60.0  # a connection is closed if no byte of a request body arrives for this many seconds
_UNCHANGED = "Nothing was changed."


def _send_unframed(cycle: RequestResponseCycle) -> None:
    """Send a response without Content-Length unchunked, and close the connection to mark its end.

    HTTP/1.0 has no chunked encoding (RFC 9112, 6.1).
    """
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
    """An HTTP protocol that limits heads, data outside of request bodies, and pauses within bodies."""

    _head_bytes = 0
    _received_bytes = 0  # bytes received since the connection was made
    _timeout: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start_head_timeout()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_timeout()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._head_bytes += len(data)
        self._received_bytes += len(data)
        super().data_received(data)
        if self._head_bytes > HEAD_MAX and not self.transport.is_closing():
            detail = f"The head of this request is longer than {HEAD_MAX:,} bytes. {_UNCHANGED}"
            self._send_problem(431, "Request Header Fields Too Large", "TOO_LARGE", detail)
        elif self._is_idle():
            self._start_head_timeout()

    def _is_idle(self) -> bool:
        """Return whether the connection is between two requests and no timeout is running.

        Received data leads to this state if it stops the keep-alive timeout but does not start a request. Such data is
        a blank line, or the rest of a request body whose response was sent early.
        """
        is_answered = self.cycle is None or self.cycle.response_complete
        return is_answered and self._timeout is None and self.timeout_keep_alive_task is None

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._start_head_timeout()

    def on_headers_complete(self) -> None:
        self._head_bytes = 0
        self._start_body_timeout(None)
        super().on_headers_complete()
        if self.scope["http_version"] == "1.0":
            _send_unframed(self.cycle)

    def on_body(self, body: bytes) -> None:
        self._head_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._cancel_timeout()
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        self._send_problem(400, "Bad Request", "BAD_REQUEST", f"{msg} {_UNCHANGED}")

    def _start_head_timeout(self) -> None:
        self._cancel_timeout()
        self._timeout = self.loop.call_later(HEAD_S, self._close)

    def _start_body_timeout(self, previous: int | None) -> None:
        """Close the connection if no byte has arrived since the previous call, else schedule the next call.

        `previous` is the number of received bytes at the previous call. It is None at the first call, and if reading
        was paused at the previous call, so that the client could not send.
        """
        received = None if self.flow.read_paused else self._received_bytes
        if previous is not None and previous == received:
            self._close()
            return
        self._cancel_timeout()
        self._timeout = self.loop.call_later(BODY_IDLE_S, self._start_body_timeout, received)

    def _cancel_timeout(self) -> None:
        if self._timeout is not None:
            self._timeout.cancel()
            self._timeout = None

    def _close(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()

    def _send_problem(self, status: int, title: str, code: str, detail: str) -> None:
        """Send problem details, unless another response is being sent, and close the connection."""
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
