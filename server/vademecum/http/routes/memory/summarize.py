"""Summaries of sessions and projects, written by the assistant's model."""

import msgspec
from litestar import Response, post
from litestar.datastructures import State
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import FromPath, FromQuery
from msgspec import UNSET, UnsetType

from vademecum.errors import (
    AnswerTooSlow,
    AssistantBroke,
    AssistantBusy,
    AssistantKeyRefused,
    AssistantUnreachable,
    Busy,
    LimitReached,
    ModelUnknown,
    NoAssistant,
    NotFound,
    NothingToSummarise,
)
from vademecum.http.disconnect import while_connected
from vademecum.http.parameters import Req
from vademecum.http.problem_details import problem_specs
from vademecum.http.routes.llm_jobs import JobInfo, job_info
from vademecum.services.runtime.container import Services


class SummaryRow(msgspec.Struct, rename="camel"):
    """The row of `summaries`: of a session, or of a project."""

    id: str
    content: str
    created_at: str
    updated_at: str
    session_id: str | UnsetType = UNSET
    project_id: str | UnsetType = UNSET


REFUSALS = problem_specs(
    NotFound,
    NothingToSummarise,
    LimitReached,
    NoAssistant,
    AssistantUnreachable,
    AssistantKeyRefused,
    ModelUnknown,
    AssistantBroke,
    AssistantBusy,
    AnswerTooSlow,
    Busy,
) | {202: ResponseSpec(JobInfo, False, "The job that makes it")}


@post(
    "/v1/sessions/{session_id:str}/summarize",
    status_code=200,
    opt={"rate": "answer"},
    operation_id="summarizeSession",
    tags=["assistant"],
    summary="Summarise a session",
    responses=REFUSALS,
)
async def session_route(
    request: Req, state: State, session_id: FromPath[str], later: FromQuery[bool] = False
) -> Response[SummaryRow | JobInfo]:
    """Its turns become a row of `summaries`, which takes the place of the session's earlier one. `NO_DATA` when nothing
    was said in it."""
    return await _summarize(request, state.services, f"sessions/{session_id}", later)


@post(
    "/v1/projects/{project_id:str}/summarize",
    status_code=200,
    opt={"rate": "answer"},
    operation_id="summarizeProject",
    tags=["assistant"],
    summary="Write a project's overview",
    responses=REFUSALS,
)
async def project_route(
    request: Req, state: State, project_id: FromPath[str], later: FromQuery[bool] = False
) -> Response[SummaryRow | JobInfo]:
    """Its sessions' summaries, or else their turns, become a row of `summaries` without a session, which takes the place
    of the earlier one. `NO_DATA` when there are none."""
    return await _summarize(request, state.services, f"projects/{project_id}", later)


async def _summarize(
    request: Req, services: Services, subject: str, later: bool
) -> Response[SummaryRow | JobInfo]:
    """With `later` the job, 202; else the row."""
    if later:
        job = await services.summaries.schedule(request.user.id, subject)
        return Response(job_info(job), status_code=202)
    with services.foreground.elsewhere():
        row = await while_connected(request, services.summaries.summarize_now(request.user.id, subject))
    return Response(msgspec.convert(row, SummaryRow))


ROUTES = [session_route, project_route]
