"""Is it alive, is it ready, what does it do: for whoever runs the server."""

import asyncio
import tempfile
from hmac import compare_digest
from typing import Any

import msgspec
from litestar import Request, Response, get
from litestar.datastructures import State
from litestar.openapi.datastructures import ResponseSpec

from vademecum.errors import Busy, Forbidden
from vademecum.http.auth import authenticate
from vademecum.http.openapi.routes import PUBLIC
from vademecum.services.runtime.container import Services

PROBE_BYTES = 2**20
READY_S = 7.0  # for each of the two checks, so that an answer takes less than 15 s


class Health(msgspec.Struct):
    alive: bool = True


class Readiness(msgspec.Struct):
    """`model`: the one in use, or null: then search is by words only. `fenced`: how many accounts are refused because
    their records are damaged; the server is ready for all others."""

    ready: bool
    store: str
    index: str
    model: str | None
    fenced: int = 0


@get(
    "/health",
    opt={"public": True},
    security=PUBLIC,
    operation_id="getHealth",
    tags=["operations"],
    summary="Is the server alive?",
)
async def health_route() -> Health:
    """Answers as long as the process runs. Asks nothing of its services."""
    return Health()


@get(
    "/ready",
    opt={"public": True},
    security=PUBLIC,
    operation_id="getReadiness",
    tags=["operations"],
    summary="Can the server do its work?",
    responses={503: ResponseSpec(Readiness, False, "Not ready; the part that fails says so")},
)
async def ready_route(state: State) -> Response[Readiness]:
    """503 with the part that is not ready. The checks are real: a read of the store, a write to its disk."""
    services: Services = state.services
    store = await _attempt(_check_store(services))
    index = await _attempt(asyncio.to_thread(_write_probe, services))
    loaded = services.inference.is_opened()
    embedder = services.inference.opened()
    ready = store == index == "ok" and loaded
    model = embedder.manifest.id if embedder is not None else None
    fenced = len(services.users.fenced())
    return Response(Readiness(ready, store, index, model, fenced), status_code=200 if ready else 503)


async def _check_store(services: Services) -> None:
    await services.accounts.ping()
    if count := services.users.count_failed_checkpoints():
        raise Busy(f"the disk did not take what {count} accounts have written; it is safe in their logs")


async def _attempt(check: Any) -> str:
    try:
        async with asyncio.timeout(READY_S):
            await check
    except Busy as error:
        return f"failed: {error.message}"
    except Exception as error:
        return f"failed: {type(error).__name__}"
    return "ok"


def _write_probe(services: Services) -> None:
    """There is room for what a push may bring; a few bytes find some where nothing else does."""
    with tempfile.TemporaryFile(dir=services.settings.data) as probe:
        probe.write(bytes(PROBE_BYTES))


def _check_may_scrape(services: Services, request: Request[Any, Any, State]) -> None:
    """Raise SignedOut or Forbidden unless an administrator asks, or a program with the token for metrics."""
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    expected = services.settings.metrics_token.reveal()
    if expected and scheme.lower() == "bearer" and compare_digest(secret.strip().encode(), expected.encode()):
        return
    account, _ = authenticate(services, request)
    if not account.admin:
        raise Forbidden("Metrics are for administrators, or for the token of VADEMECUM_METRICS_TOKEN.")


@get("/metrics", opt={"public": True}, media_type="text/plain; version=0.0.4", include_in_schema=False)
async def metrics_route(request: Request[Any, Any, State], state: State) -> bytes:
    """Prometheus. Numbers of the whole server; nothing of any user. For an administrator's token or a token of its own."""
    _check_may_scrape(state.services, request)
    from prometheus_client import CollectorRegistry, Gauge, generate_latest  # not before the first sync

    services: Services = state.services
    registry = CollectorRegistry()
    values = {
        "vademecum_accounts": (len(services.accounts.accounts), "accounts"),
        "vademecum_attached_files": (services.users.count_attached(), "users' files open now"),
        "vademecum_streams": (services.hub.count(), "open streams"),
        "vademecum_answers": (services.answers.count(), "answers under way"),
        **{
            f"vademecum_jobs_{name}": (job.count_pending(), f"users with {name} work to do")
            for name, job in services.background_jobs.jobs.items()
        },
    }
    for name, (value, text) in values.items():
        Gauge(name, text, registry=registry).set(value)
    return generate_latest(registry)


ROUTES = [health_route, ready_route, metrics_route]
