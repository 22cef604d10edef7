"""Sessions: made, listed, changed, deleted; most under the ids that other programs know them by."""

from typing import Annotated
from urllib.parse import unquote

import msgspec
from litestar import Response, delete, get, patch, post
from litestar.datastructures import State
from litestar.params import FromPath, JSONBody
from msgspec import UNSET, Meta, UnsetType

from vademecum.errors import Duplicate, LimitReached, NotFound, TooLarge
from vademecum.http.parameters import Req, Windowed
from vademecum.http.problem_details import problem_specs
from vademecum.http.responses import Deleted, json_response, page_response, response_spec, row_response
from vademecum.model.schema.collections import Id, Session
from vademecum.services.memory import sessions
from vademecum.services.runtime.container import Services
from vademecum.services.sync import write_row

BY_EXTERNAL = "/v1/sessions/by-external/"
Title = Annotated[str, Meta(max_length=1000)]


class NewSession(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """`name` is another word for `title`, for programs that know sessions by that."""

    external_id: Annotated[str, Meta(min_length=1, max_length=255)]
    title: Title = ""
    name: Title | None = None
    project_id: Id | None = None


class SessionChange(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """What is absent stays; a `projectId` of null takes the session out of its project."""

    title: Title | UnsetType = UNSET
    project_id: Id | UnsetType | None = UNSET


class SessionList(msgspec.Struct):
    sessions: list[Session]
    next: str | None


def external_id(request: Req) -> str:
    """As it was sent: in a path's parameter two slashes would have become one."""
    return unquote(request.scope["raw_path"].partition(BY_EXTERNAL.encode())[2])


@post(
    "/v1/sessions",
    operation_id="createSession",
    tags=["sessions"],
    summary="Make a session",
    responses=response_spec(Session, 201) | problem_specs(NotFound, Duplicate, LimitReached, TooLarge),
)
async def create_route(request: Req, data: JSONBody[NewSession], state: State) -> Response[bytes]:
    """`externalId` is yours to choose and leads back to the session; one that is taken answers `DUPLICATE`. With
    `projectId` the session is in that project from the first, and so is its first message."""
    services: Services = state.services
    fields, limits = msgspec.to_builtins(data), services.limits(request.user)
    name = fields.pop("name")
    fields["title"] = fields["title"] or name or ""
    async with services.users.open(request.user.id) as store:
        row = await store.write(lambda tx: sessions.create(tx, fields, limits))
    return row_response(row, new=True)


@get(
    "/v1/sessions",
    operation_id="listSessions",
    tags=["sessions"],
    summary="List all sessions",
    responses=response_spec(SessionList),
)
async def list_route(request: Req, state: State, window: Windowed) -> Response[bytes]:
    """Newest first, those of all projects and of none. Go on with `next` as `cursor` until it is null; a page may be
    shorter than `limit`."""
    services: Services = state.services
    async with services.users.open(request.user.id) as store:
        return page_response("sessions", await sessions.list_sessions(store, window))


@get(
    BY_EXTERNAL + "{external_id:path}",
    operation_id="getSessionByExternalId",
    tags=["sessions"],
    summary="Get one session",
    responses=response_spec(Session) | problem_specs(NotFound),
)
async def get_route(request: Req, state: State) -> Response[bytes]:
    """The session that was made with this `externalId`, here or on a device."""
    services: Services = state.services
    async with services.users.open(request.user.id) as store:
        return json_response(await sessions.read(store, external_id(request)))


@patch(
    BY_EXTERNAL + "{external_id:path}",
    operation_id="changeSessionByExternalId",
    tags=["sessions"],
    summary="Rename or move a session",
    responses=response_spec(Session) | problem_specs(NotFound, LimitReached, TooLarge),
)
async def change_route(request: Req, data: JSONBody[SessionChange], state: State) -> Response[bytes]:
    """What is absent stays; a `projectId` of null takes the session out of its project. What the session sees, and who
    sees its turns, changes at once; entities stay in the project in which they were found."""
    services: Services = state.services
    known_by, fields, limits = external_id(request), msgspec.to_builtins(data), services.limits(request.user)
    async with services.users.open(request.user.id) as store:
        row = await store.write(lambda tx: sessions.change(tx, known_by, fields, limits))
    return row_response(row, new=False)


@delete(
    BY_EXTERNAL + "{external_id:path}",
    status_code=200,
    operation_id="deleteSessionByExternalId",
    tags=["sessions"],
    summary="Delete a session by external id",
    responses=problem_specs(NotFound),
)
async def delete_route(request: Req, state: State) -> Deleted:
    """Its turns and summaries go from every device; its documents stay in the pool. Entities stay, and so do
    relationships, which belong to the entities and not to the session in which they were found."""
    services: Services = state.services
    known_by = external_id(request)
    async with services.users.open(request.user.id) as store:
        await store.write(lambda tx: sessions.delete(tx, known_by))
    return Deleted(1)


@delete(
    "/v1/sessions/{session_id:str}",
    status_code=200,
    operation_id="deleteSession",
    tags=["sessions"],
    summary="Delete a session",
    responses=problem_specs(NotFound),
)
async def delete_by_id_route(request: Req, state: State, session_id: FromPath[str]) -> Deleted:
    """Its turns and summaries go; its documents stay in the pool. Entities stay, and so do relationships, which belong
    to the entities."""
    services: Services = state.services
    async with services.users.open(request.user.id) as store:
        await store.write(lambda tx: write_row.delete_unscoped(tx, "sessions", session_id))
    return Deleted(1)


ROUTES = [create_route, list_route, get_route, change_route, delete_route]
