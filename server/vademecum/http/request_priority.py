"""Count the requests that are waiting for a response, so that background work yields to them."""

from typing import Any

from litestar.types import ASGIApp, Message, Receive, Scope, Send

from vademecum.services.runtime.request_priority import RequestPriority


def track_waiting_requests(app: ASGIApp) -> ASGIApp:
    """Wrap `app` in middleware that counts the waiting requests.

    A request is not counted while the client still sends the body, nor after its response has begun: a stream can last
    for days.
    """

    async def tracked(scope: Scope, receive: Receive, send: Send) -> None:
        request = _Request(scope["litestar_app"].state.services.request_priority)

        async def receive_tracked() -> Any:
            if not request.is_sending:  # only a disconnect can follow, so keep counting the request
                return await receive()
            request.pause()
            try:
                message = await receive()
                request.is_sending = bool(message.get("more_body"))
                return message
            finally:
                request.wait()

        async def send_tracked(message: Message) -> None:
            if message["type"] == "http.response.start":
                request.end()
            await send(message)

        request.wait()
        try:
            await app(scope, receive_tracked, send_tracked)
        finally:
            request.end()

    return tracked


class _Request:
    """A request that is counted at most once, and not after its response has begun or it has ended."""

    def __init__(self, request_priority: RequestPriority) -> None:
        self._request_priority = request_priority
        self._is_counted = self._has_ended = False
        self.is_sending = True  # until the body has been received completely

    def wait(self) -> None:
        if not self._is_counted and not self._has_ended:
            self._is_counted = True
            self._request_priority.begin_request()

    def pause(self) -> None:
        if self._is_counted:
            self._is_counted = False
            self._request_priority.end_request()

    def end(self) -> None:
        self._has_ended = True
        self.pause()
