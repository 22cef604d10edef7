"""What coding agents and their programs ask first: which project a folder means, and what is known of it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

import msgspec
from litestar import get, post
from litestar.datastructures import State
from litestar.params import JSONBody, QueryParameter

from vademecum.engines.duckdb.user_store import UserStore
from vademecum.errors import Conflict, LimitReached, NotFound
from vademecum.http.auth import folder_view_for
from vademecum.http.parameters import Req
from vademecum.http.problem_details import problem_specs
from vademecum.http.routes.agents.observations import AgentProject
from vademecum.model.agents.observations import Identity
from vademecum.services.agents import activity, project_claims
from vademecum.services.agents.activity import ProjectWork, SessionWork
from vademecum.services.agents.agent_scope import AgentScope, NamedProject, Scoped, named, scope_called
from vademecum.services.agents.briefing import context
from vademecum.services.memory.scope import parse_project_parameter
from vademecum.services.runtime.container import Services

Tokens = Annotated[int, QueryParameter(ge=1, le=100_000, description="The most tokens of the text.")]


class AgentContext(msgspec.Struct):
    """`tokens`: of `text`. `notice`: as in `identifyProject`."""

    scope: AgentScope
    text: str
    tokens: int
    notice: str | None


class AgentProjects(msgspec.Struct):
    scope: AgentScope
    projects: list[ProjectWork]


class AgentSessions(msgspec.Struct):
    scope: AgentScope
    sessions: list[SessionWork]


class Identified(msgspec.Struct):
    """`notice`: a sentence for the person, when another folder or project is called the same."""

    scope: AgentScope
    project: NamedProject
    notice: str | None


@post(
    "/v1/agents/identify",
    status_code=200,
    operation_id="identifyProject",
    tags=["agents"],
    summary="Say which project a folder means",
    responses=problem_specs(LimitReached),
)
async def identify_route(request: Req, data: JSONBody[Identity], state: State) -> Identified:
    """A project of its own, made if there is none, until its person has joined it with another (`mergeProjects`). One that
    was there before is called otherwise, whatever the folder calls itself, and `notice` says so."""
    services: Services = state.services
    limits = services.limits(request.user)
    async with services.users.open(request.user.id) as store:
        view = await project_claims.checked(store, folder_view_for(request), [data])
        project_id = await store.write(lambda tx: project_claims.project_of(tx, data, limits, view))
        project = await named(store, project_id)
        return Identified(AgentScope(project), project, await project_claims.notice_of(store, project_id))


@get(
    "/v1/agents/context",
    opt={"rate": "search"},
    operation_id="briefAgent",
    tags=["agents"],
    summary="Say what the next session should know",
    responses=problem_specs(NotFound, Conflict),
)
async def context_route(
    request: Req, state: State, project: AgentProject, tokens: Tokens = 2000
) -> AgentContext:
    """What is pinned, what was decided, what is remembered, then what was done lately, in so many tokens. It is quoted,
    in a fence that nothing in it can end. Empty when there is nothing to tell."""
    services: Services = state.services
    await services.spool.take_up_soon(request.user.email)
    async with services.users.open(request.user.id) as store:
        scope = await scope_called(store, parse_project_parameter(project))
        told = await context(store, scope, tokens, services.inference, services.clock)
    return AgentContext(scope.told, told.briefing.text, told.briefing.tokens, told.notice)


@asynccontextmanager
async def _open_scope(
    request: Req, state: State, project: str | None
) -> AsyncIterator[tuple[UserStore, Scoped]]:
    """The user's store, and the scope that the address asks for."""
    services: Services = state.services
    async with services.users.open(request.user.id) as store:
        yield store, await scope_called(store, parse_project_parameter(project))


@get(
    "/v1/agents/projects",
    operation_id="listAgentProjects",
    tags=["agents"],
    summary="Say in which projects agents work",
    responses=problem_specs(NotFound, Conflict),
)
async def projects_route(request: Req, state: State, project: AgentProject) -> AgentProjects:
    """Every project of the scope with the number of its observations and the time of the last; the latest first."""
    async with _open_scope(request, state, project) as (store, scope):
        return AgentProjects(scope.told, await activity.in_projects(store, scope.asked))


@get(
    "/v1/agents/sessions",
    operation_id="listAgentSessions",
    tags=["agents"],
    summary="List the sessions of agents",
    responses=problem_specs(NotFound, Conflict),
)
async def sessions_route(request: Req, state: State, project: AgentProject) -> AgentSessions:
    """What `agentSession` of `listObservations` can be, with how much was done in each and when; the latest first."""
    async with _open_scope(request, state, project) as (store, scope):
        return AgentSessions(scope.told, await activity.in_sessions(store, scope.asked))


ROUTES = [identify_route, context_route, projects_route, sessions_route]
