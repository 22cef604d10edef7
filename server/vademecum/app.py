"""The application: its routes, and its life around the services that `services/runtime/composition` opens. It alone sees all layers."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from litestar import Litestar
from litestar.datastructures import State
from litestar.plugins import PluginProtocol
from litestar.plugins.core import MsgspecDIPlugin

from vademecum.errors import VademecumError
from vademecum.http.auth import Authentication, renew_cookie
from vademecum.http.head_requests import answer_head
from vademecum.http.openapi.routes import openapi_config, swagger_files
from vademecum.http.parameters import DEPENDENCIES, reject_compressed
from vademecum.http.problem_details import HANDLERS
from vademecum.http.request_priority import track_foreground
from vademecum.http.routes import answer, documents, models, prompt_context, search, sync
from vademecum.http.routes import llm_jobs as job_routes
from vademecum.http.routes import model_change as reembed_routes
from vademecum.http.routes.accounts import accounts as account_routes
from vademecum.http.routes.accounts import my_data
from vademecum.http.routes.agents import agents, mcp, observations
from vademecum.http.routes.memory import (
    entities,
    episodes,
    memories,
    projects,
    recall,
    sessions,
    summaries,
    summarize,
)
from vademecum.http.routes.operations import health_metrics
from vademecum.http.routes.operations import local_admin as local_routes
from vademecum.http.routes.operations.static_app import app_routes
from vademecum.http.security_headers import add_security_headers
from vademecum.model.schema.collections import Registry
from vademecum.services.accounts.accounts import finish_leaving
from vademecum.services.accounts.tokens import forgetting_expired
from vademecum.services.runtime.clock import now_iso
from vademecum.services.runtime.composition import open_services
from vademecum.services.runtime.concurrency_limits import share_threads
from vademecum.services.runtime.container import Services
from vademecum.settings import Settings


class App(Litestar):
    """Litestar without its plugins for pydantic and attrs: loading pydantic is a third of what it takes to be made."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["method"] == "HEAD":
            await answer_head(super().__call__, scope, receive, send)
        else:
            await super().__call__(scope, receive, send)

    @staticmethod
    def _get_default_plugins(plugins: list[PluginProtocol]) -> list[PluginProtocol]:
        return [*plugins, MsgspecDIPlugin()]


@asynccontextmanager
async def _opened(app: Litestar, opening: AbstractAsyncContextManager[Services]) -> AsyncIterator[Services]:
    """Why they cannot be opened is kept for whoever starts the server: the frameworks around it log where, not why."""
    try:
        async with opening as services:
            yield services
    except VademecumError as error:
        app.state.refusal = error.message
        raise


@asynccontextmanager
async def serving(
    app: Litestar,
    settings: Settings,
    registry: Registry,
    clock: Callable[[], str] = now_iso,
    migrations: Path | None = None,
    *,
    works: bool = True,
) -> AsyncIterator[None]:
    """The life of the application: its services are open for as long as the block runs."""
    share_threads()
    async with _opened(app, open_services(settings, registry, clock, migrations, works)) as services:
        app.state.services = services
        await finish_leaving(services)
        accounts = services.accounts.accounts
        tasks = [
            asyncio.create_task(
                services.background_jobs.start_new_model(settings.data, services.users, list(accounts))
            )
        ]
        if works:  # a command ends in a moment
            tasks.append(
                asyncio.create_task(services.model_change.use_first_installed(lambda: list(accounts)))
            )
        async with services.spool.running(), forgetting_expired(services), mcp.run_mcp(app):
            yield
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def create_app(
    settings: Settings,
    registry: Registry | None = None,
    clock: Callable[[], str] = now_iso,
    migrations: Path | None = None,
    *,
    works: bool = True,
) -> Litestar:
    """The ASGI application. `registry`: the collections it serves. `works`: does it ask a language model for the jobs that
    are due? What ends in a moment leaves them to a server: each question that it cuts off is paid for and counts."""
    served = registry or Registry()
    return App(
        route_handlers=[  # in the order of the API's document
            *sync.ROUTES,
            *documents.ROUTES,
            *search.ROUTES,
            *recall.ROUTES,
            *prompt_context.ROUTES,
            *answer.ROUTES,
            *job_routes.ROUTES,
            *summarize.ROUTES,
            *models.ROUTES,
            sessions.delete_by_id_route,
            projects.delete_route,
            *my_data.ROUTES,
            projects.export_route,
            *projects.ROUTES,
            *sessions.ROUTES,
            *episodes.ROUTES,
            *entities.ROUTES,
            *summaries.ROUTES,
            *memories.ROUTES,
            *agents.ROUTES,
            projects.merge_route,
            *observations.ROUTES,
            *account_routes.ROUTES,
            *health_metrics.ROUTES,
            *reembed_routes.ROUTES,
            *local_routes.ROUTES,
            *mcp.ROUTES,
            *swagger_files(),
            *app_routes(),
        ],
        dependencies=DEPENDENCIES,
        lifespan=[lambda app: serving(app, settings, served, clock, migrations, works=works)],
        middleware=[Authentication, track_foreground],
        before_request=reject_compressed,
        before_send=[renew_cookie, add_security_headers],
        exception_handlers=HANDLERS,
        logging_config=None,
        openapi_config=openapi_config(served),
        state=State(),
        request_max_body_size=settings.body_max,
    )
