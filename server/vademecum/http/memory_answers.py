"""What the routes of memory have in common: rows go out as they are stored, lists in pages, all of them with the scope
they were read in."""

from typing import Annotated, Any, NamedTuple

import msgspec
from litestar import Request, Response
from litestar.datastructures import State
from litestar.di import NamedDependency, Provide
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import QueryParameter

from vademecum.engines.duckdb.accounts import Account, Token
from vademecum.engines.duckdb.userstore import UserStore
from vademecum.model.collections import Json
from vademecum.model.scope import MemoryScope
from vademecum.services.pages import Page
from vademecum.services.scope import asked_in_address, resolve

Req = Request[Account, Token, State]
LIMIT = 100
SCOPE = "X-Vademecum-Scope"


def told(answer: Any, status: int = 200) -> dict[int, ResponseSpec]:
    """What the schema says of an answer that is put together of stored rows."""
    return {status: ResponseSpec(answer, generate_examples=False, description="Request fulfilled")}


def as_stored(row: bytes, status: int = 200, scope: MemoryScope | None = None) -> Response[bytes]:
    """`scope`: where the row was read or written, told in a header, for the body is the row alone."""
    echoed = {SCOPE: msgspec.json.encode(scope).decode()} if scope is not None else {}
    return Response(row, status_code=status, media_type="application/json", headers=echoed)


def written(row: Json, *, new: bool, scope: MemoryScope | None = None) -> Response[bytes]:
    return as_stored(msgspec.json.encode(row), 201 if new else 200, scope)


def paged(name: str, page: Page, scope: MemoryScope | None = None) -> Response[bytes]:
    """`name`: the field that holds the rows."""
    echoed = {"scope": scope} if scope is not None else {}
    answer = {**echoed, name: [msgspec.Raw(row) for row in page.rows], "next": page.next}
    return as_stored(msgspec.json.encode(answer))


class AskedScope(NamedTuple):
    """The scope that an address asks for."""

    session_id: str | None
    project: str | None

    async def scope(self, store: UserStore) -> MemoryScope:
        """Raises as `resolve` does."""
        return await resolve(store, self.session_id, asked_in_address(self.project))


async def asked_scope(
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
) -> AskedScope:
    return AskedScope(session_id, project)


Scoped = NamedDependency[AskedScope]  # of a parameter that is called `scoped`: routes have it by its name
SCOPED = {"scoped": Provide(asked_scope)}
