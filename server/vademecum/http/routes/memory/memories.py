"""Memories: remember, search, read, take back, forget. Every route but those of the whole account has a scope."""

from functools import partial

import msgspec
from litestar import Response, delete, get, post
from litestar.datastructures import State
from litestar.params import FromPath, JSONBody
from msgspec import UNSET, UnsetType

from vademecum.errors import BadRequest, Busy, Conflict, LimitReached, NotFound, TooLarge
from vademecum.http.disconnect import while_connected
from vademecum.http.parameters import QueryText, Req, Results, Scoped, Windowed
from vademecum.http.problem_details import problem_specs
from vademecum.http.responses import Deleted, json_response, page_response, response_spec
from vademecum.model.memory.scope import Everything, MemoryPartition, MemoryScope
from vademecum.model.schema.collections import Id, Memory, Text
from vademecum.services.memory import memories
from vademecum.services.memory.delete import delete_all
from vademecum.services.memory.memories import Stats
from vademecum.services.memory.remember import Statement
from vademecum.services.memory.scope import resolve_scope
from vademecum.services.runtime.container import Services


class NewMemory(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    text: Text
    session_id: Id | None = None
    project: str | UnsetType = UNSET
    pinned: bool = False


class RememberedMemory(msgspec.Struct):
    scope: MemoryPartition
    memory: Memory
    deduplicated: bool
    supersedes: str | None
    redacted: bool


class MemoryQuestion(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    query: QueryText = ""
    session_id: Id | None = None
    project: str | UnsetType | None = UNSET
    limit: Results = 10


class FoundMemory(msgspec.Struct):
    memory: Memory
    score: float
    relevance: float


class FoundMemories(msgspec.Struct):
    scope: MemoryScope
    results: list[FoundMemory]


class ScopedMemories(msgspec.Struct):
    scope: MemoryScope
    memories: list[Memory]


class PagedMemories(ScopedMemories):
    next: str | None


class UndoneSupersede(msgspec.Struct):
    scope: MemoryScope
    memory: Memory
    restored: Memory


class Confirmed(msgspec.Struct):
    confirm: bool = False


@post(
    "/v1/memories",
    operation_id="remember",
    tags=["memory"],
    summary="Remember a statement",
    responses=response_spec(RememberedMemory, 201)
    | response_spec(RememberedMemory)
    | problem_specs(NotFound, Conflict, LimitReached, TooLarge, Busy),
)
async def remember_route(request: Req, data: JSONBody[NewMemory], state: State) -> Response[bytes]:
    """In the project of the session, or in the one that is named by id or name. 201 when it is new. What the scope has
    already is `deduplicated`: to the letter, that memory is fresh again (200); in almost the same words, the new one
    `supersedes` it, and it stays as history. This needs a model with a fitted threshold (all-MiniLM-L6-v2); with E5 and
    without a model both stay. Keys and passwords are not stored: `redacted` says that the text held one."""
    services: Services = state.services
    said = Statement(data.text, data.session_id, data.project, data.pinned)
    kept = await services.memories.remember(request.user.id, said, services.limits(request.user))
    known = kept.deduplicated and kept.supersedes is None
    return json_response(msgspec.json.encode(kept), 200 if known else 201)


@post(
    "/v1/memories/search",
    status_code=200,
    opt={"rate": "search"},
    operation_id="searchMemories",
    tags=["memory"],
    summary="Search what is remembered",
    responses=response_spec(FoundMemories) | problem_specs(NotFound, Conflict, Busy),
)
async def search_route(request: Req, data: JSONBody[MemoryQuestion], state: State) -> Response[bytes]:
    """Best first: 0.7 of the `score` is how well a memory fits, 0.3 how lately it was said (half of it after 30 days;
    pinned ones do not fade). Superseded ones are not shown. Without a `query`, the freshest. `project`: absent, the
    session's own; null, all; else that one."""
    services: Services = state.services
    async with services.users.open(request.user.id) as store:
        scope = await resolve_scope(store, data.session_id, data.project)
    search = services.memories.search(request.user.id, scope, data.query, data.limit)
    hits = await while_connected(request, search)
    results = [
        {"memory": msgspec.Raw(hit.memory), "score": hit.score, "relevance": hit.relevance} for hit in hits
    ]
    return json_response(msgspec.json.encode({"scope": scope, "results": results}))


@get(
    "/v1/memories/stats",
    operation_id="countMemories",
    tags=["memory"],
    summary="Count what is remembered",
)
async def stats_route(request: Req, state: State) -> Stats:
    """Of the whole account: all projects, and what is in none."""
    services: Services = state.services
    async with services.users.open(request.user.id) as store:
        return await memories.count_memories(store, Everything())


@post(
    "/v1/memories/reset",
    status_code=200,
    operation_id="forgetMemories",
    tags=["memory"],
    summary="Forget all memories",
)
async def reset_route(request: Req, data: JSONBody[Confirmed], state: State) -> Deleted:
    """Every memory of one's own account, in all projects and in none, here and on all devices. The body is
    `{"confirm": true}`."""
    if not data.confirm:
        raise BadRequest('To forget every memory, send {"confirm": true}. Nothing was changed.')
    services: Services = state.services
    async with services.users.open(request.user.id) as store:
        return Deleted(await store.write(partial(delete_all, collection="memories")))


@get(
    "/v1/memories/{memory_id:str}",
    operation_id="getMemory",
    tags=["memory"],
    summary="Get one memory",
    responses=response_spec(Memory) | problem_specs(NotFound, Conflict),
)
async def get_route(request: Req, state: State, memory_id: FromPath[str], scoped: Scoped) -> Response[bytes]:
    """Name a session or a project: a memory that is not within that scope is answered as one that is not there.
    The header `X-Vademecum-Scope` says which scope it was, as `scope` does elsewhere."""
    services: Services = state.services
    async with services.users.open(request.user.id) as store:
        scope = await scoped.scope(store)
        return json_response(await memories.read(store, scope, memory_id), scope=scope)


@delete(
    "/v1/memories/{memory_id:str}",
    status_code=200,
    operation_id="deleteMemory",
    tags=["memory"],
    summary="Delete a memory",
    responses=problem_specs(NotFound, Conflict),
)
async def delete_route(request: Req, state: State, memory_id: FromPath[str], scoped: Scoped) -> Deleted:
    """The older texts that it took the place of go with it. Name a session or a project, as in `getMemory`."""
    services: Services = state.services
    async with services.users.open(request.user.id) as store:
        scope = await scoped.scope(store)
        return Deleted(await store.write(lambda tx: memories.delete(tx, scope, memory_id)))


@get(
    "/v1/memories/{memory_id:str}/history",
    operation_id="getMemoryHistory",
    tags=["memory"],
    summary="See what a memory said before",
    responses=response_spec(ScopedMemories) | problem_specs(NotFound, Conflict),
)
async def history_route(
    request: Req, state: State, memory_id: FromPath[str], scoped: Scoped
) -> Response[bytes]:
    """The current text first, then what it took the place of, as far as an answer of 8 MiB holds it. Name a session or a project, as in `getMemory`."""
    services: Services = state.services
    async with services.users.open(request.user.id) as store:
        scope = await scoped.scope(store)
        return _listed(scope, await memories.history(store, scope, memory_id))


@post(
    "/v1/memories/{memory_id:str}/undo",
    status_code=200,
    operation_id="undoSupersede",
    tags=["memory"],
    summary="Take back that a memory replaced another",
    responses=response_spec(UndoneSupersede) | problem_specs(NotFound, Conflict, LimitReached),
)
async def undo_route(request: Req, state: State, memory_id: FromPath[str], scoped: Scoped) -> Response[bytes]:
    """The text that this memory superseded is current again, beside it: nothing is lost, and either can be deleted.
    Name a session or a project, as in `getMemory`."""
    services: Services = state.services
    limits = services.limits(request.user)
    async with services.users.open(request.user.id) as store:
        scope = await scoped.scope(store)
        memory, restored = await store.write(
            lambda tx: memories.undo_supersession(tx, scope, memory_id, limits)
        )
    return json_response(msgspec.json.encode({"scope": scope, "memory": memory, "restored": restored}))


@get(
    "/v1/sessions/{session_id:str}/memories",
    operation_id="listSessionMemories",
    tags=["memory"],
    summary="List what was remembered in a session",
    responses=response_spec(PagedMemories) | problem_specs(NotFound),
)
async def of_session_route(
    request: Req,
    state: State,
    session_id: FromPath[str],
    window: Windowed,
) -> Response[bytes]:
    """The current memories that were said in it, newest first, within the scope that the session has now, in pages as
    `listSessions`."""
    services: Services = state.services
    async with services.users.open(request.user.id) as store:
        scope, page = await memories.list_by_session(store, session_id, window)
    return page_response("memories", page, scope)


def _listed(scope: MemoryScope, rows: list[bytes]) -> Response[bytes]:
    return json_response(
        msgspec.json.encode({"scope": scope, "memories": [msgspec.Raw(row) for row in rows]})
    )


ROUTES = [
    remember_route,
    search_route,
    stats_route,
    reset_route,
    get_route,
    delete_route,
    history_route,
    undo_route,
    of_session_route,
]
