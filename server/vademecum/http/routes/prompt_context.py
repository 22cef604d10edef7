"""What a model should be told before a question of a session."""

import msgspec
from litestar import post
from litestar.datastructures import State
from litestar.params import JSONBody

from vademecum.errors import Busy, NotFound, TooLarge
from vademecum.http.disconnect import while_connected
from vademecum.http.parameters import QueryText, Req
from vademecum.http.problem_details import problem_specs
from vademecum.services.chat.prompt_context import Context, Question
from vademecum.services.runtime.container import Services


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
    summary="Make the prompt for a question",
    responses=problem_specs(NotFound, TooLarge, Busy),
)
async def context_route(request: Req, data: JSONBody[ContextQuestion], state: State) -> Context:
    """What to tell a model before the question, within the tier's budgets of tokens: the system prompt, the facts that
    belong to the question, the session's latest turns and summaries, what memory recalls within the scope of the session,
    and passages of the documents it has borrowed. The question itself is not in it. `dropped` names what did not fit, `scope` says what was
    looked at, and which rows of memory were recalled."""
    services: Services = state.services
    question = Question(data.query, data.session_id, system=data.system_prompt)
    return await while_connected(request, services.contexts.context(services.asker(request.user), question))


ROUTES = [context_route]
