"""Changing the model of the server: for administrators, and for the commands on its machine."""

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
    """The name of an installed model."""

    model: str


@get(
    "/v1/reembedding",
    operation_id="getReembedding",
    tags=["administration"],
    summary="Which model is in use, and how far a change of it is",
    responses=problem_specs(Forbidden),
)
async def status_route(request: Req) -> Status:
    """For administrators. Accounts that are `behind` are served by the model `before`."""
    return require_administrator(request).model_change.status()


@put(
    "/v1/reembedding",
    operation_id="useModel",
    tags=["administration"],
    summary="Change the model, or go back",
    responses=problem_specs(BadRequest, Forbidden, Conflict),
)
async def use_route(request: Req, data: JSONBody[Choice]) -> Status:
    """For administrators. All vectors are made anew in the background; until an account's are whole it is searched by the
    old ones. Naming the model `before` goes back."""
    parts = require_administrator(request)
    await parts.model_change.use(data.model, parts.accounts.accounts)
    return parts.model_change.status()


@post(
    "/v1/reembedding/pause",
    status_code=200,
    operation_id="pauseReembedding",
    tags=["administration"],
    summary="Make no more new vectors for now",
    responses=REFUSALS,
)
async def pause_route(request: Req) -> Status:
    """For administrators. What is done is kept, over restarts too."""
    parts = require_administrator(request)
    await parts.model_change.set_paused(True)
    return parts.model_change.status()


@post(
    "/v1/reembedding/resume",
    status_code=200,
    operation_id="resumeReembedding",
    tags=["administration"],
    summary="Go on making new vectors",
    responses=REFUSALS,
)
async def resume_route(request: Req) -> Status:
    """For administrators. It begins where it was paused: vectors that were made by then are not made again."""
    parts = require_administrator(request)
    await parts.model_change.set_paused(False)
    return parts.model_change.status()


ROUTES = [status_route, use_route, pause_route, resume_route]
