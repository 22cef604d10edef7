"""Create, search, read, restore and delete memories. Routes have a scope unless they concern the whole account."""

from functools import partial

import msgspec
from litestar import Response, delete, get, post
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
async def remember_route(request: Req, data: JSONBody[NewMemory]) -> Response[bytes]:
    """Store a memory in the session's project, or in the project with this id or name. Returns 201 if the memory is new. If
    the scope already has it, the result is `deduplicated`: an identical memory is refreshed (200). An older memory in almost
    the same words is superseded (`supersedes`) and kept as history. Superseding needs an embedding model; without one
    both memories are kept. Keys and passwords are not stored; if
    the text contained any, `redacted` is true."""
    statement = Statement(data.text, data.session_id, data.project, data.pinned)
    remembered = await request.services.memories.remember(request.user.id, statement, request.limits)
    is_known = remembered.deduplicated and remembered.supersedes is None
    return json_response(msgspec.json.encode(remembered), 200 if is_known else 201)


@post(
    "/v1/memories/search",
    status_code=200,
    opt={"rate": "search"},
    operation_id="searchMemories",
    tags=["memory"],
    summary="Search memories",
    responses=response_spec(FoundMemories) | problem_specs(NotFound, Conflict, Busy),
)
async def search_route(request: Req, data: JSONBody[MemoryQuestion]) -> Response[bytes]:
    """Search memories, best first. The `score` is 0.7 × relevance + 0.3 × recency; the recency of a memory halves every 30
    days unless it is pinned. Superseded memories are not found. Without a `query`, the most recent memories are returned.
    `project` is the id or name of a project, or null for all projects; if it is absent, the session's project is
    searched."""
    async with request.open_store() as store:
        scope = await resolve_scope(store, data.session_id, data.project)
    search = request.services.memories.search(request.user.id, scope, data.query, data.limit)
    hits = await while_connected(request, search)
    results = [
        {"memory": msgspec.Raw(hit.memory), "score": hit.score, "relevance": hit.relevance} for hit in hits
    ]
    return json_response(msgspec.json.encode({"scope": scope, "results": results}))


@get(
    "/v1/memories/stats",
    operation_id="countMemories",
    tags=["memory"],
    summary="Count memories",
)
async def stats_route(request: Req) -> Stats:
    """Count the memories of the whole account, with and without a project."""
    async with request.open_store() as store:
        return await memories.count_memories(store, Everything())


@post(
    "/v1/memories/reset",
    status_code=200,
    operation_id="forgetMemories",
    tags=["memory"],
    summary="Delete all memories",
)
async def reset_route(request: Req, data: JSONBody[Confirmed]) -> Deleted:
    """Delete every memory of the account, with and without a project, from the server and all devices. The body is
    `{"confirm": true}`."""
    if not data.confirm:
        raise BadRequest('To delete all memories, send {"confirm": true}. Nothing was changed.')
    return Deleted(await request.write(partial(delete_all, collection="memories")))


@get(
    "/v1/memories/{memory_id:str}",
    operation_id="getMemory",
    tags=["memory"],
    summary="Get a memory",
    responses=response_spec(Memory) | problem_specs(NotFound, Conflict),
)
async def get_route(request: Req, memory_id: FromPath[str], scoped: Scoped) -> Response[bytes]:
    """Return a memory. Name a session or a project; a memory outside that scope is not found. The header
    `X-Vademecum-Scope` contains the scope."""
    async with request.open_store() as store:
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
async def delete_route(request: Req, memory_id: FromPath[str], scoped: Scoped) -> Deleted:
    """Delete a memory and the memories that it supersedes. Name a session or a project, as in `getMemory`."""
    count, _ = await scoped.write(request, lambda tx, scope: memories.delete(tx, scope, memory_id))
    return Deleted(count)


@get(
    "/v1/memories/{memory_id:str}/history",
    operation_id="getMemoryHistory",
    tags=["memory"],
    summary="Get the history of a memory",
    responses=response_spec(ScopedMemories) | problem_specs(NotFound, Conflict),
)
async def history_route(request: Req, memory_id: FromPath[str], scoped: Scoped) -> Response[bytes]:
    """Return the versions of a memory, up to 8 MiB: the current text first, then the superseded ones. Name a session or a
    project, as in `getMemory`."""
    async with request.open_store() as store:
        scope = await scoped.scope(store)
        rows = await memories.history(store, scope, memory_id)
    return json_response(
        msgspec.json.encode({"scope": scope, "memories": [msgspec.Raw(row) for row in rows]})
    )


@post(
    "/v1/memories/{memory_id:str}/undo",
    status_code=200,
    operation_id="undoSupersede",
    tags=["memory"],
    summary="Restore a superseded memory",
    responses=response_spec(UndoneSupersede) | problem_specs(NotFound, Conflict, LimitReached),
)
async def undo_route(request: Req, memory_id: FromPath[str], scoped: Scoped) -> Response[bytes]:
    """Restore the memory that this memory superseded. Both memories are then current, and you can delete either. Name a
    session or a project, as in `getMemory`."""
    (memory, restored), scope = await scoped.write(
        request, lambda tx, scope: memories.undo_supersession(tx, scope, memory_id, request.limits)
    )
    return json_response(msgspec.json.encode({"scope": scope, "memory": memory, "restored": restored}))


@get(
    "/v1/sessions/{session_id:str}/memories",
    operation_id="listSessionMemories",
    tags=["memory"],
    summary="List the memories of a session",
    responses=response_spec(PagedMemories) | problem_specs(NotFound),
)
async def of_session_route(
    request: Req,
    session_id: FromPath[str],
    window: Windowed,
) -> Response[bytes]:
    """List the current memories from one session within its current scope, newest first, paged like `listSessions`."""
    async with request.open_store() as store:
        scope, page = await memories.list_by_session(store, session_id, window)
    return page_response("memories", page, scope)


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
