"""Create, list and delete entities of projects and the relationships between them."""

from typing import Annotated

import msgspec
from litestar import Response, delete, get, post
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter

from vademecum.errors import BadRequest, Conflict, LimitReached, NotFound, TooLarge
from vademecum.http.parameters import Req, Scoped, Windowed
from vademecum.http.problem_details import problem_specs
from vademecum.http.responses import Deleted, json_response, page_response, response_spec, row_response
from vademecum.model.memory.scope import InProject, MemoryScope
from vademecum.model.schema.collections import Entity, EntityType, Id, Name, Relationship, Text
from vademecum.services.memory import entities, relationships
from vademecum.services.memory.relationships import Edge
from vademecum.services.sync import row_operations


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
    summary="Create or update an entity",
    responses=response_spec(Entity, 201)
    | response_spec(Entity)
    | problem_specs(NotFound, LimitReached, TooLarge),
)
async def keep_route(request: Req, data: JSONBody[NewEntity]) -> Response[bytes]:
    """Create an entity of a project, or update its notes. A project has one entity of each type and name, ignoring case,
    accents and spaces. Returns 201 if the entity is new; otherwise 200 and the existing entity, whose `notes` are replaced
    unless the new ones are empty. The header `X-Vademecum-Scope` contains the project."""
    scope, fields = InProject(data.project_id), msgspec.to_builtins(data)
    row, new = await request.write(lambda tx: entities.upsert(tx, scope, fields, request.limits))
    return row_response(row, new=new, scope=scope)


@get(
    "/v1/entities/by-type/{type:str}",
    operation_id="listEntities",
    tags=["memory"],
    summary="List the entities of a type",
    responses=response_spec(ScopedEntities) | problem_specs(NotFound, Conflict),
)
async def of_type_route(
    request: Req,
    type: FromPath[EntityType],
    scoped: Scoped,
    window: Windowed,
) -> Response[bytes]:
    """List the entities of a type, newest first, within the scope of the session or project that you name. A session without
    a project has no entities. The list is paged like `listSessions`."""
    async with request.open_store() as store:
        scope = await scoped.scope(store)
        return page_response("entities", await entities.list_by_type(store, scope, type, window), scope)


@get(
    "/v1/entities/{entity_id:str}",
    operation_id="getEntity",
    tags=["memory"],
    summary="Get an entity",
    responses=response_spec(Entity) | problem_specs(NotFound, Conflict),
)
async def get_route(request: Req, entity_id: FromPath[str], scoped: Scoped) -> Response[bytes]:
    """Return an entity. Name a session or a project; an entity outside that scope is not found. The header
    `X-Vademecum-Scope` contains the scope."""
    async with request.open_store() as store:
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
async def delete_route(request: Req, entity_id: FromPath[str], scoped: Scoped) -> Deleted:
    """Delete an entity and its relationships. Name a session or a project, as in `getEntity`."""
    await scoped.write(request, lambda tx, scope: row_operations.delete(tx, scope, "entities", entity_id))
    return Deleted(1)


@get(
    "/v1/entities/{entity_id:str}/relationships",
    operation_id="listRelationships",
    tags=["memory"],
    summary="List the relationships of an entity",
    responses=response_spec(ScopedRelationships) | problem_specs(NotFound, Conflict),
)
async def outbound_route(
    request: Req,
    entity_id: FromPath[str],
    scoped: Scoped,
    window: Windowed,
) -> Response[bytes]:
    """List the relationships that have this entity as `fromId`, newest first. Name a session or a project, as in `getEntity`.
    The list is paged like `listSessions`."""
    async with request.open_store() as store:
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
async def connect_route(request: Req, data: JSONBody[Edge], scoped: Scoped) -> Response[bytes]:
    """Create a relationship between two entities of the same project. Returns 201 if the relationship is new, otherwise 200
    and the existing relationship. Name a session or a project, as in `getEntity`."""
    (row, new), scope = await scoped.write(
        request, lambda tx, scope: relationships.connect(tx, scope, data, request.limits)
    )
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
    scoped: Scoped,
    from_id: Annotated[str, QueryParameter(name="fromId")] = "",
    to_id: Annotated[str, QueryParameter(name="toId")] = "",
    label: FromQuery[str] = "",
    data: JSONBody[Edge | None] = None,
) -> Deleted:
    """Delete a relationship; its entities are kept. Send `fromId`, `toId` and `label` as a JSON body or, because proxies and
    clients may drop the body of a DELETE, as query parameters. Name a session or a project, as in `getEntity`."""
    edge = data or Edge(from_id, to_id, label)
    if not (edge.from_id and edge.to_id and edge.label):
        raise BadRequest("Send `fromId`, `toId` and `label` of the relationship. Nothing was changed.")
    await scoped.write(request, lambda tx, scope: relationships.disconnect(tx, scope, edge))
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
