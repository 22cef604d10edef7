"""Episodes: what was asked and what was answered."""

import msgspec
from litestar import Response, delete, get, post
from litestar.datastructures import State
from litestar.params import FromPath, JSONBody

from vademecum.errors import Conflict, LimitReached, NotFound, TooLarge
from vademecum.http.parameters import Req, RequestedScope, Scoped, Windowed
from vademecum.http.problem_details import problem_specs
from vademecum.http.responses import Deleted, json_response, page_response, response_spec, row_response
from vademecum.model.memory.scope import MemoryScope
from vademecum.model.schema.collections import Episode, Id, Text
from vademecum.services.memory import episodes
from vademecum.services.runtime.container import Services
from vademecum.services.sync import write_row


class NewEpisode(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """`projectId` is not stored: a turn is where its session is. One that names another project is refused."""

    session_id: Id
    user_message: Text
    ai_response: Text
    project_id: Id | None = None


class ScopedEpisodes(msgspec.Struct):
    scope: MemoryScope
    episodes: list[Episode]
    next: str | None


@post(
    "/v1/episodes",
    operation_id="createEpisode",
    tags=["memory"],
    summary="Keep a turn of a session",
    responses=response_spec(Episode, 201) | problem_specs(NotFound, Conflict, LimitReached, TooLarge),
)
async def create_route(request: Req, data: JSONBody[NewEpisode], state: State) -> Response[bytes]:
    """A turn that is over (`status: done`). It is kept when this answers. `projectId` may be left out; it must be the
    project that the session is in."""
    services: Services = state.services
    fields, limits = msgspec.to_builtins(data), services.limits(request.user)
    async with services.users.open(request.user.id) as store:
        row = await store.write(lambda tx: episodes.create(tx, fields, limits))
    return row_response(row, new=True)


@get(
    "/v1/episodes",
    operation_id="listEpisodes",
    tags=["memory"],
    summary="List the turns within a scope",
    responses=response_spec(ScopedEpisodes) | problem_specs(NotFound, Conflict),
)
async def list_route(request: Req, state: State, scoped: Scoped, window: Windowed) -> Response[bytes]:
    """Newest first, of all sessions that `sessionId` sees: those of its project, or, if it is in none, those that are
    in none. Name a session or a project. In pages as `listSessions`."""
    services: Services = state.services
    async with services.users.open(request.user.id) as store:
        scope = await scoped.scope(store)
        return page_response("episodes", await episodes.list_in_scope(store, scope, window), scope)


@get(
    "/v1/sessions/{session_id:str}/episodes",
    operation_id="listSessionEpisodes",
    tags=["memory"],
    summary="List a session's turns",
    responses=response_spec(ScopedEpisodes) | problem_specs(NotFound),
)
async def of_session_route(
    request: Req,
    state: State,
    session_id: FromPath[str],
    window: Windowed,
) -> Response[bytes]:
    """Newest first, those of this session alone, in pages as `listSessions`. `scope` is where the session is now."""
    services: Services = state.services
    async with services.users.open(request.user.id) as store:
        home, page = await episodes.list_by_session(store, session_id, window)
    return page_response("episodes", page, home)


@get(
    "/v1/episodes/{episode_id:str}",
    operation_id="getEpisode",
    tags=["memory"],
    summary="Get one turn",
    responses=response_spec(Episode) | problem_specs(NotFound, Conflict),
)
async def get_route(request: Req, state: State, episode_id: FromPath[str], scoped: Scoped) -> Response[bytes]:
    """Within the scope of its own session, unless a session or a project is named: then a turn that is not within that
    scope is answered as one that is not there. The header `X-Vademecum-Scope` says which scope it was."""
    services: Services = state.services
    async with services.users.open(request.user.id) as store:
        asked_by = scoped.session_id or episodes.find_session_id(store, episode_id)
        scope = await RequestedScope(asked_by, scoped.project).scope(store)
        return json_response(await episodes.read(store, scope, episode_id), scope=scope)


@delete(
    "/v1/episodes/{episode_id:str}",
    status_code=200,
    operation_id="deleteEpisode",
    tags=["memory"],
    summary="Delete a turn",
    responses=problem_specs(NotFound, Conflict),
)
async def delete_route(request: Req, state: State, episode_id: FromPath[str], scoped: Scoped) -> Deleted:
    """It goes from every device. What was drawn from it stays: entities, memories and facts have lives of their own. Name
    a session or a project: a turn that is not within that scope is answered as one that is not there."""
    services: Services = state.services
    async with services.users.open(request.user.id) as store:
        scope = await scoped.scope(store)
        await store.write(lambda tx: write_row.delete(tx, scope, "episodes", episode_id))
    return Deleted(1)


ROUTES = [create_route, list_route, of_session_route, get_route, delete_route]
