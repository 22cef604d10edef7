"""Ingest, list, read, search, pin and delete observations (the actions of coding agents) within a scope."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Literal

import msgspec
from litestar import Response, delete, get, patch, post
from litestar.datastructures import State
from litestar.params import FromPath, JSONBody, QueryParameter
from msgspec import UNSET, Meta, UnsetType

from vademecum.errors import BadRequest, Busy, Conflict, LimitReached, NotFound
from vademecum.http.auth import folder_access_for
from vademecum.http.disconnect import while_connected
from vademecum.http.parameters import QueryText, Req, Results, Windowed
from vademecum.http.problem_details import problem_specs
from vademecum.http.responses import json_response, response_spec
from vademecum.model.agents.observations import EVENTS_MAX, Event
from vademecum.model.records.store_interface import UserStore
from vademecum.model.schema.collections import Memory, Observation, ObservationKind, Time
from vademecum.services.agents import ingest
from vademecum.services.agents.agent_scope import AgentScope, ResolvedScope, resolve_agent_scope
from vademecum.services.agents.observation_search import (
    Filter,
    ObservationHit,
    is_memory,
    search_observations,
)
from vademecum.services.memory.scope import ProjectSelector, parse_project_parameter
from vademecum.services.runtime.composition import Services
from vademecum.services.sync import row_operations

READ_MAX = 50
# Clients must send this parameter. Litestar still accepts requests without it, so that the error of
# `resolve_agent_scope` can say what is missing.
AgentProject = Annotated[
    str | None, QueryParameter(name="project", description="The project's id or name; `*` for all projects.")
]
Neighbors = Annotated[int, QueryParameter(ge=0, le=100, description="The number of rows on this side.")]
AgentSession = Annotated[
    str | None, QueryParameter(name="agentSession", description="Only this agent session.")
]
Kind = Annotated[ObservationKind | None, QueryParameter(name="kind", description="Only this kind.")]
Pinned = Annotated[bool | None, QueryParameter(name="pinned", description="Only pinned, or only unpinned.")]


class Events(msgspec.Struct, forbid_unknown_fields=True):
    events: Annotated[list[Event], Meta(max_length=EVENTS_MAX)]


class IngestedEvents(msgspec.Struct):
    """The result of an ingest. `taken` is the number of new events."""

    taken: int


class PagedObservations(msgspec.Struct):
    scope: AgentScope
    observations: list[Observation]
    next: str | None


class ScopedObservations(msgspec.Struct):
    scope: AgentScope
    observations: list[Observation]


class ReadObservations(ScopedObservations):
    """The observations with the requested ids. `missing` lists the ids without an observation in this scope."""

    missing: list[str]


class ObservationIds(msgspec.Struct, forbid_unknown_fields=True):
    """The observations to read. `project` is the id or name of a project; null selects all projects."""

    ids: Annotated[list[Annotated[str, Meta(max_length=100)]], Meta(max_length=READ_MAX)]
    project: str | None


class ObservationQuestion(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """A search for observations. `project` is the id or name of a project; null selects all projects."""

    query: QueryText
    project: str | None
    kind: ObservationKind | None = None
    path: str | None = None
    before: Time | None = None
    after: Time | None = None
    agent_session: str | None = None
    pinned: bool | None = None
    limit: Results = 10


class FoundObservation(msgspec.Struct):
    """A search result. `type` says which of the fields `observation` and `memory` is present."""

    type: Literal["observation", "memory"]
    score: float
    relevance: float
    observation: Observation | UnsetType = UNSET
    memory: Memory | UnsetType = UNSET


class FoundObservations(msgspec.Struct):
    scope: AgentScope
    results: list[FoundObservation]
    complete: bool


class PinChange(msgspec.Struct, forbid_unknown_fields=True):
    pinned: bool


class ScopedObservation(msgspec.Struct):
    scope: AgentScope
    observation: Observation


class ScopedDeletion(msgspec.Struct):
    scope: AgentScope
    deleted: int


@asynccontextmanager
async def open_scope(
    request: Req, state: State, project: ProjectSelector
) -> AsyncIterator[tuple[UserStore, ResolvedScope]]:
    """Open the user's store and resolve the requested scope. Raises the errors of `resolve_agent_scope`."""
    services: Services = state.services
    async with services.users.open(request.user.id) as store:
        yield store, await resolve_agent_scope(store, project)


@post(
    "/v1/observations",
    status_code=200,
    opt={"rate": "push"},
    operation_id="takeUpObservations",
    tags=["agents"],
    summary="Store agent events",
    responses=problem_specs(LimitReached),
)
async def ingest_route(request: Req, data: JSONBody[Events], state: State) -> IngestedEvents:
    """Store events of coding agents as observations. Each event belongs to the project that its `project` identifies; the
    server creates the project if necessary. The server recognizes a repeated event by its `id` and ignores it. Events
    of one session and kind become one row if they have the same path or, without a path, the same content."""
    services: Services = state.services
    limits, access = services.limits(request.user), folder_access_for(request)
    return IngestedEvents(
        await ingest.ingest_events(services.users, request.user.id, data.events, limits, access)
    )


@get(
    "/v1/observations",
    operation_id="listObservations",
    tags=["agents"],
    summary="List observations",
    responses=response_spec(PagedObservations) | problem_specs(NotFound, Conflict),
)
async def list_route(
    request: Req,
    state: State,
    window: Windowed,
    project: AgentProject,
    kind: Kind = None,
    agent_session: AgentSession = None,
    pinned: Pinned = None,
) -> Response[bytes]:
    """List observations, newest first. Send `next` as `cursor` to get the next page, until `next` is null. A page may be
    shorter than `limit`."""
    row_filter = Filter(kind=kind, agent_session=agent_session, pinned=pinned)
    async with open_scope(request, state, parse_project_parameter(project)) as (store, scope):
        page = await ingest.list_observations(store, scope.memory_scope, window, row_filter.matches)
    return _respond(scope, observations=_raw(page.rows), next=page.next)


@post(
    "/v1/observations/read",
    status_code=200,
    opt={"rate": "read"},
    operation_id="readObservations",
    tags=["agents"],
    summary="Read observations by their ids",
    responses=response_spec(ReadObservations) | problem_specs(NotFound, Conflict),
)
async def read_route(request: Req, data: JSONBody[ObservationIds], state: State) -> Response[bytes]:
    """Return the observations with these ids that are within the scope. Unknown ids and ids of other projects are listed in
    `missing`."""
    async with open_scope(request, state, data.project) as (store, scope):
        found = await ingest.read_observations(store, scope.memory_scope, data.ids)
    return _respond(scope, observations=_raw(found.rows), missing=found.missing)


@post(
    "/v1/observations/search",
    status_code=200,
    opt={"rate": "search"},
    operation_id="searchObservations",
    tags=["agents"],
    summary="Search observations and memories",
    responses=response_spec(FoundObservations) | problem_specs(NotFound, Conflict, Busy),
)
async def search_route(request: Req, data: JSONBody[ObservationQuestion], state: State) -> Response[bytes]:
    """Search observations by words and by meaning and return the best results first. Newer rows are preferred. The results
    include memories of the scope, unless the request has `kind`, `path`, `agentSession` or `pinned`."""
    services: Services = state.services
    if not data.query.strip():
        raise BadRequest("`query` is empty. Send words to search for.")
    async with open_scope(request, state, data.project) as (_, scope):
        pass
    row_filter = Filter(data.kind, data.path, data.before, data.after, data.agent_session, data.pinned)
    searching = search_observations(
        services.users,
        services.recall,
        request.user.id,
        scope.memory_scope,
        data.query,
        row_filter,
        data.limit,
    )
    found = await while_connected(request, searching)
    return _respond(scope, results=[_format_hit(hit) for hit in found.hits], complete=found.complete)


def _format_hit(hit: ObservationHit) -> dict[str, object]:
    kind = "memory" if is_memory(hit) else "observation"
    return {"type": kind, "score": hit.score, "relevance": hit.relevance, kind: msgspec.Raw(hit.row)}


@get(
    "/v1/observations/{observation_id:str}/timeline",
    operation_id="getTimeline",
    tags=["agents"],
    summary="List the neighbors of an observation",
    responses=response_spec(ScopedObservations) | problem_specs(NotFound, Conflict),
)
async def timeline_route(
    request: Req,
    state: State,
    observation_id: FromPath[str],
    project: AgentProject,
    before: Neighbors = 5,
    after: Neighbors = 5,
) -> Response[bytes]:
    """Return an observation and the observations of its project immediately before and after it, oldest first."""
    async with open_scope(request, state, parse_project_parameter(project)) as (store, scope):
        rows = await ingest.read_timeline(store, scope.memory_scope, observation_id, before, after)
    return _respond(scope, observations=_raw(rows))


@patch(
    "/v1/observations/{observation_id:str}",
    operation_id="pinObservation",
    tags=["agents"],
    summary="Pin or unpin an observation",
    responses=response_spec(ScopedObservation) | problem_specs(NotFound, Conflict, LimitReached),
)
async def pin_route(
    request: Req,
    state: State,
    observation_id: FromPath[str],
    data: JSONBody[PinChange],
    project: AgentProject,
) -> Response[bytes]:
    """Pin or unpin an observation. Pinned observations are kept permanently and come first in briefings."""
    limits = state.services.limits(request.user)
    async with open_scope(request, state, parse_project_parameter(project)) as (store, scope):
        row = await store.write(
            lambda tx: ingest.set_pinned(tx, scope.memory_scope, observation_id, data.pinned, limits)
        )
    return _respond(scope, observation=row)


@delete(
    "/v1/observations/{observation_id:str}",
    status_code=200,
    operation_id="deleteObservation",
    tags=["agents"],
    summary="Delete an observation",
    responses=problem_specs(NotFound, Conflict),
)
async def delete_route(
    request: Req, state: State, observation_id: FromPath[str], project: AgentProject
) -> ScopedDeletion:
    """Delete an observation. The server erases its text from the disk soon after. `project` is the observation's project, or
    `*`."""
    async with open_scope(request, state, parse_project_parameter(project)) as (store, scope):
        await store.write(
            lambda tx: row_operations.delete(tx, scope.memory_scope, ingest.OBSERVATIONS, observation_id)
        )
    return ScopedDeletion(scope.agent_scope, 1)


def _respond(scope: ResolvedScope, **fields: object) -> Response[bytes]:
    return json_response(msgspec.json.encode({"scope": scope.agent_scope, **fields}))


def _raw(rows: list[bytes]) -> list[msgspec.Raw]:
    return [msgspec.Raw(row) for row in rows]


ROUTES = [ingest_route, list_route, read_route, search_route, timeline_route, pin_route, delete_route]
