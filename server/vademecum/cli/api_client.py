"""How a command reaches the data: through the running server, or, if there is none, through the same app in here.

A DuckDB file admits one process. Whoever serves a folder holds a lock on `<data>/.lock` and says in
`<data>/server.json` where it listens; a lock that is free means that the file is a leftover of a crash.
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
BUSY_WAIT_S = 120.0  # with a server that says that it is busy


class OutdatedServer(Broken):
    """The server is older than the command."""


class FolderInUse(Broken):
    """For a moment: another command has the folder, or its server is stopping."""


class Answer(dict[str, Any]):
    """An object of an answer. What is not in it, the server does not know of yet: it runs since before an upgrade."""

    def __init__(self, content: dict[str, Any], server: str) -> None:
        super().__init__((name, _answer(value, server)) for name, value in content.items())
        self._server = server

    def __missing__(self, name: str) -> Any:
        raise OutdatedServer(
            f"The server does not say `{name}`: it is version {self._server or 'unknown, an old one'}, this command "
            f"{__version__}. Stop the server and start it anew, as it is installed now. What was asked of it may be done: "
            "look, before you try again."
        )


def _answer(value: Any, server: str) -> Any:
    if isinstance(value, dict):
        return Answer(value, server)
    return [_answer(one, server) for one in value] if isinstance(value, list) else value


class ApiClient:
    """Calls against the app of this `version`, as a user (`email`) or as the administrator of this machine."""

    def __init__(self, client: httpx.AsyncClient, secret: str, version: str = __version__) -> None:
        self._client = client
        self._secret = secret
        self._version = version

    async def call(self, method: str, path: str, email: str = "", **more: Any) -> Any:
        """The decoded JSON answer. Raises VademecumError with the server's own words."""
        headers = {"Authorization": f"Local {self._secret}"}
        if email:
            headers["X-Vademecum-User"] = quote(email)
        answer = await self._patiently(method, path, headers=headers, **more)
        body = msgspec.json.decode(answer.content) if answer.content else None
        if answer.status_code >= 400:
            words = body if isinstance(body, dict) else {}
            raise VademecumError(
                words.get("detail", f"The server answered {answer.status_code}."),
                code=words.get("code", "ERROR"),
            )
        return _answer(body, self._version)

    async def _patiently(self, method: str, path: str, **more: Any) -> httpx.Response:
        """The answer; of a server that is busy, the one it gives when it is not, or after `PATIENCE_S`."""
        end = time.monotonic() + BUSY_WAIT_S
        while True:
            answer = await self._client.request(method, path, **more)
            wait = answer.headers.get("retry-after") if answer.status_code == 503 else None
            if wait is None or time.monotonic() + int(wait) > end:
                return answer
            await asyncio.sleep(int(wait))


@asynccontextmanager
async def open_api_client(settings: Settings) -> AsyncIterator[ApiClient]:
    with try_lock(settings.data) as mine:
        if mine:
            async with _own_app(settings) as client:
                yield client
            return
    running = local_auth.read(settings.data)
    if running is None:
        raise FolderInUse(f"Another command is using {settings.data}. Try again when it is done.")
    # Our own machine: its certificate names another host, and no proxy has business with the secret.
    here = {"base_url": running.url, "timeout": TIMEOUT_S, "verify": False, "trust_env": False}
    async with httpx.AsyncClient(**here) as client:  # type: ignore[arg-type]
        try:
            yield ApiClient(client, running.secret, running.version)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise FolderInUse(
                f"Nothing answers at {running.url}: the server is stopping, or has ended and another command uses the folder. "
                "Try again in a moment."
            ) from error
        except httpx.TransportError as error:
            raise Broken(
                f"The connection to {running.url} was lost. Look whether it was done, before you try again."
            ) from error


@asynccontextmanager
async def _own_app(settings: Settings) -> AsyncIterator[ApiClient]:
    from vademecum.app import create_app
    from vademecum.services.runtime import logging as logs

    logs.configure(logging.CRITICAL)  # a command says its own answer and nothing else
    app = create_app(settings, works=False)
    async with app.lifespan():
        transport = httpx.ASGITransport(app)  # type: ignore[arg-type]
        async with httpx.AsyncClient(
            transport=transport, base_url="http://localhost", timeout=TIMEOUT_S
        ) as client:
            yield ApiClient(client, app.state.services.local_secret)


async def use_client(settings: Settings, work: Callable[[ApiClient], Awaitable[T]]) -> T:
    """What `work` answers, given a desk. Raises VademecumError."""
    try:
        async with open_api_client(settings) as client:
            return await work(client)
    except BaseExceptionGroup as group:  # the app's life is a task group, which wraps what is raised within
        refusal = single_vademecum_error(group)
        if refusal is None:
            raise
        raise refusal from None


async def use_client_in_turn(settings: Settings, work: Callable[[ApiClient], Awaitable[T]]) -> T:
    """`ask`, when whoever has the folder for a moment is done: of what agents ask at the same time, all is answered."""
    end = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            return await use_client(settings, work)
        except FolderInUse:
            if time.monotonic() > end:
                raise
            await asyncio.sleep(LOCK_RETRY_S)


def run_with_client(settings: Settings, work: Callable[[ApiClient], Awaitable[T]], wait: bool = False) -> T:
    """`ask`, from a command. `wait`: for its turn."""
    try:
        return asyncio.run((use_client_in_turn if wait else use_client)(settings, work))
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def single_vademecum_error(error: BaseException) -> VademecumError | None:
    """Our own error, if that is what the groups around it hold."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error if isinstance(error, VademecumError) else None
