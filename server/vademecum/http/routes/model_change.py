"""Change the embedding model of the server. For administrators and for commands on the server's machine."""

import msgspec
from litestar import get, post, put
from litestar.params import JSONBody

from vademecum.errors import BadRequest, Conflict, Forbidden
from vademecum.http.auth import require_administrator
from vademecum.http.parameters import Req
from vademecum.http.problem_details import problem_specs
from vademecum.services.models.model_change import Status

REFUSALS = problem_specs(Forbidden, Conflict)


class Choice(msgspec.Struct):
    """The name of the installed model to use."""

    model: str


@get(
    "/v1/reembedding",
    operation_id="getReembedding",
    tags=["administration"],
    summary="Get the model in use and the progress of a model change",
    responses=problem_specs(Forbidden),
)
async def status_route(request: Req) -> Status:
    """Return the embedding model in use and the progress of a model change. For administrators only. Accounts in `behind` are
    still searched with the model `before`."""
    return require_administrator(request).model_change.status()


@put(
    "/v1/reembedding",
    operation_id="useModel",
    tags=["administration"],
    summary="Change the embedding model",
    responses=problem_specs(BadRequest, Forbidden, Conflict),
)
async def use_route(request: Req, data: JSONBody[Choice]) -> Status:
    """Change the embedding model. For administrators only. The server recomputes all vectors in the background. It searches an
    account with the old vectors until the new ones are complete. To cancel the change, send the name of the model
    `before`."""
    services = require_administrator(request)
    await services.model_change.use(data.model, services.accounts.accounts)
    return services.model_change.status()


@post(
    "/v1/reembedding/pause",
    status_code=200,
    operation_id="pauseReembedding",
    tags=["administration"],
    summary="Pause the model change",
    responses=REFUSALS,
)
async def pause_route(request: Req) -> Status:
    """Pause the model change. For administrators only. Vectors computed so far are kept, even if the server restarts."""
    return await _pause(request, paused=True)


@post(
    "/v1/reembedding/resume",
    status_code=200,
    operation_id="resumeReembedding",
    tags=["administration"],
    summary="Resume the model change",
    responses=REFUSALS,
)
async def resume_route(request: Req) -> Status:
    """Resume the model change. For administrators only. Vectors that were computed before the pause are not recomputed."""
    return await _pause(request, paused=False)


async def _pause(request: Req, *, paused: bool) -> Status:
    change = require_administrator(request).model_change
    await change.set_paused(paused)
    return change.status()


ROUTES = [status_route, use_route, pause_route, resume_route]
