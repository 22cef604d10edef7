"""Create, list, change and delete sessions, mostly by ids that other programs assign (`externalId`)."""

from typing import Annotated
from urllib.parse import unquote

import msgspec
from litestar import Response, delete, get, patch, post
from litestar.params import FromPath, JSONBody
from msgspec import UNSET, Meta, UnsetType

from vademecum.errors import Duplicate, LimitReached, NotFound, TooLarge
from vademecum.http.parameters import Req, Windowed
from vademecum.http.problem_details import problem_specs
from vademecum.http.responses import Deleted, json_response, page_response, response_spec, row_response
from vademecum.model.schema.collections import Id, Session
from vademecum.services.memory import sessions
from vademecum.services.sync import row_operations

BY_EXTERNAL = "/v1/sessions/by-external/"
Title = Annotated[str, Meta(max_length=1000)]


class NewSession(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """A session to create. `name` is an alias of `title` for other programs."""

    external_id: Annotated[str, Meta(min_length=1, max_length=255)]
    title: Title = ""
    name: Title | None = None
    project_id: Id | None = None


class SessionChange(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """The changes to a session. Absent fields are unchanged. A `projectId` of null removes the session from its project."""

    title: Title | UnsetType = UNSET
    project_id: Id | UnsetType | None = UNSET


class SessionList(msgspec.Struct):
    sessions: list[Session]
    next: str | None


def external_id(request: Req) -> str:
    """Return the external id from the raw path. In a path parameter Litestar would replace two slashes by one."""
    return unquote(request.scope["raw_path"].partition(BY_EXTERNAL.encode())[2])


@post(
    "/v1/sessions",
    operation_id="createSession",
    tags=["sessions"],
    summary="Create a session",
    responses=response_spec(Session, 201) | problem_specs(NotFound, Duplicate, LimitReached, TooLarge),
)
async def create_route(request: Req, data: JSONBody[NewSession]) -> Response[bytes]:
    """Create a session. You choose its `externalId`, by which other routes find the session; an `externalId` that is in use
    returns `DUPLICATE`. With `projectId`, the session and its first message are in that project from the start."""
    fields = msgspec.to_builtins(data)
    name = fields.pop("name")
    fields["title"] = fields["title"] or name or ""
    row = await request.write(lambda tx: sessions.create(tx, fields, request.limits))
    return row_response(row, new=True)


@get(
    "/v1/sessions",
    operation_id="listSessions",
    tags=["sessions"],
    summary="List all sessions",
    responses=response_spec(SessionList),
)
async def list_route(request: Req, window: Windowed) -> Response[bytes]:
    """List all sessions, with and without a project, newest first. Continue with `next` as `cursor` until `next` is null; a
    page can be shorter than `limit`."""
    async with request.open_store() as store:
        return page_response("sessions", await sessions.list_sessions(store, window))


@get(
    BY_EXTERNAL + "{external_id:path}",
    operation_id="getSessionByExternalId",
    tags=["sessions"],
    summary="Get a session by external id",
    responses=response_spec(Session) | problem_specs(NotFound),
)
async def get_route(request: Req) -> Response[bytes]:
    """Return the session that was created with this `externalId`, through this API or on a device."""
    async with request.open_store() as store:
        return json_response(await sessions.read(store, external_id(request)))


@patch(
    BY_EXTERNAL + "{external_id:path}",
    operation_id="changeSessionByExternalId",
    tags=["sessions"],
    summary="Change a session by external id",
    responses=response_spec(Session) | problem_specs(NotFound, LimitReached, TooLarge),
)
async def change_route(request: Req, data: JSONBody[SessionChange]) -> Response[bytes]:
    """Change a session. Absent fields are unchanged. A `projectId` of null removes the session from its project. The scope of
    the session and of its turns changes at once. Entities stay in the project in which they were found."""
    id_, fields = external_id(request), msgspec.to_builtins(data)
    row = await request.write(lambda tx: sessions.change(tx, id_, fields, request.limits))
    return row_response(row, new=False)


@delete(
    BY_EXTERNAL + "{external_id:path}",
    status_code=200,
    operation_id="deleteSessionByExternalId",
    tags=["sessions"],
    summary="Delete a session by external id",
    responses=problem_specs(NotFound),
)
async def delete_route(request: Req) -> Deleted:
    """Delete a session with its turns and summaries from every device. Documents, entities and relationships are kept, because
    they do not belong to the session."""
    await request.write(lambda tx: sessions.delete(tx, external_id(request)))
    return Deleted(1)


@delete(
    "/v1/sessions/{session_id:str}",
    status_code=200,
    operation_id="deleteSession",
    tags=["sessions"],
    summary="Delete a session",
    responses=problem_specs(NotFound),
)
async def delete_by_id_route(request: Req, session_id: FromPath[str]) -> Deleted:
    """Delete a session with its turns and summaries from every device. Documents, entities and relationships are kept, because
    they do not belong to the session."""
    await request.write(lambda tx: row_operations.delete_unscoped(tx, "sessions", session_id))
    return Deleted(1)


ROUTES = [create_route, list_route, get_route, change_route, delete_route]
