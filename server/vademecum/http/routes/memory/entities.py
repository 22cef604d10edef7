"""Entities of projects, and the relationships between them."""

from typing import Annotated

import msgspec
from litestar import Response, delete, get, post
from litestar.datastructures import State
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter

from vademecum.errors import BadRequest, Conflict, LimitReached, NotFound, TooLarge
from vademecum.http.parameters import Req, Scoped, Windowed
from vademecum.http.problem_details import problem_specs
from vademecum.http.responses import Deleted, json_response, page_response, response_spec, row_response
from vademecum.model.memory.scope import InProject, MemoryScope
from vademecum.model.schema.collections import Entity, EntityType, Id, Name, Relationship, Text
from vademecum.services.memory import entities, relationships
from vademecum.services.memory.relationships import Edge
from vademecum.services.runtime.container import Services
from vademecum.services.sync import write_row


class NewEntity(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    project_id: Id
    name: Name
    type: EntityType
    notes: Text | None = None


class ScopedEntities(msgspec.Struct):
    scope: MemoryScope
    entities: list[Entity]
    next: str | None


class ScopedRelationships(msgspec.Struct):
    scope: MemoryScope
    relationships: list[Relationship]
    next: str | None


@post(
    "/v1/entities",
    operation_id="keepEntity",
    tags=["memory"],
    summary="Keep an entity of a project",
    responses=response_spec(Entity, 201)
    | response_spec(Entity)
    | problem_specs(NotFound, LimitReached, TooLarge),
)
async def keep_route(request: Req, data: JSONBody[NewEntity], state: State) -> Response[bytes]:
    """A project has one entity of a type and name, however that is spelt (case, accents, spaces). 201 when it is new;
    else 200 and the one that is known, with these `notes` unless they are empty. The header `X-Vademecum-Scope` names the project."""
    services: Services = state.services
    home, fields, limits = (
        InProject(data.project_id),
        msgspec.to_builtins(data),
        services.limits(request.user),
    )
    async with services.users.open(request.user.id) as store:
        row, new = await store.write(lambda tx: entities.upsert(tx, home, fields, limits))
    return row_response(row, new=new, scope=home)


@get(
    "/v1/entities/by-type/{type:str}",
    operation_id="listEntities",
    tags=["memory"],
    summary="List the entities of a type",
    responses=response_spec(ScopedEntities) | problem_specs(NotFound, Conflict),
)
async def of_type_route(
    request: Req,
    state: State,
    type: FromPath[EntityType],
    scoped: Scoped,
    window: Windowed,
) -> Response[bytes]:
    """Newest first, those within the scope: name a session or a project. A session in no project sees none. In pages
    as `listSessions`."""
    services: Services = state.services
    async with services.users.open(request.user.id) as store:
        scope = await scoped.scope(store)
        return page_response("entities", await entities.list_by_type(store, scope, type, window), scope)


@get(
    "/v1/entities/{entity_id:str}",
    operation_id="getEntity",
    tags=["memory"],
    summary="Get one entity",
    responses=response_spec(Entity) | problem_specs(NotFound, Conflict),
)
async def get_route(request: Req, state: State, entity_id: FromPath[str], scoped: Scoped) -> Response[bytes]:
    """Name a session or a project: an entity that is not within that scope is answered as one that is not there.
    The header `X-Vademecum-Scope` says which scope it was, as `scope` does elsewhere."""
    services: Services = state.services
    async with services.users.open(request.user.id) as store:
        scope = await scoped.scope(store)
        return json_response(await entities.read(store, scope, entity_id), scope=scope)


@delete(
    "/v1/entities/{entity_id:str}",
    status_code=200,
    operation_id="deleteEntity",
    tags=["memory"],
    summary="Delete an entity",
    responses=problem_specs(NotFound, Conflict),
)
async def delete_route(request: Req, state: State, entity_id: FromPath[str], scoped: Scoped) -> Deleted:
    """Its relationships go with it. Name a session or a project, as in `getEntity`."""
    services: Services = state.services
    async with services.users.open(request.user.id) as store:
        scope = await scoped.scope(store)
        await store.write(lambda tx: write_row.delete(tx, scope, "entities", entity_id))
    return Deleted(1)


@get(
    "/v1/entities/{entity_id:str}/relationships",
    operation_id="listRelationships",
    tags=["memory"],
    summary="List what leaves an entity",
    responses=response_spec(ScopedRelationships) | problem_specs(NotFound, Conflict),
)
async def outbound_route(
    request: Req,
    state: State,
    entity_id: FromPath[str],
    scoped: Scoped,
    window: Windowed,
) -> Response[bytes]:
    """The relationships whose `fromId` it is, newest first. Name a session or a project, as in `getEntity`. In pages as
    `listSessions`."""
    services: Services = state.services
    async with services.users.open(request.user.id) as store:
        scope = await scoped.scope(store)
        return page_response(
            "relationships", await relationships.outbound(store, scope, entity_id, window), scope
        )


@post(
    "/v1/relationships",
    operation_id="connectEntities",
    tags=["memory"],
    summary="Connect two entities",
    responses=response_spec(Relationship, 201)
    | response_spec(Relationship)
    | problem_specs(NotFound, Conflict, LimitReached, TooLarge),
)
async def connect_route(request: Req, data: JSONBody[Edge], state: State, scoped: Scoped) -> Response[bytes]:
    """Both are of one project. 201 when the relationship is new; 200 and the one that is known, unchanged, if it was
    said before. Name a session or a project, as in `getEntity`."""
    services: Services = state.services
    limits = services.limits(request.user)
    async with services.users.open(request.user.id) as store:
        scope = await scoped.scope(store)
        row, new = await store.write(lambda tx: relationships.connect(tx, scope, data, limits))
    return row_response(row, new=new, scope=scope)


@delete(
    "/v1/relationships",
    status_code=200,
    operation_id="disconnectEntities",
    tags=["memory"],
    summary="Delete a relationship",
    responses=problem_specs(NotFound, Conflict),
)
async def disconnect_route(
    request: Req,
    state: State,
    scoped: Scoped,
    from_id: Annotated[str, QueryParameter(name="fromId")] = "",
    to_id: Annotated[str, QueryParameter(name="toId")] = "",
    label: FromQuery[str] = "",
    data: JSONBody[Edge | None] = None,
) -> Deleted:
    """Said by `fromId`, `toId` and `label`: as a JSON body, or, because proxies and clients may drop the body of a
    DELETE, in the address. The entities stay. Name a session or a project, as in `getEntity`."""
    services: Services = state.services
    edge = data or Edge(from_id, to_id, label)
    if not (edge.from_id and edge.to_id and edge.label):
        raise BadRequest("Say which relationship: `fromId`, `toId` and `label`. Nothing was changed.")
    async with services.users.open(request.user.id) as store:
        scope = await scoped.scope(store)
        await store.write(lambda tx: relationships.disconnect(tx, scope, edge))
    return Deleted(1)


ROUTES = [
    keep_route,
    of_type_route,
    get_route,
    delete_route,
    outbound_route,
    connect_route,
    disconnect_route,
]
