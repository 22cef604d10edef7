"""The one place where the parts meet."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import structlog
from litestar import Litestar
from litestar.datastructures import State

from vademecum.engines.duckdb import migrate
from vademecum.engines.duckdb.accounts import Accounts
from vademecum.engines.duckdb.instance import Instance
from vademecum.engines.duckdb.userfile import Files
from vademecum.engines.duckdb.users import Users
from vademecum.http import accounts as account_routes
from vademecum.http import context, deletion, documents, models, operations, search, sync
from vademecum.http import local as local_routes
from vademecum.http import reembed as reembed_routes
from vademecum.http.auth import Authentication, renew_cookie
from vademecum.http.headers import protect
from vademecum.http.openapi import openapi_config, page_files
from vademecum.http.pages import page_routes
from vademecum.http.problems import HANDLERS
from vademecum.model.collections import Registry
from vademecum.services import local, reembed
from vademecum.services.accounts import finish_leaving
from vademecum.services.backstage import Backstage
from vademecum.services.checkpoint import checkpointing
from vademecum.services.context import Contexts
from vademecum.services.embed import EmbedJob
from vademecum.services.erase import Eraser
from vademecum.services.follow import Bounds, Hub
from vademecum.services.index import Indexer, Indexes
from vademecum.services.jobs import Job
from vademecum.services.models import Inference
from vademecum.services.parts import Parts
from vademecum.services.places import Places
from vademecum.services.progress import Teller
from vademecum.services.rates import Limiter
from vademecum.services.reembed import Reembedding
from vademecum.services.search import Searcher
from vademecum.services.sign_in import forgetting_expired
from vademecum.settings import Settings

_log = structlog.get_logger("vademecum")
INDEX_DELAY_S = 1.0  # so that a device's many pushes are indexed in one go; a search does not wait for it


def now_iso() -> str:
    """ISO 8601, UTC, milliseconds."""
    seconds, millis = divmod(time.time_ns() // 1_000_000, 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{millis:03d}Z"


def say_repaired(notice: str) -> None:
    """Somebody's log was damaged and cut: an operator must hear of it."""
    _log.warning("log repaired", detail=notice)


def migrations_folder() -> Path:
    """Inside the installed package, or at the top of a checkout."""
    packaged = Path(__file__).parent / "migrations"
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "migrations"


def open_users(
    settings: Settings,
    files: Files,
    registry: Registry,
    knows: Callable[[str], bool],
    clock: Callable[[], str],
    backstage: Backstage,
) -> Users:
    """All users' files, without what a crash left half-made."""
    told = backstage.on_commit, say_repaired
    users = Users(settings.data, files, registry, knows, clock, *told, settings.attached_max)
    users.sweep()
    return users


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
    async with AsyncExitStack() as stack:
        stack.callback(instance.close)
        records = migrate.load(migrations)
        path = settings.data / "accounts.duckdb"
        accounts = Accounts.open(instance, path, migrations / "accounts", migrations, say_repaired)

        def knows(user_id: str) -> bool:
            return user_id in accounts.accounts

        plan, behind, swapping = reembed.resume(settings)
        before = settings.models_folder / plan.before if plan is not None else None
        inference = Inference(settings, before, filter(knows, behind), filter(knows, swapping))
        stack.push_async_callback(inference.close)
        hub = Hub(Bounds(settings.streams_max, settings.stream_queue, settings.stream_queue_bytes))
        backstage = Backstage(hub, inference, settings.tidy_delay_s)
        template = settings.data / f".template-{records[-1].checksum[:12]}.duckdb"
        files = Files(instance, tuple(registry), records, template)
        files.prepare()
        users = open_users(settings, files, registry, knows, clock, backstage)
        stack.push_async_callback(users.close)
        indexes = Indexes(settings.data, settings.index_cache_bytes, inference, knows)
        stack.push_async_callback(indexes.close)
        indexer = Indexer(users, indexes)
        reembedding = Reembedding(settings, plan, users, inference, indexer, backstage.ask)
        eraser = Eraser(settings.data, users, indexes, indexer, reembedding.prune)
        jobs = settings.data / "jobs"
        index_job = backstage.add(Job("index", jobs, indexer.work, delay_s=INDEX_DELAY_S, parallel=2))
        embedding = EmbedJob(users, inference, Teller(hub), lambda user_id: backstage.ask("embed", user_id))
        backstage.add(Job("embed", jobs, embedding.work, parallel=2))
        backstage.add(Job("reembed", jobs, reembedding.work))
        backstage.add(Job("erase", jobs, eraser.work, delay_s=settings.erase_delay_s))
        backstage.start(settings.data)
        stack.push_async_callback(backstage.close)
        await reembedding.start()
        await stack.enter_async_context(checkpointing(users))
        searcher = Searcher(users, indexes, indexer, index_job, inference, settings.search_wait_s)
        stack.callback(hub.close)
        yield Parts(
            settings=settings,
            registry=registry,
            instance=instance,
            accounts=accounts,
            users=users,
            hub=hub,
            inference=inference,
            indexes=indexes,
            indexer=indexer,
            backstage=backstage,
            eraser=eraser,
            reembedding=reembedding,
            searcher=searcher,
            contexts=Contexts(users, searcher, inference),
            local_secret=local.new_secret(),
            limiter=Limiter(settings.rates, time.monotonic),
            places=Places(),
            clock=clock,
        )


def create_app(
    settings: Settings,
    registry: Registry | None = None,
    clock: Callable[[], str] = now_iso,
    migrations: Path | None = None,
) -> Litestar:
    """The ASGI application. `registry`: the collections it serves."""
    served = registry or Registry()

    @asynccontextmanager
    async def lifespan(app: Litestar) -> AsyncIterator[None]:
        async with open_parts(settings, served, clock, migrations) as parts:
            app.state.parts = parts
            await finish_leaving(parts)
            anew = asyncio.create_task(
                parts.backstage.begin_anew(settings.data, list(parts.accounts.accounts))
            )
            async with forgetting_expired(parts):
                yield
            anew.cancel()
            await asyncio.gather(anew, return_exceptions=True)

    return Litestar(
        route_handlers=[
            *sync.ROUTES,
            *documents.ROUTES,
            *search.ROUTES,
            *context.ROUTES,
            *models.ROUTES,
            *deletion.ROUTES,
            *account_routes.ROUTES,
            *operations.ROUTES,
            *reembed_routes.ROUTES,
            *local_routes.ROUTES,
            *page_files(),
            *page_routes(),
        ],
        lifespan=[lifespan],
        middleware=[Authentication],
        before_send=[renew_cookie, protect],
        exception_handlers=HANDLERS,
        logging_config=None,
        openapi_config=openapi_config(served),
        state=State(),
        request_max_body_size=settings.body_max,
    )
