"""Search the memory of conversations: turns and entities."""

from typing import Annotated

import msgspec
from litestar import get
from litestar.params import QueryParameter

from vademecum.errors import BadRequest, Busy, Conflict, NotFound
from vademecum.http.disconnect import while_connected
from vademecum.http.parameters import QUESTION_MAX, Req, RequestedScope, ResultsInAddress, Scoped
from vademecum.http.problem_details import problem_specs
from vademecum.model.memory.indexable_text import Kind
from vademecum.model.memory.scope import MemoryScope
from vademecum.services.memory.recall import Recollection

Query = Annotated[
    str,
    QueryParameter(max_length=QUESTION_MAX, description="What to search for, in words or by meaning."),
]


class Recollections(msgspec.Struct):
    """The results of a search and its `scope`. `complete` is false while the newest rows are not fully indexed."""

    scope: MemoryScope
    results: list[Recollection]
    complete: bool


@get(
    "/v1/episodes/search",
    opt={"rate": "search"},
    operation_id="searchEpisodes",
    tags=["search"],
    summary="Search turns",
    responses=problem_specs(NotFound, Conflict, Busy),
)
async def episodes_route(
    request: Req, q: Query, scoped: Scoped, limit: ResultsInAddress = 10
) -> Recollections:
    """Search turns by words and by meaning and return the best ones; newer turns are preferred. A session in a project
    searches only the turns of that project; any other session searches the turns of all sessions without a project."""
    return await while_connected(request, _search(request, "episodes", q, scoped, limit))


@get(
    "/v1/entities/search",
    opt={"rate": "search"},
    operation_id="searchEntities",
    tags=["search"],
    summary="Search entities",
    responses=problem_specs(NotFound, Conflict, Busy),
)
async def entities_route(
    request: Req, q: Query, scoped: Scoped, limit: ResultsInAddress = 10
) -> Recollections:
    """Search entities and return the best ones. An entity belongs to the project in whose turns it was found, so a session
    without a project finds none."""
    return await while_connected(request, _search(request, "entities", q, scoped, limit))


async def _search(request: Req, kind: Kind, q: str, scoped: RequestedScope, limit: int) -> Recollections:
    if not q.strip():
        raise BadRequest("`q` is empty. Send what to search for.")
    async with request.open_store() as store:
        scope = await scoped.scope(store)
    found = await request.services.recall.recall(request.user.id, scope, q, frozenset({kind}), limit)
    return Recollections(scope, found.results, found.complete)


ROUTES = [episodes_route, entities_route]
