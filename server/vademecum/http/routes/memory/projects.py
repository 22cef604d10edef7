"""Create, list, change, merge, export and delete projects, and list their contents.

`app` lists the routes that are not in ROUTES, because they appear elsewhere in the OpenAPI document.
"""

from typing import Literal

import msgspec
from litestar import Response, delete, get, patch, post
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
from vademecum.services.sync import row_operations


class NewProject(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    name: Name
    description: Text | None = None


class ProjectChange(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """The changes to a project. Absent fields are unchanged. A `description` of null removes the description."""

    name: Name | UnsetType = UNSET
    description: Text | UnsetType | None = UNSET


class ProjectList(msgspec.Struct):
    projects: list[Project]
    next: str | None


class Target(msgspec.Struct, forbid_unknown_fields=True):
    into: Id


class Merged(msgspec.Struct):
    """The result of a merge. `moved` is the number of moved rows."""

    scope: AgentScope
    moved: int


@post(
    "/v1/projects",
    operation_id="createProject",
    tags=["sessions"],
    summary="Create a project",
    responses=response_spec(Project, 201) | problem_specs(LimitReached, TooLarge),
)
async def create_route(request: Req, data: JSONBody[NewProject]) -> Response[bytes]:
    """Create a project. The memory of its sessions is separate from all other sessions. Two projects can have the same
    name."""
    fields = msgspec.to_builtins(data)
    row = await request.write(lambda tx: projects.create(tx, fields, request.limits))
    return row_response(row, new=True)


@get(
    "/v1/projects",
    operation_id="listProjects",
    tags=["sessions"],
    summary="List all projects",
    responses=response_spec(ProjectList),
)
async def list_route(request: Req, window: Windowed) -> Response[bytes]:
    """List the projects, newest first. Continue with `next` as `cursor` until `next` is null; a page can be shorter than
    `limit`."""
    async with request.open_store() as store:
        return page_response("projects", await projects.list_projects(store, window))


@get(
    "/v1/projects/{project_id:str}",
    operation_id="getProject",
    tags=["sessions"],
    summary="Get a project",
    responses=response_spec(Project) | problem_specs(NotFound),
)
async def get_route(request: Req, project_id: FromPath[str]) -> Response[bytes]:
    """Return the name and description of a project. Other routes return the contents of the project."""
    async with request.open_store() as store:
        return json_response(await row_operations.read(store, "projects", project_id))


@patch(
    "/v1/projects/{project_id:str}",
    operation_id="changeProject",
    tags=["sessions"],
    summary="Change a project",
    responses=response_spec(Project) | problem_specs(NotFound, LimitReached, TooLarge),
)
async def change_route(
    request: Req, project_id: FromPath[str], data: JSONBody[ProjectChange]
) -> Response[bytes]:
    """Change a project. Absent fields are unchanged. A `description` of null removes the description."""
    fields = msgspec.to_builtins(data)
    row = await request.write(lambda tx: projects.change(tx, project_id, fields, request.limits))
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
    project_id: FromPath[str],
    window: Windowed,
) -> Response[bytes]:
    """List the current sessions of a project, newest first, paged like `listProjects`."""
    async with request.open_store() as store:
        return page_response("sessions", await projects.list_sessions(store, project_id, window))


@get(
    "/v1/projects/{project_id:str}/overview",
    operation_id="getOverview",
    tags=["memory"],
    summary="Get a project's overview",
    responses=response_spec(Summary | None) | problem_specs(NotFound),
)
async def overview_route(request: Req, project_id: FromPath[str]) -> Response[bytes]:
    """Return the newest summary of the whole project, or null. The header `X-Vademecum-Scope` contains the project."""
    async with request.open_store() as store:
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
    project_id: FromPath[str],
    window: Windowed,
) -> Response[bytes]:
    """List the overviews of a project and the summaries of its current sessions, newest first, paged like `listProjects`."""
    async with request.open_store() as store:
        page = await summaries.list_by_project(store, project_id, window)
    return page_response("summaries", page, InProject(project_id))


@post(
    "/v1/projects/{project_id:str}/merge",
    status_code=200,
    operation_id="mergeProjects",
    tags=["sessions"],
    summary="Merge a project into another",
    responses=problem_specs(NotFound, LimitReached),
)
async def merge_route(request: Req, project_id: FromPath[str], data: JSONBody[Target]) -> Merged:
    """Move the sessions, memories, entities, summaries, observations and folders of this project to the project `into`, then
    delete this project."""
    async with request.open_store() as store:
        moved = await store.write(lambda tx: merge(tx, project_id, data.into, request.limits))
        return Merged(AgentScope(await read_named_project(store, data.into)), moved)


@get(
    "/v1/projects/{project_id:str}/export",
    media_type="application/zip",
    opt={"rate": "write"},
    operation_id="exportProject",
    tags=["sessions"],
    summary="Export a project",
    responses=problem_specs(NotFound),
)
async def export_route(request: Req, project_id: FromPath[str]) -> Stream:
    """Return a ZIP archive like `export`, but of this project only: its sessions with their turns, its memory, and the
    observations of agents."""
    return await export_stream(request, project_id)


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
    project_id: FromPath[str],
    sessions: FromQuery[Literal["keep", "delete"]] = "keep",
    forget: FromQuery[Literal["soon", "now"]] = "soon",
) -> Deleted | Receipt:
    """Delete a project with its memories, entities, summaries and observations. Its sessions are kept without a project; with
    `?sessions=delete` they are deleted too. The server erases the data from the disk soon after. With `?forget=now` it
    responds after the erasure, with a receipt."""
    services = request.services
    async with request.open_store() as store:
        row_operations.check_live(store, "projects", project_id)
    await services.spool.ingest_account(request.user.email)
    # Also delete events that could not be ingested.
    await services.spool.delete_project_events(request.user, project_id)
    with_sessions = sessions == "delete"
    if forget == "now":
        return await forget_project(
            services.settings.data,
            services.users,
            services.eraser,
            request.user.id,
            project_id,
            services.spool.account_folders(request.user.email),
            with_sessions=with_sessions,
        )
    await request.write(lambda tx: deleting.delete_project(tx, project_id, with_sessions=with_sessions))
    return Deleted(1)


ROUTES = [create_route, list_route, get_route, change_route, sessions_route, overview_route, summaries_route]
