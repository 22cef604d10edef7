"""Call the API from a command: through the running server or, without one, through the app in the command's process.

Only one process can open a DuckDB file. A server holds a lock on `<data>/.lock` and writes its address to
`<data>/server.json`. If the lock is free, an existing `server.json` is left over from a crash.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
import msgspec

from vademecum import __version__
from vademecum.cli.data_lock import LOCK_RETRY_S, LOCK_WAIT_S, try_lock
from vademecum.errors import Broken, VademecumError
from vademecum.services.accounts import local_auth
from vademecum.settings import Settings

T = TypeVar("T")
TIMEOUT_S = 600.0
BUSY_WAIT_S = 120.0  # maximum wait for a busy server


class OutdatedServer(Broken):
    """The running server has an older version than the command."""


class FolderInUse(Broken):
    """Another command is using the data folder, or its server is stopping. A later attempt may succeed."""


class AnswerObject(dict[str, Any]):
    """A JSON object that raises OutdatedServer for a missing field: the running server may have an older version."""

    def __init__(self, content: dict[str, Any], server_version: str) -> None:
        super().__init__((name, _wrap(value, server_version)) for name, value in content.items())
        self._server_version = server_version

    def __missing__(self, name: str) -> Any:
        raise OutdatedServer(
            f"The server's answer lacks `{name}`: its version is {self._server_version or 'unknown'}, this command's is "
            f"{__version__}. Restart the server to update it. Your request may have been carried out: check before you "
            "repeat it."
        )


def _wrap(value: Any, server_version: str) -> Any:
    if isinstance(value, dict):
        return AnswerObject(value, server_version)
    return [_wrap(item, server_version) for item in value] if isinstance(value, list) else value


class ApiClient:
    """A client of the API of an app with this `version`.

    A call acts as the user with the given email or, without an email, as the local administrator.
    """

    def __init__(self, client: httpx.AsyncClient, secret: str, version: str = __version__) -> None:
        self._client = client
        self._secret = secret
        self._version = version

    async def call(self, method: str, path: str, email: str = "", **options: Any) -> Any:
        """Return the decoded JSON answer. Raises VademecumError with the server's code and message."""
        headers = {"Authorization": f"Local {self._secret}"}
        if email:
            headers["X-Vademecum-User"] = quote(email)
        response = await self._send_with_retries(method, path, headers=headers, **options)
        body = msgspec.json.decode(response.content) if response.content else None
        if response.status_code >= 400:
            problem = body if isinstance(body, dict) else {}
            raise VademecumError(
                problem.get("detail", f"The server answered {response.status_code}."),
                code=problem.get("code", "ERROR"),
            )
        return _wrap(body, self._version)

    async def _send_with_retries(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Send a request. Repeat it for at most `BUSY_WAIT_S` while the server answers that it is busy (503)."""
        end = time.monotonic() + BUSY_WAIT_S
        while True:
            response = await self._client.request(method, path, **options)
            wait = response.headers.get("retry-after") if response.status_code == 503 else None
            if wait is None or time.monotonic() + int(wait) > end:
                return response
            await asyncio.sleep(int(wait))


@asynccontextmanager
async def open_api_client(settings: Settings) -> AsyncIterator[ApiClient]:
    with try_lock(settings.data) as is_locked:
        if is_locked:
            async with _own_app(settings) as client:
                yield client
            return
    running = local_auth.read(settings.data)
    if running is None:
        raise FolderInUse(f"Another command is using {settings.data}. Try again when it is done.")
    # Local commands do not verify the certificate, because it names the public host, not the address used here.
    # `trust_env` is off, so that no proxy sees the secret.
    options = {"base_url": running.url, "timeout": TIMEOUT_S, "verify": False, "trust_env": False}
    async with httpx.AsyncClient(**options) as client:  # type: ignore[arg-type]
        try:
            yield ApiClient(client, running.secret, running.version)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise FolderInUse(
                f"No server answers at {running.url}: it is stopping, or it ended and another command uses the folder. Try "
                "again in a moment."
            ) from error
        except httpx.TransportError as error:
            raise Broken(
                f"The connection to {running.url} was lost. Your request may have been carried out: check before you repeat "
                "it."
            ) from error


@asynccontextmanager
async def _own_app(settings: Settings) -> AsyncIterator[ApiClient]:
    from vademecum.app import create_app
    from vademecum.services.runtime import logging as logs

    logs.configure(logging.CRITICAL)  # log nothing, because a command prints only its own output
    app = create_app(settings, run_llm_jobs=False)
    async with app.lifespan():
        transport = httpx.ASGITransport(app)  # type: ignore[arg-type]
        async with httpx.AsyncClient(
            transport=transport, base_url="http://localhost", timeout=TIMEOUT_S
        ) as client:
            yield ApiClient(client, app.state.services.local_secret)


async def use_client(settings: Settings, work: Callable[[ApiClient], Awaitable[T]]) -> T:
    """Run `work` with a client and return its result. Raises VademecumError."""
    try:
        async with open_api_client(settings) as client:
            return await work(client)
    except BaseExceptionGroup as group:  # the app's lifespan is a task group, which wraps errors
        error = single_vademecum_error(group)
        if error is None:
            raise
        raise error from None


async def use_client_in_turn(settings: Settings, work: Callable[[ApiClient], Awaitable[T]]) -> T:
    """Run `work` as `use_client` does, but wait up to `LOCK_WAIT_S` while the folder is in use.

    Several agents can thus use the folder in turn.
    """
    end = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            return await use_client(settings, work)
        except FolderInUse:
            if time.monotonic() > end:
                raise
            await asyncio.sleep(LOCK_RETRY_S)


def run_with_client(settings: Settings, work: Callable[[ApiClient], Awaitable[T]], wait: bool = False) -> T:
    """Run `work` from synchronous code. If `wait` is true, wait for the folder as `use_client_in_turn` does."""
    try:
        return asyncio.run((use_client_in_turn if wait else use_client)(settings, work))
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def single_vademecum_error(error: BaseException) -> VademecumError | None:
    """Unwrap groups that contain only one error. Return that error if it is a VademecumError, else None."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error if isinstance(error, VademecumError) else None
