"""Projects: made, listed, changed, and what is in one. Deleting one is in `deletion`."""

import msgspec
from litestar import Response, get, patch, post
from litestar.datastructures import State
from litestar.params import FromPath, JSONBody
from msgspec import UNSET, UnsetType

from vademecum.errors import LimitReached, NotFound, TooLarge
from vademecum.http.answers import as_stored, paged, told, written
from vademecum.http.asked import Req, Windowed
from vademecum.http.memory_sessions import SessionList
from vademecum.http.memory_summaries import ScopedSummaries
from vademecum.http.problems import problems
from vademecum.model.collections import Name, Project, Summary, Text
from vademecum.model.scope import InProject
from vademecum.services import projects, rows, summaries
from vademecum.services.parts import Parts


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


@post(
    "/v1/projects",
    operation_id="createProject",
    tags=["sessions"],
    summary="Make a project",
    responses=told(Project, 201) | problems(LimitReached, TooLarge),
)
async def create_route(request: Req, data: JSONBody[NewProject], state: State) -> Response[bytes]:
    """What is remembered in a project's sessions is seen in no other session. Two projects may have the same name."""
    parts: Parts = state.parts
    fields, limits = msgspec.to_builtins(data), parts.limits(request.user)
    async with parts.users.open(request.user.id) as store:
        row = await store.write(lambda draft: projects.create(draft, fields, limits))
    return written(row, new=True)


@get(
    "/v1/projects",
    operation_id="listProjects",
    tags=["sessions"],
    summary="List all projects",
    responses=told(ProjectList),
)
async def list_route(request: Req, state: State, window: Windowed) -> Response[bytes]:
    """Newest first. Go on with `next` as `cursor` until it is null; a page may be shorter than `limit`."""
    parts: Parts = state.parts
    async with parts.users.open(request.user.id) as store:
        return paged("projects", await projects.listed(store, window))


@get(
    "/v1/projects/{project_id:str}",
    operation_id="getProject",
    tags=["sessions"],
    summary="Get one project",
    responses=told(Project) | problems(NotFound),
)
async def get_route(request: Req, state: State, project_id: FromPath[str]) -> Response[bytes]:
    """Its name and description. What is in it has routes of its own."""
    parts: Parts = state.parts
    async with parts.users.open(request.user.id) as store:
        return as_stored(await rows.read(store, "projects", project_id))


@patch(
    "/v1/projects/{project_id:str}",
    operation_id="changeProject",
    tags=["sessions"],
    summary="Rename or describe a project",
    responses=told(Project) | problems(NotFound, LimitReached, TooLarge),
)
async def change_route(
    request: Req, state: State, project_id: FromPath[str], data: JSONBody[ProjectChange]
) -> Response[bytes]:
    """What is absent stays as it is; a `description` of null goes."""
    parts: Parts = state.parts
    fields, limits = msgspec.to_builtins(data), parts.limits(request.user)
    async with parts.users.open(request.user.id) as store:
        row = await store.write(lambda draft: projects.change(draft, project_id, fields, limits))
    return written(row, new=False)


@get(
    "/v1/projects/{project_id:str}/sessions",
    operation_id="listProjectSessions",
    tags=["sessions"],
    summary="List a project's sessions",
    responses=told(SessionList) | problems(NotFound),
)
async def sessions_route(
    request: Req,
    state: State,
    project_id: FromPath[str],
    window: Windowed,
) -> Response[bytes]:
    """Those that are in it now, newest first, in pages as `listProjects`."""
    parts: Parts = state.parts
    async with parts.users.open(request.user.id) as store:
        return paged("sessions", await projects.sessions(store, project_id, window))


@get(
    "/v1/projects/{project_id:str}/overview",
    operation_id="getOverview",
    tags=["memory"],
    summary="Get a project's overview",
    responses=told(Summary | None) | problems(NotFound),
)
async def overview_route(request: Req, state: State, project_id: FromPath[str]) -> Response[bytes]:
    """The newest summary of the project as a whole: one that names no session. Null if there is none.
    The header `X-Vademecum-Scope` names the project."""
    parts: Parts = state.parts
    async with parts.users.open(request.user.id) as store:
        row = await summaries.overview(store, project_id) or b"null"
    return as_stored(row, scope=InProject(project_id))


@get(
    "/v1/projects/{project_id:str}/summaries",
    operation_id="listProjectSummaries",
    tags=["memory"],
    summary="List a project's summaries",
    responses=told(ScopedSummaries) | problems(NotFound),
)
async def summaries_route(
    request: Req,
    state: State,
    project_id: FromPath[str],
    window: Windowed,
) -> Response[bytes]:
    """Its overviews and the summaries of its sessions, newest first, in pages as `listProjects`. The
    summary of a session is where that session is now, whatever project it names."""
    parts: Parts = state.parts
    async with parts.users.open(request.user.id) as store:
        page = await summaries.of_project(store, project_id, window)
    return paged("summaries", page, InProject(project_id))


ROUTES = [
    create_route,
    list_route,
    get_route,
    change_route,
    sessions_route,
    overview_route,
    summaries_route,
]
