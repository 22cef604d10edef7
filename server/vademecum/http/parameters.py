"""What routes are asked in the same way: within which scope, which page of a list, how much and how long at most."""

from typing import Annotated, NamedTuple

from litestar import Request
from litestar.datastructures import State
from litestar.di import NamedDependency, Provide
from litestar.exceptions import HTTPException
from litestar.params import QueryParameter
from msgspec import Meta

from vademecum.model.memory.scope import MemoryScope
from vademecum.model.records.accounts import Account, Token
from vademecum.model.records.store_interface import UserStore
from vademecum.services.memory.scope import parse_project_parameter, resolve_scope
from vademecum.services.sync.pagination import PageRequest, parse_page_request

Req = Request[Account, Token, State]
PAGE_MAX = 1000
PAGE_DEFAULT = 100  # rows, if the request has no limit
QUESTION_MAX = 10_000  # characters
RESULTS_MAX = 100
QueryText = Annotated[str, Meta(max_length=QUESTION_MAX)]
Results = Annotated[int, Meta(ge=1, le=RESULTS_MAX)]
# Of an address Litestar wants to be told by its own means.
ResultsInAddress = Annotated[int, QueryParameter(ge=1, le=RESULTS_MAX, description="The most results.")]
RowsOfPage = Annotated[int, QueryParameter(ge=1, le=PAGE_MAX, description="The most rows of a page.")]


async def reject_compressed(request: Req) -> None:
    """Before anything of the body is read: a packed one would be taken for broken JSON or for a damaged file."""
    how = request.headers.get("content-encoding", "").strip().lower()
    if how not in ("", "identity"):
        raise HTTPException(
            f"The body is packed (Content-Encoding: {how}), and packed bodies are not read here. Nothing was changed: send "
            "it as it is.",
            status_code=415,
        )


class RequestedScope(NamedTuple):
    """The scope that an address asks for."""

    session_id: str | None
    project: str | None

    async def scope(self, store: UserStore) -> MemoryScope:
        """Raises as `resolve` does."""
        return await resolve_scope(store, self.session_id, parse_project_parameter(self.project))


async def requested_scope(
    session_id: Annotated[
        str | None,
        QueryParameter(name="sessionId", description="The session that asks: what its project has is seen."),
    ] = None,
    project: Annotated[
        str | None,
        QueryParameter(
            name="project",
            description="Another project than the session's own, by its id or name; `*`: all that there is.",
        ),
    ] = None,
) -> RequestedScope:
    return RequestedScope(session_id, project)


async def requested_window(
    limit: RowsOfPage = PAGE_DEFAULT,
    cursor: Annotated[str, QueryParameter(description="The `next` of the page before; empty to begin.")] = "",
) -> PageRequest:
    """Raises BadRequest."""
    return parse_page_request(limit, cursor)


# Of parameters that are called `scoped` and `window`: routes have them by their names.
Scoped = NamedDependency[RequestedScope]
Windowed = NamedDependency[PageRequest]
DEPENDENCIES = {"scoped": Provide(requested_scope), "window": Provide(requested_window)}
