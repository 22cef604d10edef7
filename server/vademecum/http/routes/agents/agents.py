"""Define routes for coding agents: identify a folder's project, get a briefing, list projects and agent sessions."""

from typing import Annotated

import msgspec
from litestar import get, post
from litestar.datastructures import State
from litestar.params import JSONBody, QueryParameter

from vademecum.errors import Conflict, LimitReached, NotFound
from vademecum.http.auth import folder_access_for
from vademecum.http.parameters import Req
from vademecum.http.problem_details import problem_specs
from vademecum.http.routes.agents.observations import AgentProject, open_scope
from vademecum.model.agents.observations import Identity
from vademecum.services.agents import activity, project_claims
from vademecum.services.agents.activity import ProjectActivity, SessionActivity
from vademecum.services.agents.agent_scope import AgentScope, NamedProject, read_named_project
from vademecum.services.agents.briefing import build_briefing
from vademecum.services.memory.scope import parse_project_parameter
from vademecum.services.runtime.composition import Services

Tokens = Annotated[
    int, QueryParameter(ge=1, le=100_000, description="The maximum length of the text in tokens.")
]


class AgentContext(msgspec.Struct):
    """The briefing of an agent. `tokens` is the length of `text`. `notice` is as in `identifyProject`."""

    scope: AgentScope
    text: str
    tokens: int
    notice: str | None


class AgentProjects(msgspec.Struct):
    scope: AgentScope
    projects: list[ProjectActivity]


class AgentSessions(msgspec.Struct):
    scope: AgentScope
    sessions: list[SessionActivity]


class Identified(msgspec.Struct):
    """The project of a folder. `notice` is a sentence for the user if another folder or project has the same name."""

    scope: AgentScope
    project: NamedProject
    notice: str | None


@post(
    "/v1/agents/identify",
    status_code=200,
    operation_id="identifyProject",
    tags=["agents"],
    summary="Identify a folder's project",
    responses=problem_specs(LimitReached),
)
async def identify_route(request: Req, data: JSONBody[Identity], state: State) -> Identified:
    """Return the project of a folder. A new folder gets its own project, until the user merges that project with another
    (`mergeProjects`). If a project already has the folder's name, the new project gets a different name and `notice`
    says so."""
    services: Services = state.services
    limits = services.limits(request.user)
    async with services.users.open(request.user.id) as store:
        access = await project_claims.check_folders(store, folder_access_for(request), [data])
        project_id = await store.write(
            lambda tx: project_claims.Claims(tx, limits, access).resolve_project(data)
        )
        project = await read_named_project(store, project_id)
        return Identified(AgentScope(project), project, await project_claims.build_notice(store, project_id))


@get(
    "/v1/agents/context",
    opt={"rate": "search"},
    operation_id="briefAgent",
    tags=["agents"],
    summary="Get a briefing for a new agent session",
    responses=problem_specs(NotFound, Conflict),
)
async def context_route(
    request: Req, state: State, project: AgentProject, tokens: Tokens = 2000
) -> AgentContext:
    """Return a briefing for an agent: pinned observations, then decisions, memories and recent observations. Each entry is
    quoted and cannot imitate the closing delimiter. `text` is empty if there are no entries."""
    services: Services = state.services
    await services.spool.ingest_account(request.user.email)
    async with open_scope(request, state, parse_project_parameter(project)) as (store, scope):
        result = await build_briefing(store, scope, tokens, services.inference, services.clock)
    return AgentContext(scope.agent_scope, result.briefing.text, result.briefing.tokens, result.notice)


@get(
    "/v1/agents/projects",
    operation_id="listAgentProjects",
    tags=["agents"],
    summary="List projects with their observation counts",
    responses=problem_specs(NotFound, Conflict),
)
async def projects_route(request: Req, state: State, project: AgentProject) -> AgentProjects:
    """List the projects of the scope, each with its number of observations and the time of its latest observation. The most
    recently active project comes first."""
    async with open_scope(request, state, parse_project_parameter(project)) as (store, scope):
        projects = await activity.list_project_activity(store, scope.memory_scope)
    return AgentProjects(scope.agent_scope, projects)


@get(
    "/v1/agents/sessions",
    operation_id="listAgentSessions",
    tags=["agents"],
    summary="List agent sessions",
    responses=problem_specs(NotFound, Conflict),
)
async def sessions_route(request: Req, state: State, project: AgentProject) -> AgentSessions:
    """List the agent sessions of the scope, each with its number of observations and their times, latest first. Their ids
    are the values that `listObservations` accepts as `agentSession`."""
    async with open_scope(request, state, parse_project_parameter(project)) as (store, scope):
        sessions = await activity.list_session_activity(store, scope.memory_scope)
    return AgentSessions(scope.agent_scope, sessions)


ROUTES = [identify_route, context_route, projects_route, sessions_route]
