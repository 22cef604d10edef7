"""Search the documents that a session has borrowed."""

import msgspec
from litestar import post
from litestar.params import JSONBody

from vademecum.errors import Busy, TierTooLow
from vademecum.http.disconnect import while_connected
from vademecum.http.parameters import QueryText, Req, Results
from vademecum.http.problem_details import problem_specs
from vademecum.model.schema.json_values import SearchMode
from vademecum.services.search.document_search import Found


class Question(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    query: QueryText
    session_id: str
    k: Results = 10
    mode: SearchMode = "hybrid"


@post(
    "/v1/search",
    status_code=200,
    opt={"rate": "search"},
    operation_id="search",
    tags=["search"],
    summary="Search a session's documents",
    responses=problem_specs(TierTooLow, Busy),
)
async def search_route(request: Req, data: JSONBody[Question]) -> Found:
    """Search the documents that the session has borrowed and return the best passages, each with document, page and score.
    `scope` describes what was searched and how."""
    search = request.services.document_search.search(
        request.user.id, request.limits, data.query, data.session_id, data.k, data.mode
    )
    return await while_connected(request, search)


ROUTES = [search_route]
