"""Support HEAD for every GET route: the same response without a body (RFC 9110, 9.3.2)."""

from typing import Any

from litestar.types import ASGIApp, HTTPScope, Message, Receive, Send

HEAD = "vademecum.head"  # scope key that marks a GET as the answer to a HEAD request


async def answer_head(app: ASGIApp, scope: HTTPScope, receive: Receive, send: Send) -> None:
    """Respond to a HEAD request with the headers of the GET route. A streamed response is cancelled after its headers."""
    is_answered = False

    async def receive_until_answered() -> Any:
        return {"type": "http.disconnect"} if is_answered else await receive()

    async def send_headers(message: Message) -> None:
        nonlocal is_answered
        if is_answered:
            return
        await send(message)
        if message["type"] == "http.response.start":
            is_answered = True
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    await app(_as_get(scope), receive_until_answered, send_headers)


def _as_get(scope: HTTPScope) -> HTTPScope:
    """Return the scope of the corresponding GET without Range headers, which do not apply to HEAD."""
    headers = [
        (name, value) for name, value in scope["headers"] if name.lower() not in (b"range", b"if-range")
    ]
    get: Any = {**scope, "method": "GET", "headers": headers, HEAD: True}
    return get  # type: ignore[no-any-return]
