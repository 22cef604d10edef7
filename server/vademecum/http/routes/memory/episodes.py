"""Create, list and delete episodes: the turns of sessions."""

import msgspec
from litestar import Response, delete, get, post
from litestar.params import FromPath, JSONBody

from vademecum.errors import Conflict, LimitReached, NotFound, TooLarge
from vademecum.http.parameters import Req, RequestedScope, Scoped, Windowed
from vademecum.http.problem_details import problem_specs
from vademecum.http.responses import Deleted, json_response, page_response, response_spec, row_response
from vademecum.model.memory.scope import MemoryScope
from vademecum.model.schema.collections import Episode, Id, Text
from vademecum.services.memory import episodes
from vademecum.services.sync import row_operations


class NewEpisode(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """A turn to store. `projectId` must be the session's project and is not stored, because a turn belongs to the project of
    its session."""

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
    summary="Create a turn of a session",
    responses=response_spec(Episode, 201) | problem_specs(NotFound, Conflict, LimitReached, TooLarge),
)
async def create_route(request: Req, data: JSONBody[NewEpisode]) -> Response[bytes]:
    """Store a finished turn (`status: done`). `projectId` is optional and must be the session's project."""
    fields = msgspec.to_builtins(data)
    row = await request.write(lambda tx: episodes.create(tx, fields, request.limits))
    return row_response(row, new=True)


@get(
    "/v1/episodes",
    operation_id="listEpisodes",
    tags=["memory"],
    summary="List the turns of a scope",
    responses=response_spec(ScopedEpisodes) | problem_specs(NotFound, Conflict),
)
async def list_route(request: Req, scoped: Scoped, window: Windowed) -> Response[bytes]:
    """List turns, newest first, within the scope of the session or project that you name. The list covers all sessions of the
    project or, for a session without a project, all sessions without a project. It is paged like `listSessions`."""
    async with request.open_store() as store:
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
    session_id: FromPath[str],
    window: Windowed,
) -> Response[bytes]:
    """List the turns of one session, newest first, paged like `listSessions`. `scope` is the current scope of the session."""
    async with request.open_store() as store:
        scope, page = await episodes.list_by_session(store, session_id, window)
    return page_response("episodes", page, scope)


@get(
    "/v1/episodes/{episode_id:str}",
    operation_id="getEpisode",
    tags=["memory"],
    summary="Get a turn",
    responses=response_spec(Episode) | problem_specs(NotFound, Conflict),
)
async def get_route(request: Req, episode_id: FromPath[str], scoped: Scoped) -> Response[bytes]:
    """Return a turn within the scope of its own session or, if you name a session or a project, within that scope. A turn
    outside it is not found. The header `X-Vademecum-Scope` contains the scope."""
    async with request.open_store() as store:
        session_id = scoped.session_id or episodes.find_session_id(store, episode_id)
        scope = await RequestedScope(session_id, scoped.project).scope(store)
        return json_response(await episodes.read(store, scope, episode_id), scope=scope)


@delete(
    "/v1/episodes/{episode_id:str}",
    status_code=200,
    operation_id="deleteEpisode",
    tags=["memory"],
    summary="Delete a turn",
    responses=problem_specs(NotFound, Conflict),
)
async def delete_route(request: Req, episode_id: FromPath[str], scoped: Scoped) -> Deleted:
    """Delete a turn from every device. Entities, memories and facts that were extracted from the turn are kept. Name a session
    or a project; a turn outside that scope is not found."""
    await scoped.write(request, lambda tx, scope: row_operations.delete(tx, scope, "episodes", episode_id))
    return Deleted(1)


ROUTES = [create_route, list_route, of_session_route, get_route, delete_route]
