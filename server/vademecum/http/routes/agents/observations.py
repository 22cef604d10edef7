"""Observations: what coding agents did. Taken up, listed, read, searched, pinned and deleted, each within a scope."""

from typing import Annotated, Literal

import msgspec
from litestar import Response, delete, get, patch, post
from litestar.datastructures import State
from litestar.params import FromPath, JSONBody, QueryParameter
from msgspec import UNSET, Meta, UnsetType

from vademecum.errors import BadRequest, Busy, Conflict, LimitReached, NotFound
from vademecum.http.auth import folder_view_for
from vademecum.http.disconnect import while_connected
from vademecum.http.parameters import QueryText, Req, Results, Windowed
from vademecum.http.problem_details import problem_specs
from vademecum.http.responses import json_response, response_spec
from vademecum.model.agents.observations import EVENTS_MAX, Event
from vademecum.model.schema.collections import Memory, Observation, ObservationKind, Time
from vademecum.services.agents import ingest
from vademecum.services.agents.agent_scope import AgentScope, Scoped, scope_called
from vademecum.services.agents.observation_search import Filter, ObservationHit, is_memory, search
from vademecum.services.memory.scope import parse_project_parameter
from vademecum.services.runtime.container import Services
from vademecum.services.sync import write_row

READ_MAX = 50
AgentProject = (
    Annotated[  # None if it is absent, though there is no default: then `scope_called` says what is missing
        str | None,
        QueryParameter(
            name="project", description="The project, by its id or name; `*`: all that there are."
        ),
    ]
)
Around = Annotated[int, QueryParameter(ge=0, le=100, description="How many rows on this side of it.")]
AgentSession = Annotated[
    str | None, QueryParameter(name="agentSession", description="Only of this session of an agent.")
]
Kinds = Annotated[ObservationKind | None, QueryParameter(name="kind", description="Only of this kind.")]
Pinned = Annotated[
    bool | None, QueryParameter(name="pinned", description="Only those that are pinned, or that are not.")
]


class Events(msgspec.Struct, forbid_unknown_fields=True):
    events: Annotated[list[Event], Meta(max_length=EVENTS_MAX)]


class IngestedEvents(msgspec.Struct):
    """`taken`: how many of the events were new."""

    taken: int


class PagedObservations(msgspec.Struct):
    scope: AgentScope
    observations: list[Observation]
    next: str | None


class ScopedObservations(msgspec.Struct):
    scope: AgentScope
    observations: list[Observation]


class ReadObservations(ScopedObservations):
    """`missing`: the ids of which there is nothing to be seen in this scope."""

    missing: list[str]


class ObservationIds(msgspec.Struct, forbid_unknown_fields=True):
    """`project`: by its id or name; null: all that there are."""

    ids: Annotated[list[Annotated[str, Meta(max_length=100)]], Meta(max_length=READ_MAX)]
    project: str | None


class ObservationQuestion(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """`project`: by its id or name; null: all that there are."""

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
    """`observation` or `memory`, as `type` says."""

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


@post(
    "/v1/observations",
    status_code=200,
    opt={"rate": "push"},
    operation_id="takeUpObservations",
    tags=["agents"],
    summary="Take up what agents did",
    responses=problem_specs(LimitReached),
)
async def take_up_route(request: Req, data: JSONBody[Events], state: State) -> IngestedEvents:
    """Each event belongs to the project that its `project` names, which is made if need be. One that was taken up before
    is known by its `id`: sending it again changes nothing. Repeats of a session, kind and path are one row."""
    services: Services = state.services
    limits = services.limits(request.user)
    return IngestedEvents(
        await ingest.receive(services.users, request.user.id, data.events, limits, folder_view_for(request))
    )


@get(
    "/v1/observations",
    operation_id="listObservations",
    tags=["agents"],
    summary="List what agents did",
    responses=response_spec(PagedObservations) | problem_specs(NotFound, Conflict),
)
async def list_route(
    request: Req,
    state: State,
    window: Windowed,
    project: AgentProject,
    kind: Kinds = None,
    agent_session: AgentSession = None,
    pinned: Pinned = None,
) -> Response[bytes]:
    """Newest first. Go on with `next` as `cursor` until it is null; a page may be shorter than `limit`."""
    services: Services = state.services
    asked = Filter(kind=kind, agent_session=agent_session, pinned=pinned)
    async with services.users.open(request.user.id) as store:
        scope = await scope_called(store, parse_project_parameter(project))
        page = await ingest.listed(store, scope.asked, window, asked.fits)
    return _answer(scope, observations=_raw(page.rows), next=page.next)


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
    """Those of the ids that lie within the scope. Of another project's the answer says as little as of unknown ones."""
    services: Services = state.services
    async with services.users.open(request.user.id) as store:
        scope = await scope_called(store, data.project)
        found = await ingest.read(store, scope.asked, data.ids)
    return _answer(scope, observations=_raw(found.rows), missing=found.missing)


@post(
    "/v1/observations/search",
    status_code=200,
    opt={"rate": "search"},
    operation_id="searchObservations",
    tags=["agents"],
    summary="Search what agents did",
    responses=response_spec(FoundObservations) | problem_specs(NotFound, Conflict, Busy),
)
async def search_route(request: Req, data: JSONBody[ObservationQuestion], state: State) -> Response[bytes]:
    """Best first, by words and by meaning, the newer before the older. What is remembered in the scope is found as well,
    unless a kind, a path, a session of an agent or pins are asked for."""
    services: Services = state.services
    if not data.query.strip():
        raise BadRequest("`query` is empty: say what to look for.")
    async with services.users.open(request.user.id) as store:
        scope = await scope_called(store, data.project)
    asked = Filter(data.kind, data.path, data.before, data.after, data.agent_session, data.pinned)
    searching = search(
        services.users, services.recall, request.user.id, scope.asked, data.query, asked, data.limit
    )
    found = await while_connected(request, searching)
    return _answer(scope, results=[_hit(hit) for hit in found.hits], complete=found.complete)


def _hit(hit: ObservationHit) -> dict[str, object]:
    kind = "memory" if is_memory(hit) else "observation"
    return {"type": kind, "score": hit.score, "relevance": hit.relevance, kind: msgspec.Raw(hit.row)}


@get(
    "/v1/observations/{observation_id:str}/timeline",
    operation_id="getTimeline",
    tags=["agents"],
    summary="See what was done around it",
    responses=response_spec(ScopedObservations) | problem_specs(NotFound, Conflict),
)
async def timeline_route(
    request: Req,
    state: State,
    observation_id: FromPath[str],
    project: AgentProject,
    before: Around = 5,
    after: Around = 5,
) -> Response[bytes]:
    """The observation among those of its project that came just before and after it, from old to new."""
    services: Services = state.services
    async with services.users.open(request.user.id) as store:
        scope = await scope_called(store, parse_project_parameter(project))
        found = await ingest.timeline(store, scope.asked, observation_id, before, after)
    return _answer(scope, observations=_raw(found))


@patch(
    "/v1/observations/{observation_id:str}",
    operation_id="pinObservation",
    tags=["agents"],
    summary="Pin an observation, or let it go",
    responses=response_spec(ScopedObservation) | problem_specs(NotFound, Conflict, LimitReached),
)
async def pin_route(
    request: Req,
    state: State,
    observation_id: FromPath[str],
    data: JSONBody[PinChange],
    project: AgentProject,
) -> Response[bytes]:
    """What is pinned is kept for ever, and told first to the next session of an agent."""
    services: Services = state.services
    limits = services.limits(request.user)
    async with services.users.open(request.user.id) as store:
        scope = await scope_called(store, parse_project_parameter(project))
        row = await store.write(lambda tx: ingest.pin(tx, scope.asked, observation_id, data.pinned, limits))
    return _answer(scope, observation=row)


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
    """Its text leaves the disk soon after. Name the project that it is in, or `*`."""
    services: Services = state.services
    async with services.users.open(request.user.id) as store:
        scope = await scope_called(store, parse_project_parameter(project))
        await store.write(lambda tx: write_row.delete(tx, scope.asked, ingest.OBSERVATIONS, observation_id))
    return ScopedDeletion(scope.told, 1)


def _answer(scope: Scoped, **more: object) -> Response[bytes]:
    return json_response(msgspec.json.encode({"scope": scope.told, **more}))


def _raw(rows: list[bytes]) -> list[msgspec.Raw]:
    return [msgspec.Raw(row) for row in rows]


ROUTES = [take_up_route, list_route, read_route, search_route, timeline_route, pin_route, delete_route]
