"""`/mcp`: the tools by streamable HTTP, for an API token; `/mcp?project=NAME` says where the agent works.

A request stands alone: it is answered by this process's own API with the credential it came with, so that there is no
session to steal and nothing to lose when the server restarts. So there is nothing to follow by a stream either: all
but POST is refused.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

import msgspec
import structlog
from litestar import Litestar, asgi
from litestar.exceptions import MethodNotAllowedException
from litestar.types import Receive, Scope, Send

from vademecum.errors import Busy, SignedOut, VademecumError
from vademecum.http.problem_details import CODES, MEDIA_TYPE, Problem
from vademecum.http.rate_limits import ALREADY_COUNTED
from vademecum.model.schema.collections import Json
from vademecum.services.agents.mcp.tools import Call, Workplace

if TYPE_CHECKING:
    import httpx
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from starlette.requests import Request

    from vademecum.services.agents.mcp.server import Context

BODY_MAX = 1 << 20
RETRY_S = 5
DETAIL_MAX = 500

_log = structlog.get_logger("vademecum.mcp")


class McpGateway:
    """Answers the requests of `/mcp` by calls of `app`. The protocol's library takes a second to load: it is loaded when
    the first agent asks, and httpx with it."""

    def __init__(self, app: Litestar) -> None:
        self._app = app
        self._asked = asyncio.Event()
        self._manager: asyncio.Future[StreamableHTTPSessionManager] = asyncio.Future()

    async def run(self) -> None:
        """Run until cancelled. A failure is reported to the waiting callers, and the next caller tries again."""
        while True:
            await self._asked.wait()
            try:
                manager = await asyncio.to_thread(_open, self._app)
                async with manager.run():
                    self._manager.set_result(manager)
                    await asyncio.Future()
            except Exception as error:
                _log.error("agents cannot be answered", exc_info=error)
                self._fail()

    def _fail(self) -> None:
        self._asked.clear()
        failed, self._manager = self._manager, asyncio.Future()
        if not failed.done():
            said = "The server cannot answer agents just now; its log says why. Nothing was changed."
            failed.set_exception(Busy(said, retry_after_s=RETRY_S))
            failed.exception()  # who asked may have gone

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._asked.set()
        manager = await asyncio.shield(self._manager)
        await manager.handle_request(scope, receive, send)  # type: ignore[arg-type]


def _open(app: Litestar) -> "StreamableHTTPSessionManager":
    import httpx
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from vademecum.services.agents.mcp.server import serve

    async def counted(scope: Scope, receive: Receive, send: Send) -> None:
        await app(cast("Scope", {**scope, ALREADY_COUNTED: True}), receive, send)

    own = httpx.AsyncClient(transport=httpx.ASGITransport(counted), base_url="http://localhost")  # type: ignore[arg-type]

    async def who(context: "Context", _: Workplace | None) -> tuple[Call, Workplace | None]:
        request = cast("Request", context.request)
        credential = request.headers.get("authorization", "")
        if not credential:  # a browser's cookie goes along with what other sites ask
            raise SignedOut("Agents come with an API token: `vademecum token create EMAIL` makes one.")
        project = request.query_params.get("project")
        return _call(own, credential), Workplace(project) if project else None

    return StreamableHTTPSessionManager(
        serve(who), json_response=True, stateless=True, max_request_body_size=BODY_MAX
    )


def _call(own: "httpx.AsyncClient", credential: str) -> Call:
    async def call(method: str, path: str, **more: Any) -> Json:
        answer = await own.request(method, path, headers={"authorization": credential}, **more)
        body: Json = msgspec.json.decode(answer.content) if answer.content else {}
        if answer.status_code >= 400:
            raise VademecumError(body["detail"], code=body["code"])
        return body

    return call


@asynccontextmanager
async def run_mcp(app: Litestar) -> AsyncIterator[None]:
    """While the server runs."""
    app.state.agents = agents = McpGateway(app)
    running = asyncio.create_task(agents.run())
    try:
        yield
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@asgi("/mcp", is_mount=True, copy_scope=True)
async def mcp_route(scope: Scope, receive: Receive, send: Send) -> None:
    """Who asks has been found to be somebody by now."""
    if (
        scope.get("method") != "POST"
    ):  # the library would hold a GET open for ever, whoever's token is revoked
        raise MethodNotAllowedException("Agents ask by POST.", headers={"Allow": "POST"})
    agents: McpGateway = scope["litestar_app"].state.agents
    await agents.handle(scope, receive, _with_problems(send))


def _with_problems(send: Send) -> Send:
    """Replace the protocol library's own refusals (JSON-RPC errors or plain text) by problems, as of every route."""
    start: Any = None
    body = b""

    async def send_problem(message: Any) -> None:
        nonlocal start, body
        if message["type"] == "http.response.start" and message["status"] >= 400:
            start = message
        elif start is None:
            await send(message)
        else:
            body += message.get("body", b"")
            if not message.get("more_body"):
                for part in _problem_of(start, body):
                    await send(part)

    return send_problem


def _problem_of(start: Any, body: bytes) -> tuple[Any, Any]:
    status = start["status"]
    code = CODES.get(status, "ERROR")
    content = msgspec.json.encode(Problem(HTTPStatus(status).phrase, _detail(body), status, code))
    replaced = (b"content-type", b"content-length")
    headers = [header for header in start["headers"] if header[0].lower() not in replaced]
    headers += [(b"content-type", MEDIA_TYPE.encode()), (b"content-length", str(len(content)).encode())]
    return {**start, "headers": headers}, {"type": "http.response.body", "body": content}


def _detail(body: bytes) -> str:
    """The words of a JSON-RPC error, or of a plain one."""
    try:
        return str(msgspec.json.decode(body)["error"]["message"])
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError):
        return body.decode(errors="replace")[:DETAIL_MAX] or "This request cannot be answered."


ROUTES = [mcp_route]
