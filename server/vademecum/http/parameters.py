"""Define parameters that several routes share: the request, the scope, the page of a list and the number of results."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Annotated, Any, NamedTuple, TypeVar

from litestar import Request
from litestar.datastructures import State
from litestar.di import NamedDependency, Provide
from litestar.exceptions import HTTPException
from litestar.params import QueryParameter
from msgspec import Meta

from vademecum.model.memory.scope import MemoryScope
from vademecum.model.records.accounts import Account, Token
from vademecum.model.records.store_interface import UserStore
from vademecum.model.sync.quotas import Limits
from vademecum.model.sync.transaction import Transaction
from vademecum.services.memory.scope import parse_project_parameter, resolve_scope
from vademecum.services.runtime.composition import Services
from vademecum.services.sync.pagination import PageRequest, parse_page_request

T = TypeVar("T")


class Req(Request[Account, Token, State]):
    """A request of a signed-in account. In public routes `user` and `auth` are None.

    Routes read the services from the request, because injecting several of them would be slower (docs/decisions/0030).
    """

    @property
    def services(self) -> Services:
        services: Services = self.app.state.services
        return services

    @property
    def limits(self) -> Limits:
        return self.services.limits(self.user)

    def open_store(self) -> AbstractAsyncContextManager[UserStore]:
        """Open the store of the account."""
        return self.services.users.open(self.user.id)

    async def write(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` in a transaction on the store of the account."""
        async with self.open_store() as store:
            return await store.write(work)


PAGE_MAX = 1000
PAGE_DEFAULT = 100  # the number of rows on a page if the request has no limit
QUESTION_MAX = 10_000  # maximum length of a question in characters
RESULTS_MAX = 100
QueryText = Annotated[str, Meta(max_length=QUESTION_MAX)]
Results = Annotated[int, Meta(ge=1, le=RESULTS_MAX)]
# For query parameters, Litestar reads limits only from its own metadata, not from msgspec's `Meta`.
ResultsInAddress = Annotated[
    int, QueryParameter(ge=1, le=RESULTS_MAX, description="The maximum number of results.")
]
RowsOfPage = Annotated[
    int, QueryParameter(ge=1, le=PAGE_MAX, description="The maximum number of rows on a page.")
]


async def reject_compressed(request: Request[Any, Any, Any]) -> None:
    """Reject a compressed body before it is read, because it would look like invalid JSON or a damaged file."""
    encoding = request.headers.get("content-encoding", "").strip().lower()
    if encoding not in ("", "identity"):
        raise HTTPException(
            f"The server does not accept compressed bodies (Content-Encoding: {encoding}). Nothing was changed. Send the "
            "body uncompressed.",
            status_code=415,
        )


class RequestedScope(NamedTuple):
    """The scope that the query parameters select."""

    session_id: str | None
    project: str | None

    async def scope(self, store: UserStore) -> MemoryScope:
        """Resolve the parameters to a scope. Raises the errors of `resolve_scope`."""
        return await resolve_scope(store, self.session_id, parse_project_parameter(self.project))

    async def write(
        self, request: Req, work: Callable[[Transaction, MemoryScope], T]
    ) -> tuple[T, MemoryScope]:
        """Run `work` in a transaction. Return its result and the scope."""
        async with request.open_store() as store:
            scope = await self.scope(store)
            return await store.write(lambda tx: work(tx, scope)), scope


async def requested_scope(
    session_id: Annotated[
        str | None,
        QueryParameter(
            name="sessionId",
            description="The session on whose behalf the request is made. It selects the session's project.",
        ),
    ] = None,
    project: Annotated[
        str | None,
        QueryParameter(
            name="project",
            description="The id or name of a project, instead of the session's own; `*` for all projects.",
        ),
    ] = None,
) -> RequestedScope:
    return RequestedScope(session_id, project)


async def requested_window(
    limit: RowsOfPage = PAGE_DEFAULT,
    cursor: Annotated[
        str, QueryParameter(description="The `next` of the previous page; empty for the first page.")
    ] = "",
) -> PageRequest:
    """Return the page that the query parameters select. Raises BadRequest for an invalid cursor."""
    return parse_page_request(limit, cursor)


# Litestar injects these by name: the parameters must be called `scoped` and `window`.
Scoped = NamedDependency[RequestedScope]
Windowed = NamedDependency[PageRequest]
DEPENDENCIES = {"scoped": Provide(requested_scope), "window": Provide(requested_window)}
