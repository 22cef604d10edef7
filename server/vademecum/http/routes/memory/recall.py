"""Search over what memory keeps of conversations: their turns, and the entities found in them."""

from typing import Annotated

import msgspec
from litestar import get
from litestar.datastructures import State
from litestar.params import QueryParameter

from vademecum.errors import BadRequest, Busy, Conflict, NotFound
from vademecum.http.disconnect import while_connected
from vademecum.http.parameters import QUESTION_MAX, Req, RequestedScope, ResultsInAddress, Scoped
from vademecum.http.problem_details import problem_specs
from vademecum.model.memory.indexable_text import Kind
from vademecum.model.memory.scope import MemoryScope
from vademecum.services.memory.recall import Recollection
from vademecum.services.runtime.container import Services

Query = Annotated[
    str,
    QueryParameter(max_length=QUESTION_MAX, description="What to look for, in words or by what is meant."),
]


class Recollections(msgspec.Struct):
    """`scope`: what was searched. `complete` is false while the newest rows cannot be found by all their means yet."""

    scope: MemoryScope
    results: list[Recollection]
    complete: bool


@get(
    "/v1/episodes/search",
    opt={"rate": "search"},
    operation_id="searchEpisodes",
    tags=["search"],
    summary="Search what was said",
    responses=problem_specs(NotFound, Conflict, Busy),
)
async def episodes_route(
    request: Req, state: State, q: Query, scoped: Scoped, limit: ResultsInAddress = 10
) -> Recollections:
    """Turns that fit best by words and by meaning, the newer before the older. A session in no project sees the turns of
    all sessions that are in none; one in a project those of that project, and no others."""
    return await while_connected(request, _search(request, state, "episodes", q, scoped, limit))


@get(
    "/v1/entities/search",
    opt={"rate": "search"},
    operation_id="searchEntities",
    tags=["search"],
    summary="Search people, places and things",
    responses=problem_specs(NotFound, Conflict, Busy),
)
async def entities_route(
    request: Req, state: State, q: Query, scoped: Scoped, limit: ResultsInAddress = 10
) -> Recollections:
    """Entities that fit best. They belong to the project they were found in: a session in no project sees none."""
    return await while_connected(request, _search(request, state, "entities", q, scoped, limit))


async def _search(
    request: Req, state: State, kind: Kind, q: str, scoped: RequestedScope, limit: int
) -> Recollections:
    services: Services = state.services
    if not q.strip():
        raise BadRequest("`q` is empty: say what to look for.")
    async with services.users.open(request.user.id) as store:
        scope = await scoped.scope(store)
    found = await services.recall.recall(request.user.id, scope, q, frozenset({kind}), limit)
    return Recollections(scope, found.results, found.complete)


ROUTES = [episodes_route, entities_route]
