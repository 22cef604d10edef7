"""A whole server in this event loop, with real engines, for tests of routes."""

from __future__ import annotations

import asyncio
import atexit
import os
import secrets
import shutil
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import duckdb
import httpx
from argon2 import PasswordHasher

from no_rate_limits import RATES
from property.rows import sync_path
from vademecum.app import create_app, serving
from vademecum.engines.duckdb import instance
from vademecum.engines.duckdb.account_store import _insert
from vademecum.model.records.accounts import Account, Token
from vademecum.model.schema.collections import Registry
from vademecum.services.accounts import sign_in
from vademecum.services.accounts.tokens import digest
from vademecum.services.runtime.clock import now_iso
from vademecum.services.runtime.composition import Services, open_services
from vademecum.services.runtime.ids import new_id
from vademecum.settings import Settings
from wait_until import soon

MODELS = Path(os.environ.get("VADEMECUM_TEST_MODELS", Path(__file__).parents[2] / ".cache" / "models"))
T = "2026-01-01T00:00:00.000Z"
# Hash passwords cheaply, to save time. The test of the real cost uses HASHER.
HASHER = sign_in._hasher
sign_in._hasher = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
sign_in._decoy = sign_in._unmatchable_hash()


class PooledInstance:
    """Lend an in-memory DuckDB instance to a test server, and reuse it after the server has closed it.

    Creating an instance costs more time than everything else that a test server does. `close` detaches all files
    and closes the server's connection, so the next server gets an instance without state.
    """

    idle: ClassVar[list[instance.Cursor]] = []

    def __init__(self) -> None:
        self._instance = self.idle.pop() if self.idle else CONNECT(":memory:")
        # This is faster, and no test of this server simulates a power failure.
        self._instance.execute("SET fsync_mode = 'NONE'")
        self._cursor = self._instance.cursor()
        self.cursor, self.execute = self._cursor.cursor, self._cursor.execute

    def close(self) -> None:
        self._cursor.close()
        try:
            attached = "SELECT database_name FROM duckdb_databases() WHERE path IS NOT NULL"
            for (name,) in self._instance.execute(attached).fetchall():
                self._instance.execute(f"DETACH {name}")
            self.idle.append(self._instance)
        except duckdb.Error:  # the test has broken the instance, so do not reuse it
            self._instance.close()


CONNECT = instance.connect
instance.connect = lambda path: PooledInstance() if path == ":memory:" else CONNECT(path)  # type: ignore[assignment, return-value]


@dataclass
class Person:
    """A user with an API token. `call` sends requests with that token."""

    id: str
    client: httpx.AsyncClient

    async def call(self, method: str, path: str, **more: Any) -> httpx.Response:
        return await self.client.request(method, path, **more)

    async def upload(self, name: str, data: bytes | str, session: str | None = "s1") -> httpx.Response:
        content = data.encode() if isinstance(data, str) else data
        form = {"sessionId": session} if session else {}
        return await self.call("POST", "/v1/documents", files={"file": (name, content)}, data=form)

    async def push(
        self, collection: str, *rows: dict[str, Any], assumed: dict[str, Any] | None = None
    ) -> Any:
        batch = [
            {"newDocumentState": row} | ({"assumedMasterState": assumed} if assumed else {}) for row in rows
        ]
        answer = await self.call("POST", f"{sync_path(collection)}/push", json=batch)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def add(self, collection: str, *rows: dict[str, Any]) -> None:
        """Push rows, and check that the server accepts all of them."""
        assert await self.push(collection, *rows) == []

    async def pull(self, collection: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        lwt = 0
        while True:
            page = (await self.call("GET", f"{sync_path(collection)}/pull?lwt={lwt}&limit=1000")).json()
            rows += page["documents"]
            lwt = page["checkpoint"]["lwt"]
            if len(page["documents"]) < 1000:
                return rows

    async def live(self, collection: str) -> dict[str, dict[str, Any]]:
        return {row["id"]: row for row in await self.pull(collection) if not row.get("_deleted")}

    async def search(self, query: str, session: str = "s1", **more: Any) -> Any:
        return (
            await self.call("POST", "/v1/search", json={"query": query, "sessionId": session, **more})
        ).json()


@dataclass
class Harness:
    services: Services
    app: Any

    async def person(self, tier: str = "JIGGA", account_id: str = "") -> Person:
        account = Account(account_id or new_id(), f"{secrets.token_hex(4)}@example.org", tier, False, None, T)  # type: ignore[arg-type]
        secret = secrets.token_urlsafe(32)
        token = Token(new_id(), account.id, "api", "test", digest(secret), T)
        accounts = self.services.accounts
        async with accounts._turn:  # one commit, because two take a quarter of the time of many tests
            await accounts._execute([_insert("accounts", account), _insert("tokens", token)])
            accounts._remember(account)
            accounts._remember_token(token)
        return Person(account.id, with_token(self, secret))

    async def drain_jobs(self, person: Person) -> None:
        """Wait until the person has no pending background jobs.

        Two kinds of jobs are not awaited: those of the language model, because a failed attempt waits long for the
        next one, and the daily retention.
        """
        for _ in range(5):
            for job in self.services.background_jobs.jobs.values():
                if job.name not in ("work", "retain"):
                    await job.drain(person.id)

    async def pull_all(self, person: Person) -> dict[str, list[dict[str, Any]]]:
        """Map each synced collection to all its rows, as a device of the person would pull them."""
        return {name: await person.pull(name) for name in self.services.registry.synced}

    def set_clock(self, clock: Callable[[], str]) -> None:
        """Replace the clock that tokens and sign-in use."""
        self.services.clock = self.services.tokens._clock = self.services.sign_in._clock = clock

    def time_rate_limits(self, clock: Callable[[], float]) -> None:
        """Reset all rate limits, and measure them with this monotonic clock."""
        self.services.rate_limiter.__init__(self.services.settings.rates, clock)  # type: ignore[misc]

    async def streams(self, count: int) -> None:
        """Wait until at least `count` streams are open."""
        await soon(lambda: self.services.hub.count() >= count)


# Maps the maximum body size to apps that no test server uses at the moment. Apps are reused because creating the routes
# takes most of the time of a test server. They keep no data of a server. Concurrent servers use different apps.
_idle: defaultdict[int, list[Any]] = defaultdict(list)


@cache
def _shared(name: str) -> Path:
    """Return a temporary folder that all test servers of this process share."""
    folder = Path(tempfile.mkdtemp(prefix=f"vademecum-{name}-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def small_model() -> Path:
    """Return a models folder with one model of random weights. Its vectors are valid but express no meaning."""
    from unit.engines.onnx.numpy_bert import write_source
    from vademecum.engines.onnx import download

    source = _shared("source")
    download.prepare_from_folder(write_source(source, "e5-small-v2"), source, _shared("models"))
    return _shared("models")


async def _first_start(data: Path) -> None:
    """Copy the databases that a first server start creates into a new data folder.

    The program creates these databases once per process, because creating them took half the time of a test server.
    A data folder that already contains a database or a folder stays unchanged.
    """
    empty = _shared("empty") / "begun"
    if not empty.exists():
        beginning = Path(tempfile.mkdtemp(dir=empty.parent))
        async with open_services(Settings(data=beginning, models=beginning / "no-models"), Registry()):
            pass
        with suppress(OSError):  # a concurrent server has already created the folder
            beginning.rename(empty)
    if not data.exists() or not any(path.suffix == ".duckdb" or path.is_dir() for path in data.iterdir()):
        data.mkdir(parents=True, exist_ok=True)
        for database in empty.glob("*.duckdb"):
            shutil.copyfile(database, data / database.name)


@asynccontextmanager
async def serve(
    data: Path,
    *,
    model: bool | Path = False,
    registry: Registry | None = None,
    migrations: Path | None = None,
    clock: Callable[[], str] = now_iso,
    **settings: Any,
) -> AsyncIterator[Harness]:
    """Run a whole server on the folder `data` until the block ends.

    `model`: True for the small model of random weights; a models folder such as MODELS for tests of meaning.
    """
    models = model if isinstance(model, Path) else small_model() if model else data / "no-models"
    configured = Settings(data=data, models=models, **{"erase_delay_s": 0.05, "rates": RATES, **settings})
    idle = _idle[configured.body_max] if registry is None else []
    app = idle.pop() if idle else create_app(configured, registry, migrations=migrations)
    if migrations is None:
        await _first_start(data)
    async with serving(app, configured, registry or Registry(), clock, migrations):
        yield Harness(app.state.services, app)
    idle.append(app)


def browser(h: Harness, address: str = "127.0.0.1", base_url: str = "http://test") -> httpx.AsyncClient:
    """Return a client that behaves like a browser at this address: it keeps cookies and sends no token."""
    transport = OwnTask(h.app, raise_app_exceptions=False, client=(address, 1))
    return httpx.AsyncClient(transport=transport, base_url=base_url, timeout=60)


def with_token(h: Harness, secret: str) -> httpx.AsyncClient:
    """Return a client on this machine that sends the API token `secret`."""
    client = browser(h)
    client.headers["Authorization"] = f"Bearer {secret}"
    return client


def reconnect(h: Harness, person: Person) -> Person:
    """Connect the person's client to the server `h`, and return the person."""
    person.client._transport.app = h.app  # type: ignore[attr-defined]
    return person


class OwnTask(httpx.ASGITransport):
    """Run each request in its own task, as a server does, so that its context variables end with the request."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return await asyncio.create_task(super().handle_async_request(request))


def check_problem(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """Check that the response is a problem with this status and code. Return its body."""
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), (
        answer.text
    )
    body: dict[str, Any] = answer.json()
    assert (body["status"], body["code"], body["error"]) == (status, code, True)
    assert body["detail"].strip(), "the problem has no explanation"
    return body


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(scenario())  # type: ignore[arg-type]


def run_for_one(data: Path, scenario: Callable[[Harness, Person], Awaitable[None]], **settings: Any) -> None:
    """Run the scenario on a test server with one user."""

    async def with_person() -> None:
        async with serve(data, **settings) as h:
            await scenario(h, await h.person())

    run(with_person)


def stop_index(indexer: Any) -> None:
    """Stop the indexer, so that the index does not change any more."""

    async def never(user_id: str) -> bool:
        return True  # reports that the index is up to date

    indexer._step = never
