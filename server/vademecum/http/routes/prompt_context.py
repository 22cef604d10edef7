"""Build the prompt for a question."""

import msgspec
from litestar import post
from litestar.params import JSONBody

from vademecum.errors import Busy, NotFound, TooLarge
from vademecum.http.disconnect import while_connected
from vademecum.http.parameters import QueryText, Req
from vademecum.http.problem_details import problem_specs
from vademecum.services.chat.prompt_context import Context, Question


class ContextQuestion(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    query: QueryText
    session_id: str
    system_prompt: str = ""


@post(
    "/v1/context",
    status_code=200,
    opt={"rate": "search"},
    operation_id="makeContext",
    tags=["search"],
    summary="Build the prompt for a question",
    responses=problem_specs(NotFound, TooLarge, Busy),
)
async def context_route(request: Req, data: JSONBody[ContextQuestion]) -> Context:
    """Build the prompt to send to a model before the question, within the token budgets of the tier. It contains the system
    prompt, relevant facts, the session's latest turns and summaries, recalled memories of its scope, and passages of its
    borrowed documents, but not the question. `dropped` lists the parts that did not fit. `scope` describes what was
    searched and which memories were recalled."""
    question = Question(data.query, data.session_id, system=data.system_prompt)
    requester = request.services.requester(request.user)
    return await while_connected(request, request.services.context_builder.context(requester, question))


ROUTES = [context_route]
