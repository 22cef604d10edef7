"""The one place where the parts meet."""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import structlog
from litestar import Litestar
from litestar.config.app import AppConfig
from litestar.datastructures import State

from vademecum.engines.duckdb import migrate
from vademecum.engines.duckdb.accounts import Accounts
from vademecum.engines.duckdb.instance import Instance
from vademecum.engines.duckdb.userfile import Files
from vademecum.engines.duckdb.users import Users
from vademecum.http import sync
from vademecum.http.auth import Authentication
from vademecum.http.problems import HANDLERS
from vademecum.model.collections import Registry
from vademecum.services.follow import Hub
from vademecum.services.parts import Parts
from vademecum.settings import Settings

_log = structlog.get_logger("vademecum")


def now_iso() -> str:
    """ISO 8601, UTC, milliseconds."""
    seconds, millis = divmod(time.time_ns() // 1_000_000, 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{millis:03d}Z"


def migrations_folder() -> Path:
    """Inside the installed package, or at the top of a checkout."""
    packaged = Path(__file__).parent / "migrations"
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "migrations"


@asynccontextmanager
async def open_parts(
    settings: Settings,
    registry: Registry,
    clock: Callable[[], str] = now_iso,
    migrations: Path | None = None,
) -> AsyncIterator[Parts]:
    """Everything a server needs, opened in order and closed in reverse."""
    migrations = migrations or migrations_folder()
    settings.data.mkdir(parents=True, exist_ok=True)
    instance = Instance()
    hub = Hub(settings.stream_queue)
    try:
        accounts = Accounts.open(
            instance, settings.data / "accounts.duckdb", migrations / "accounts", migrations
        )
        loaded = migrate.load(migrations)
        template = settings.data / f".template-{loaded[-1].checksum[:12]}.duckdb"
        files = Files(instance, tuple(registry), loaded, template)
        users = Users(
            settings.data,
            files,
            registry,
            clock,
            hub.publish,
            lambda notice: _log.warning("log repaired", detail=notice),
            settings.attached_max,
        )
        users.sweep()
        yield Parts(settings, registry, instance, accounts, users, hub, clock)
        hub.close()
        await users.close()
    finally:
        instance.close()


def create_app(
    settings: Settings,
    registry: Registry | None = None,
    clock: Callable[[], str] = now_iso,
    migrations: Path | None = None,
) -> Litestar:
    """The ASGI application. `registry`: the collections it serves."""

    @asynccontextmanager
    async def lifespan(app: Litestar) -> AsyncIterator[None]:
        async with open_parts(settings, registry or Registry(), clock, migrations) as parts:
            app.state.parts = parts
            yield

    def configure(config: AppConfig) -> AppConfig:
        return config

    return Litestar(
        route_handlers=[*sync.ROUTES],
        lifespan=[lifespan],
        middleware=[Authentication],
        exception_handlers=HANDLERS,
        state=State(),
        request_max_body_size=settings.body_max,
        on_app_init=[configure],
    )
