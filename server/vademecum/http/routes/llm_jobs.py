"""What the language model has to do behind the answers: how far it is, what failed, and trying that again."""

import msgspec
from litestar import get, post
from litestar.datastructures import State
from litestar.params import FromPath

from vademecum.errors import NotFound
from vademecum.http.parameters import PAGE_DEFAULT, Req, RowsOfPage
from vademecum.http.problem_details import problem_specs
from vademecum.model.memory.jobs import Job, Kind
from vademecum.model.memory.jobs import State as JobState
from vademecum.services.runtime import job_admin
from vademecum.services.runtime.container import Services


class JobInfo(msgspec.Struct, frozen=True):
    """`subject`: the row it is about, "collection/id". `due`: when it is tried, if it waits. `error`: why it did not
    succeed last time, in words; empty if it has not failed."""

    id: str
    kind: Kind
    subject: str
    state: JobState
    attempts: int
    due: str
    error: str


class Counts(msgspec.Struct):
    waiting: int = 0
    running: int = 0
    failed: int = 0
    done: int = 0


class ExtractionStatus(msgspec.Struct, rename="camel"):
    """Whether what is said becomes memory, and by which model; and of `daily` questions, how many it was asked today (UTC).
    `note` says it in words."""

    available: bool
    model: str | None
    daily: int
    today: int
    note: str


class Jobs(msgspec.Struct):
    extraction: ExtractionStatus
    counts: Counts
    jobs: list[JobInfo]


class RetriedJobs(msgspec.Struct):
    retried: int


def job_info(job: Job) -> JobInfo:
    return JobInfo(job.id, job.kind, job.subject, job.state, job.attempts, job.due, job.error)


@get(
    "/v1/jobs",
    operation_id="listJobs",
    tags=["assistant"],
    summary="What is done in the background?",
)
async def list_route(
    request: Req,
    state: State,
    limit: RowsOfPage = PAGE_DEFAULT,
) -> Jobs:
    """Newest first: extracting memory from turns that are over, and summaries that were asked for with `later`. A job that
    does not succeed is tried again, later each time; after ten attempts it has `failed` and waits for you. A reply that is
    not JSON is asked for once more only. While the
    assistant cannot be reached, is busy or refuses the key, jobs wait, at most an hour at a time, and nothing counts; one
    that takes the question and says nothing has been tried."""
    services: Services = state.services
    found = await job_admin.survey(services.users, request.user.id, limit, services.clock())
    extracting = _extraction_status(services, found.today)
    return Jobs(extracting, Counts(**found.counts), [job_info(job) for job in found.newest])


def _extraction_status(services: Services, today: int) -> ExtractionStatus:
    settings, endpoint = services.settings, services.summaries.endpoint
    daily = settings.extraction_daily
    note = f"What is said becomes memory, with up to {daily:,} questions a day."
    if endpoint is None:
        note = "Nothing is extracted: no assistant is set up on this server (VADEMECUM_ASSISTANT_URL)."
    elif not settings.extracts:
        note = "Nothing is extracted: it is switched off on this server (VADEMECUM_EXTRACTION_DAILY)."
    elif today >= daily:
        note = f"{daily:,} questions a day are allowed and were asked. What waits goes on after midnight UTC."
    return ExtractionStatus(
        settings.extracts, endpoint.model if endpoint is not None else None, daily, today, note
    )


@post(
    "/v1/jobs/retry",
    status_code=200,
    operation_id="retryJobs",
    tags=["assistant"],
    summary="Try all failed jobs again",
)
async def retry_all_route(request: Req, state: State) -> RetriedJobs:
    """All that have `failed` are due now, with as many attempts as new ones."""
    services: Services = state.services
    retried = await job_admin.retry_all(services.users, request.user.id, services.clock())
    services.background_jobs.schedule("work", request.user.id, 0)
    return RetriedJobs(retried)


@post(
    "/v1/jobs/{job:str}/retry",
    status_code=200,
    operation_id="retryJob",
    tags=["assistant"],
    summary="Try a job again now",
    responses=problem_specs(NotFound),
)
async def retry_route(request: Req, state: State, job: FromPath[str]) -> JobInfo:
    """One that has `failed`, or waits, is due now, with as many attempts as a new one. One that runs or is done stays so."""
    services: Services = state.services
    retried = await job_admin.retry_one(services.users, request.user.id, job, services.clock())
    services.background_jobs.schedule("work", request.user.id, 0)
    return job_info(retried)


ROUTES = [list_route, retry_all_route, retry_route]
