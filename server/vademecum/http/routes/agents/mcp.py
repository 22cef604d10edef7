"""Serve the MCP tools at `/mcp` over streamable HTTP, with an API token. `/mcp?project=NAME` names the agent's project.

Requests are stateless: the server answers each by calling its own API in-process with the request's credential. So no
session can be stolen, or lost when the server restarts. Without sessions there is no stream to open: only POST is allowed.
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
from vademecum.services.agents.mcp.tools import ApiCall, Workspace

if TYPE_CHECKING:
    import httpx
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from starlette.requests import Request

    from vademecum.services.agents.mcp.server import Caller, Context

BODY_MAX = 1 << 20
RETRY_S = 5
DETAIL_MAX = 500

_log = structlog.get_logger("vademecum.mcp")


class McpGateway:
    """Answer the requests to `/mcp` by calling the API of `app`.

    Importing the MCP library takes a second, so this module imports it, and httpx, at the first request.
    """

    def __init__(self, app: Litestar) -> None:
        self._app = app
        self._is_needed = asyncio.Event()
        self._manager: asyncio.Future[StreamableHTTPSessionManager] = asyncio.Future()

    async def run(self) -> None:
        """Run the MCP session manager until cancelled.

        If it fails to start, the waiting callers get an error, and the next request starts it again.
        """
        while True:
            await self._is_needed.wait()
            try:
                manager = await asyncio.to_thread(_open, self._app)
                async with manager.run():
                    self._manager.set_result(manager)
                    await asyncio.Future()
            except Exception as error:
                _log.error("starting MCP failed", exc_info=error)
                self._fail()

    def _fail(self) -> None:
        self._is_needed.clear()
        failed, self._manager = self._manager, asyncio.Future()
        if not failed.done():
            message = "The server cannot answer agents at the moment; its log says why. Nothing was changed."
            failed.set_exception(Busy(message, retry_after_s=RETRY_S))
            failed.exception()  # mark the exception as retrieved, or asyncio logs it if no caller is waiting

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._is_needed.set()
        manager = await asyncio.shield(self._manager)
        await manager.handle_request(scope, receive, send)  # type: ignore[arg-type]


def _open(app: Litestar) -> "StreamableHTTPSessionManager":
    import httpx
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from vademecum.services.agents.mcp.server import create_server

    async def call_app(scope: Scope, receive: Receive, send: Send) -> None:
        await app(cast("Scope", {**scope, ALREADY_COUNTED: True}), receive, send)

    client = httpx.AsyncClient(transport=httpx.ASGITransport(call_app), base_url="http://localhost")  # type: ignore[arg-type]

    async def resolve_caller(context: "Context", _: Workspace | None) -> "Caller":
        request = cast("Request", context.request)
        credential = request.headers.get("authorization", "")
        # A cookie is not enough, because browsers also add cookies to requests from other sites.
        if not credential:
            raise SignedOut("Agents need an API token. `vademecum token create EMAIL` creates one.")
        project = request.query_params.get("project")
        return _api_call(client, credential), Workspace(project) if project else None

    return StreamableHTTPSessionManager(
        create_server(resolve_caller), json_response=True, stateless=True, max_request_body_size=BODY_MAX
    )


def _api_call(client: "httpx.AsyncClient", credential: str) -> ApiCall:
    async def call(method: str, path: str, **options: Any) -> Json:
        response = await client.request(method, path, headers={"authorization": credential}, **options)
        body: Json = msgspec.json.decode(response.content) if response.content else {}
        if response.status_code >= 400:
            raise VademecumError(body["detail"], code=body["code"])
        return body

    return call


@asynccontextmanager
async def run_mcp(app: Litestar) -> AsyncIterator[None]:
    """Run the gateway of `app` in the background until the context exits."""
    app.state.mcp_gateway = gateway = McpGateway(app)
    running = asyncio.create_task(gateway.run())
    try:
        yield
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@asgi("/mcp", is_mount=True, copy_scope=True)
async def mcp_route(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer an MCP request. Middleware has authenticated it already."""
    # The library would keep the stream of a GET open permanently, even after its token is revoked.
    if scope.get("method") != "POST":
        raise MethodNotAllowedException("Use POST for MCP requests.", headers={"Allow": "POST"})
    gateway: McpGateway = scope["litestar_app"].state.mcp_gateway
    await gateway.handle(scope, receive, _with_problems(send))


def _with_problems(send: Send) -> Send:
    """Wrap `send` to replace the MCP library's error responses (JSON-RPC or plain text) with problem details.

    So the route reports errors in the same format as all other routes.
    """
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
                for event in _create_problem(start, body):
                    await send(event)

    return send_problem


def _create_problem(start: Any, body: bytes) -> tuple[Any, Any]:
    status = start["status"]
    code = CODES.get(status, "ERROR")
    content = msgspec.json.encode(Problem(HTTPStatus(status).phrase, _detail(body), status, code))
    replaced_headers = (b"content-type", b"content-length")
    headers = [header for header in start["headers"] if header[0].lower() not in replaced_headers]
    headers += [(b"content-type", MEDIA_TYPE.encode()), (b"content-length", str(len(content)).encode())]
    return {**start, "headers": headers}, {"type": "http.response.body", "body": content}


def _detail(body: bytes) -> str:
    """Return the message of an error response in JSON-RPC or plain text."""
    try:
        return str(msgspec.json.decode(body)["error"]["message"])
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError):
        return body.decode(errors="replace")[:DETAIL_MAX] or "This request cannot be answered."


ROUTES = [mcp_route]
