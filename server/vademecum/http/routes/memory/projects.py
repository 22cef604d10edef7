"""Projects: made, listed, changed, merged, taken along, deleted, and what is in one. A summary of one is asked for in
`summarise`, as of a session. Those that are not in ROUTES stand elsewhere in the API's document: `app` lists them."""

from typing import Literal

import msgspec
from litestar import Response, delete, get, patch, post
from litestar.datastructures import State
from litestar.params import FromPath, FromQuery, JSONBody
from litestar.response import Stream
from msgspec import UNSET, UnsetType

from vademecum.errors import LimitReached, NotFound, TooLarge
from vademecum.http.parameters import Req, Windowed
from vademecum.http.problem_details import problem_specs
from vademecum.http.responses import Deleted, json_response, page_response, response_spec, row_response
from vademecum.http.routes.accounts.my_data import export_stream
from vademecum.http.routes.memory.sessions import SessionList
from vademecum.http.routes.memory.summaries import ScopedSummaries
from vademecum.model.memory.scope import InProject
from vademecum.model.schema.collections import Id, Name, Project, Summary, Text
from vademecum.services.agents.agent_scope import AgentScope, read_named_project
from vademecum.services.data.forget import Receipt, forget_project
from vademecum.services.memory import delete as deleting
from vademecum.services.memory import projects, summaries
from vademecum.services.memory.project_merge import merge
from vademecum.services.runtime.container import Services
from vademecum.services.sync import write_row


class NewProject(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    name: Name
    description: Text | None = None


class ProjectChange(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """What is absent stays; a `description` of null goes."""

    name: Name | UnsetType = UNSET
    description: Text | UnsetType | None = UNSET


class ProjectList(msgspec.Struct):
    projects: list[Project]
    next: str | None


class Target(msgspec.Struct, forbid_unknown_fields=True):
    into: Id


class Merged(msgspec.Struct):
    """`moved`: how many rows came over."""

    scope: AgentScope
    moved: int


@post(
    "/v1/projects",
    operation_id="createProject",
    tags=["sessions"],
    summary="Make a project",
    responses=response_spec(Project, 201) | problem_specs(LimitReached, TooLarge),
)
async def create_route(request: Req, data: JSONBody[NewProject], state: State) -> Response[bytes]:
    """What is remembered in a project's sessions is seen in no other session. Two projects may have the same name."""
    services: Services = state.services
    fields, limits = msgspec.to_builtins(data), services.limits(request.user)
    async with services.users.open(request.user.id) as store:
        row = await store.write(lambda tx: projects.create(tx, fields, limits))
    return row_response(row, new=True)


@get(
    "/v1/projects",
    operation_id="listProjects",
    tags=["sessions"],
    summary="List all projects",
    responses=response_spec(ProjectList),
)
async def list_route(request: Req, state: State, window: Windowed) -> Response[bytes]:
    """Newest first. Go on with `next` as `cursor` until it is null; a page may be shorter than `limit`."""
    services: Services = state.services
    async with services.users.open(request.user.id) as store:
        return page_response("projects", await projects.list_projects(store, window))


@get(
    "/v1/projects/{project_id:str}",
    operation_id="getProject",
    tags=["sessions"],
    summary="Get one project",
    responses=response_spec(Project) | problem_specs(NotFound),
)
async def get_route(request: Req, state: State, project_id: FromPath[str]) -> Response[bytes]:
    """Its name and description. What is in it has routes of its own."""
    services: Services = state.services
    async with services.users.open(request.user.id) as store:
        return json_response(await write_row.read(store, "projects", project_id))


@patch(
    "/v1/projects/{project_id:str}",
    operation_id="changeProject",
    tags=["sessions"],
    summary="Rename or describe a project",
    responses=response_spec(Project) | problem_specs(NotFound, LimitReached, TooLarge),
)
async def change_route(
    request: Req, state: State, project_id: FromPath[str], data: JSONBody[ProjectChange]
) -> Response[bytes]:
    """What is absent stays as it is; a `description` of null goes."""
    services: Services = state.services
    fields, limits = msgspec.to_builtins(data), services.limits(request.user)
    async with services.users.open(request.user.id) as store:
        row = await store.write(lambda tx: projects.change(tx, project_id, fields, limits))
    return row_response(row, new=False)


@get(
    "/v1/projects/{project_id:str}/sessions",
    operation_id="listProjectSessions",
    tags=["sessions"],
    summary="List a project's sessions",
    responses=response_spec(SessionList) | problem_specs(NotFound),
)
async def sessions_route(
    request: Req,
    state: State,
    project_id: FromPath[str],
    window: Windowed,
) -> Response[bytes]:
    """Those that are in it now, newest first, in pages as `listProjects`."""
    services: Services = state.services
    async with services.users.open(request.user.id) as store:
        return page_response("sessions", await projects.list_sessions(store, project_id, window))


@get(
    "/v1/projects/{project_id:str}/overview",
    operation_id="getOverview",
    tags=["memory"],
    summary="Get a project's overview",
    responses=response_spec(Summary | None) | problem_specs(NotFound),
)
async def overview_route(request: Req, state: State, project_id: FromPath[str]) -> Response[bytes]:
    """The newest summary of the project as a whole: one that names no session. Null if there is none.
    The header `X-Vademecum-Scope` names the project."""
    services: Services = state.services
    async with services.users.open(request.user.id) as store:
        row = await summaries.read_overview(store, project_id) or b"null"
    return json_response(row, scope=InProject(project_id))


@get(
    "/v1/projects/{project_id:str}/summaries",
    operation_id="listProjectSummaries",
    tags=["memory"],
    summary="List a project's summaries",
    responses=response_spec(ScopedSummaries) | problem_specs(NotFound),
)
async def summaries_route(
    request: Req,
    state: State,
    project_id: FromPath[str],
    window: Windowed,
) -> Response[bytes]:
    """Its overviews and the summaries of its sessions, newest first, in pages as `listProjects`. The
    summary of a session is where that session is now, whatever project it names."""
    services: Services = state.services
    async with services.users.open(request.user.id) as store:
        page = await summaries.list_by_project(store, project_id, window)
    return page_response("summaries", page, InProject(project_id))


@post(
    "/v1/projects/{project_id:str}/merge",
    status_code=200,
    operation_id="mergeProjects",
    tags=["sessions"],
    summary="Make a project a part of another",
    responses=problem_specs(NotFound, LimitReached),
)
async def merge_route(
    request: Req, state: State, project_id: FromPath[str], data: JSONBody[Target]
) -> Merged:
    """Its sessions, memories, entities, summaries and observations are in the project `into` then, its folders mean that
    one, and it is gone."""
    services: Services = state.services
    limits = services.limits(request.user)
    async with services.users.open(request.user.id) as store:
        moved = await store.write(lambda tx: merge(tx, project_id, data.into, limits))
        return Merged(AgentScope(await read_named_project(store, data.into)), moved)


@get(
    "/v1/projects/{project_id:str}/export",
    media_type="application/zip",
    opt={"rate": "write"},
    operation_id="exportProject",
    tags=["sessions"],
    summary="Take a project along",
    responses=problem_specs(NotFound),
)
async def export_route(request: Req, state: State, project_id: FromPath[str]) -> Stream:
    """A ZIP as `export` makes it, of this project alone: its sessions with their turns, what is remembered in it, and
    what agents did there."""
    return await export_stream(request, state.services, project_id)


@delete(
    "/v1/projects/{project_id:str}",
    status_code=200,
    operation_id="deleteProject",
    tags=["sessions"],
    summary="Delete a project",
    responses=problem_specs(NotFound),
)
async def delete_route(
    request: Req,
    state: State,
    project_id: FromPath[str],
    sessions: FromQuery[Literal["keep", "delete"]] = "keep",
    forget: FromQuery[Literal["soon", "now"]] = "soon",
) -> Deleted | Receipt:
    """Its memories, entities, summaries and observations go; its sessions return to the pool, or go too with
    `?sessions=delete`. The disk is rid of them soon after; with `?forget=now` the answer comes when it is, and is the
    receipt."""
    services: Services = state.services
    async with services.users.open(request.user.id) as store:
        write_row.check_live(store, "projects", project_id)
    await services.spool.ingest_account(request.user.email)
    await services.spool.delete_project_events(request.user, project_id)  # those that could not be ingested
    if forget == "now":
        where = services.settings.data, services.users, services.eraser, request.user.id
        spooled = services.spool.account_folders(request.user.email)
        return await forget_project(*where, project_id, spooled, with_sessions=sessions == "delete")
    async with services.users.open(request.user.id) as store:
        await store.write(
            lambda tx: deleting.delete_project(tx, project_id, with_sessions=sessions == "delete")
        )
    return Deleted(1)


ROUTES = [create_route, list_route, get_route, change_route, sessions_route, overview_route, summaries_route]
