"""Which requests wait for an answer: work behind the answers gives way to them (`services/runtime/request_priority`)."""

from typing import Any

from litestar.types import ASGIApp, Message, Receive, Scope, Send

from vademecum.services.runtime.request_priority import Foreground


def track_foreground(app: ASGIApp) -> ASGIApp:
    """Middleware. Nobody waits who still sends, however slowly, nor whose answer has begun: a stream may go on for days."""

    async def counted(scope: Scope, receive: Receive, send: Send) -> None:
        request = _Request(scope["litestar_app"].state.services.foreground)

        async def receive_and_see() -> Any:
            if not request.sends:  # what is left to hear of is that it goes away: it is worked on meanwhile
                return await receive()
            request.rest()
            try:
                message = await receive()
                request.sends = bool(message.get("more_body"))
                return message
            finally:
                request.wait()

        async def send_and_see(message: Message) -> None:
            if message["type"] == "http.response.start":
                request.end()
            await send(message)

        request.wait()
        try:
            await app(scope, receive_and_see, send_and_see)
        finally:
            request.end()

    return counted


class _Request:
    """Counted once at most, and never again once it has ended."""

    def __init__(self, foreground: Foreground) -> None:
        self._foreground = foreground
        self._waits = self._ended = False
        self.sends = True  # the whole of it has not been read yet

    def wait(self) -> None:
        if not self._waits and not self._ended:
            self._waits = True
            self._foreground.begin()

    def rest(self) -> None:
        if self._waits:
            self._waits = False
            self._foreground.end()

    def end(self) -> None:
        self._ended = True
        self.rest()
