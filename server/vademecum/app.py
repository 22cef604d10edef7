"""Create the ASGI application, whose lifespan starts and stops the services. Only this module imports all layers."""

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
from vademecum.http.parameters import DEPENDENCIES, Req, reject_compressed
from vademecum.http.problem_details import HANDLERS
from vademecum.http.request_priority import track_waiting_requests
from vademecum.http.routes import (
    answer,
    documents,
    llm_jobs,
    model_change,
    models,
    prompt_context,
    search,
    sync,
)
from vademecum.http.routes.accounts import accounts, my_data
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
from vademecum.http.routes.operations import health_metrics, local_admin
from vademecum.http.routes.operations.static_app import app_routes
from vademecum.http.security_headers import add_security_headers
from vademecum.model.schema.collections import Registry
from vademecum.services.runtime.clock import now_iso
from vademecum.services.runtime.composition import Services, open_services
from vademecum.services.runtime.concurrency_limits import share_threads
from vademecum.settings import Settings


class App(Litestar):
    """Litestar with support for HEAD, and without its plugins for pydantic and attrs.

    Importing pydantic would take a third of the start time.
    """

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["method"] == "HEAD":
            await answer_head(super().__call__, scope, receive, send)
        else:
            await super().__call__(scope, receive, send)

    @staticmethod
    def _get_default_plugins(plugins: list[PluginProtocol]) -> list[PluginProtocol]:
        return [*plugins, MsgspecDIPlugin()]


@asynccontextmanager
async def _keep_startup_error(
    app: Litestar, opening: AbstractAsyncContextManager[Services]
) -> AsyncIterator[Services]:
    """Store the message of a startup error in `app.state` for `serve`, because uvicorn logs only a traceback."""
    try:
        async with opening as services:
            yield services
    except VademecumError as error:
        app.state.startup_error = error.message
        raise


@asynccontextmanager
async def serving(
    app: Litestar,
    settings: Settings,
    registry: Registry,
    clock: Callable[[], str] = now_iso,
    migrations: Path | None = None,
    *,
    run_llm_jobs: bool = True,
) -> AsyncIterator[None]:
    """Start the services of the application, and stop them when the block ends."""
    share_threads()
    opening = open_services(settings, registry, clock, migrations, run_llm_jobs=run_llm_jobs)
    async with _keep_startup_error(app, opening) as services:
        app.state.services = services
        await services.account_deletion.resume()
        accounts = services.accounts.accounts
        tasks = [
            asyncio.create_task(
                services.background_jobs.start_new_model(settings.data, services.users, list(accounts))
            )
        ]
        if run_llm_jobs:  # a short-lived command would end before a model change completes
            tasks.append(
                asyncio.create_task(services.model_change.use_first_installed(lambda: list(accounts)))
            )
        async with services.spool.running(), services.tokens.purging_expired(), mcp.run_mcp(app):
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
    run_llm_jobs: bool = True,
) -> Litestar:
    """Create the ASGI application.

    `registry`: the collections to serve. `run_llm_jobs`: false for a short-lived command, whose end would interrupt
    requests to the language model that are already paid for and counted.
    """
    served = registry or Registry()
    return App(
        route_handlers=[  # in the order of the OpenAPI document
            *sync.ROUTES,
            *documents.ROUTES,
            *search.ROUTES,
            *recall.ROUTES,
            *prompt_context.ROUTES,
            *answer.ROUTES,
            *llm_jobs.ROUTES,
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
            *accounts.ROUTES,
            *health_metrics.ROUTES,
            *model_change.ROUTES,
            *local_admin.ROUTES,
            *mcp.ROUTES,
            *swagger_files(),
            *app_routes(),
        ],
        dependencies=DEPENDENCIES,
        lifespan=[lambda app: serving(app, settings, served, clock, migrations, run_llm_jobs=run_llm_jobs)],
        middleware=[Authentication, track_waiting_requests],
        before_request=reject_compressed,
        before_send=[renew_cookie, add_security_headers],
        exception_handlers=HANDLERS,
        logging_config=None,
        openapi_config=openapi_config(served),
        request_class=Req,
        state=State(),
        request_max_body_size=settings.body_max,
    )
