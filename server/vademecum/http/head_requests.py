"""HEAD wherever GET works: the same answer without its body (RFC 9110, 9.3.2)."""

from typing import Any

from litestar.types import ASGIApp, HTTPScope, Message, Receive, Send

HEAD = "vademecum.head"  # in the scope of a GET that stands for a HEAD


async def answer_head(app: ASGIApp, scope: HTTPScope, receive: Receive, send: Send) -> None:
    """Answer a HEAD request by the GET route. An answer that streams is cut off after its headers."""
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
    """Ranges are defined for GET alone."""
    headers = [
        (name, value) for name, value in scope["headers"] if name.lower() not in (b"range", b"if-range")
    ]
    get: Any = {**scope, "method": "GET", "headers": headers, HEAD: True}
    return get  # type: ignore[no-any-return]
