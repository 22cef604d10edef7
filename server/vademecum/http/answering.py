"""Which requests wait for an answer: work behind the answers gives way to them (`services/foreground`)."""

from litestar.types import ASGIApp, Message, Receive, Scope, Send

from vademecum.services.parts import Parts


def answering(app: ASGIApp) -> ASGIApp:
    """Middleware. A request waits until its answer begins: a stream may go on for days."""

    async def counted(scope: Scope, receive: Receive, send: Send) -> None:
        parts: Parts = scope["litestar_app"].state.parts
        waits = True
        parts.foreground.begin()

        def end() -> None:
            nonlocal waits
            if waits:
                waits = False
                parts.foreground.end()

        async def send_and_see(message: Message) -> None:
            if message["type"] == "http.response.start":
                end()
            await send(message)

        try:
            await app(scope, receive, send_and_see)
        finally:
            end()

    return counted
