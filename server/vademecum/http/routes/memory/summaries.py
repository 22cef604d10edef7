"""Create, list, change and delete summaries of sessions and projects."""

import msgspec
from litestar import Response, delete, get, patch, post
from litestar.params import FromPath, JSONBody

from vademecum.errors import Conflict, LimitReached, NotFound, TooLarge
from vademecum.http.parameters import Req, Scoped, Windowed
from vademecum.http.problem_details import problem_specs
from vademecum.http.responses import Deleted, page_response, response_spec, row_response
from vademecum.model.memory.scope import MemoryScope
from vademecum.model.schema.collections import Id, Summary, Text
from vademecum.services.memory import summaries
from vademecum.services.sync import row_operations


class NewSummary(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    content: Text
    session_id: Id | None = None
    project_id: Id | None = None


class SummaryChange(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    content: Text


class ScopedSummaries(msgspec.Struct):
    scope: MemoryScope
    summaries: list[Summary]
    next: str | None


@post(
    "/v1/summaries",
    operation_id="createSummary",
    tags=["memory"],
    summary="Create a summary",
    responses=response_spec(Summary, 201) | problem_specs(NotFound, LimitReached, TooLarge),
)
async def create_route(request: Req, data: JSONBody[NewSummary]) -> Response[bytes]:
    """Store a summary of a session (`sessionId`) or, without `sessionId`, the overview of a project (`projectId`)."""
    fields = msgspec.to_builtins(data)
    row = await request.write(lambda tx: summaries.create(tx, fields, request.limits))
    return row_response(row, new=True)


@get(
    "/v1/sessions/{session_id:str}/summaries",
    operation_id="listSessionSummaries",
    tags=["memory"],
    summary="List a session's summaries",
    responses=response_spec(ScopedSummaries) | problem_specs(NotFound),
)
async def of_session_route(
    request: Req,
    session_id: FromPath[str],
    window: Windowed,
) -> Response[bytes]:
    """List the summaries of a session, newest first, paged like `listSessions`. `scope` is the current scope of the
    session."""
    async with request.open_store() as store:
        scope, page = await summaries.list_by_session(store, session_id, window)
    return page_response("summaries", page, scope)


@patch(
    "/v1/summaries/{summary_id:str}",
    operation_id="changeSummary",
    tags=["memory"],
    summary="Change a summary",
    responses=response_spec(Summary) | problem_specs(NotFound, Conflict, LimitReached, TooLarge),
)
async def change_route(
    request: Req, summary_id: FromPath[str], data: JSONBody[SummaryChange], scoped: Scoped
) -> Response[bytes]:
    """Change the text of a summary. Name a session or a project; a summary outside that scope is not found."""
    fields = msgspec.to_builtins(data)
    row, scope = await scoped.write(
        request, lambda tx, scope: summaries.change(tx, scope, summary_id, fields, request.limits)
    )
    return row_response(row, new=False, scope=scope)


@delete(
    "/v1/summaries/{summary_id:str}",
    status_code=200,
    operation_id="deleteSummary",
    tags=["memory"],
    summary="Delete a summary",
    responses=problem_specs(NotFound, Conflict),
)
async def delete_route(request: Req, summary_id: FromPath[str], scoped: Scoped) -> Deleted:
    """Delete a summary from every device. Its session or project is kept. Name a session or a project, as in
    `changeSummary`."""
    await scoped.write(request, lambda tx, scope: row_operations.delete(tx, scope, "summaries", summary_id))
    return Deleted(1)


ROUTES = [create_route, of_session_route, change_route, delete_route]
