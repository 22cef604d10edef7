"""Summarize sessions and projects with the language model."""

import msgspec
from litestar import Response, post
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


class SummaryRow(msgspec.Struct, rename="camel"):
    """A row of `summaries`: the summary of a session or a project."""

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
) | {202: ResponseSpec(JobInfo, False, "The job that creates it")}


@post(
    "/v1/sessions/{session_id:str}/summarize",
    status_code=200,
    opt={"rate": "answer"},
    operation_id="summarizeSession",
    tags=["assistant"],
    summary="Summarize a session",
    responses=REFUSALS,
)
async def session_route(
    request: Req, session_id: FromPath[str], later: FromQuery[bool] = False
) -> Response[SummaryRow | JobInfo]:
    """Summarize the turns of a session as a row of `summaries`, which replaces the session's earlier summary. Returns
    `NO_DATA` if the session has no turns."""
    return await _summarize(request, f"sessions/{session_id}", later)


@post(
    "/v1/projects/{project_id:str}/summarize",
    status_code=200,
    opt={"rate": "answer"},
    operation_id="summarizeProject",
    tags=["assistant"],
    summary="Summarize a project",
    responses=REFUSALS,
)
async def project_route(
    request: Req, project_id: FromPath[str], later: FromQuery[bool] = False
) -> Response[SummaryRow | JobInfo]:
    """Create the overview of a project from the summaries of its sessions or, if there are none, from their turns. The
    overview is a row of `summaries` without a session and replaces the earlier overview. Returns `NO_DATA` if there are
    no summaries or turns."""
    return await _summarize(request, f"projects/{project_id}", later)


async def _summarize(request: Req, subject: str, later: bool) -> Response[SummaryRow | JobInfo]:
    """Create the summary and return its row or, if `later`, queue a job and return it with status 202."""
    services = request.services
    if later:
        job = await services.summaries.schedule(request.user.id, subject)
        return Response(job_info(job), status_code=202)
    with services.request_priority.waiting_on_upstream():
        row = await while_connected(request, services.summaries.summarize_now(request.user.id, subject))
    return Response(msgspec.convert(row, SummaryRow))


ROUTES = [session_route, project_route]
