"""Report liveness, readiness and metrics to the operator of the server."""

import asyncio
import tempfile
from hmac import compare_digest
from typing import Any

import msgspec
from litestar import Response, get
from litestar.openapi.datastructures import ResponseSpec

from vademecum.errors import Busy, Forbidden
from vademecum.http.auth import authenticate
from vademecum.http.openapi.routes import PUBLIC
from vademecum.http.parameters import Req
from vademecum.services.runtime.composition import Services

PROBE_BYTES = 2**20
READY_TIMEOUT_S = 7.0  # timeout of each of the two checks, so that a response takes less than 15 s


class Health(msgspec.Struct):
    alive: bool = True


class Readiness(msgspec.Struct):
    """The result of the readiness checks. `model` is the embedding model in use; null if the server searches by words only.
    `fenced` is the number of accounts that the server rejects because their records are damaged; the server is ready for
    all other accounts. Administrators see which ones in `GET /v1/accounts`."""

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
    summary="Check whether the server is alive",
)
async def health_route() -> Health:
    """Report that the process is running (liveness). The server makes no further checks."""
    return Health()


@get(
    "/ready",
    opt={"public": True},
    security=PUBLIC,
    operation_id="getReadiness",
    tags=["operations"],
    summary="Check whether the server is ready",
    responses={503: ResponseSpec(Readiness, False, "Not ready; the failed check gives the reason")},
)
async def ready_route(request: Req) -> Response[Readiness]:
    """Report whether the server is ready, with status 503 if it is not. The checks read from the database and write to the
    disk."""
    services = request.services
    store = await _run_check(_check_store(services), "accounts.duckdb cannot be read or written")
    index = await _run_check(asyncio.to_thread(_write_probe, services), "the data folder cannot be written")
    ready = store == index == "ok" and services.inference.is_opened()
    embedder = services.inference.opened()
    model = embedder.manifest.id if embedder is not None else None
    fenced = len(services.users.fenced())
    return Response(Readiness(ready, store, index, model, fenced), status_code=200 if ready else 503)


async def _check_store(services: Services) -> None:
    try:
        await services.accounts.ping()
    except Busy as error:
        raise Busy(f"accounts.duckdb: {error.message}") from error
    if count := services.users.count_failed_checkpoints():
        raise Busy(f"cannot write the changes of {count} accounts to their files; they are safe in the logs")


async def _run_check(check: Any, failure: str) -> str:
    try:
        async with asyncio.timeout(READY_TIMEOUT_S):
            await check
    except Busy as error:
        return f"failed: {error.message}"
    except Exception as error:
        return f"failed: {failure} ({type(error).__name__})"
    return "ok"


def _write_probe(services: Services) -> None:
    """Write a temporary file of `PROBE_BYTES` bytes, because a few bytes would fit even on a full disk."""
    with tempfile.TemporaryFile(dir=services.settings.data) as probe:
        probe.write(bytes(PROBE_BYTES))


def _check_may_scrape(request: Req) -> None:
    """Raise SignedOut or Forbidden unless the request has an administrator's token or the metrics token."""
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    expected = request.services.settings.metrics_token.reveal()
    if expected and scheme.lower() == "bearer" and compare_digest(secret.strip().encode(), expected.encode()):
        return
    account, _ = authenticate(request.services, request)
    if not account.admin:
        raise Forbidden("Metrics need an administrator's token or the token VADEMECUM_METRICS_TOKEN.")


@get("/metrics", opt={"public": True}, media_type="text/plain; version=0.0.4", include_in_schema=False)
async def metrics_route(request: Req) -> bytes:
    """Return Prometheus metrics of the whole server. They contain no user data."""
    _check_may_scrape(request)
    # Imported here, because starting the server does not need it.
    from prometheus_client import CollectorRegistry, Gauge, generate_latest

    services = request.services

    registry = CollectorRegistry()
    values = {
        "vademecum_accounts": (len(services.accounts.accounts), "accounts"),
        "vademecum_fenced_accounts": (len(services.users.fenced()), "accounts whose records are damaged"),
        "vademecum_attached_files": (services.users.count_attached(), "users' files open now"),
        "vademecum_streams": (services.hub.count(), "open streams"),
        "vademecum_answers": (services.answers.count(), "answers in progress"),
        **{
            f"vademecum_jobs_{name}": (job.count_pending(), f"users with {name} work to do")
            for name, job in services.background_jobs.jobs.items()
        },
    }
    for name, (value, text) in values.items():
        Gauge(name, text, registry=registry).set(value)
    return generate_latest(registry)


ROUTES = [health_route, ready_route, metrics_route]
