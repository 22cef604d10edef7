"""List and retry the background jobs of the language model."""

import msgspec
from litestar import get, post
from litestar.params import FromPath

from vademecum.errors import NotFound
from vademecum.http.parameters import PAGE_DEFAULT, Req, RowsOfPage
from vademecum.http.problem_details import problem_specs
from vademecum.model.memory.jobs import Job, Kind
from vademecum.model.memory.jobs import State as JobState
from vademecum.services.runtime.composition import Services


class JobInfo(msgspec.Struct, frozen=True):
    """A background job. `subject` is the row that the job processes, as "collection/id". `due` is the time of the next
    attempt of a waiting job. `error` describes the last failed attempt and is empty if there is none."""

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
    """States whether memory is extracted from conversations, and with which model. `today` counts the requests to the model
    since midnight UTC, of at most `daily`. `note` describes the status for people."""

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
    summary="List background jobs",
)
async def list_route(
    request: Req,
    limit: RowsOfPage = PAGE_DEFAULT,
) -> Jobs:
    """List background jobs, newest first. Jobs extract memory from finished turns and create summaries requested with
    `later`. The server retries a failing job with growing delays; after ten attempts the job is `failed` and you can
    retry it. If the model's reply is not JSON, the server repeats the request only once. While the assistant is
    unreachable or busy, or rejects the key, jobs wait at most an hour at a time and no attempt is counted. If the
    assistant accepts a request and sends nothing, that counts as an attempt."""
    services = request.services
    jobs = await services.llm_jobs.list_jobs(request.user.id, limit)
    extraction = _extraction_status(services, jobs.requests_today)
    return Jobs(extraction, Counts(**jobs.counts), [job_info(job) for job in jobs.newest])


def _extraction_status(services: Services, today: int) -> ExtractionStatus:
    settings, endpoint = services.settings, services.summaries.endpoint
    daily = settings.extraction_daily
    note = (
        f"Memory is extracted from conversations, with up to {daily:,} requests to the language model a day."
    )
    if endpoint is None:
        note = "No memory is extracted: no assistant is configured on this server (VADEMECUM_ASSISTANT_URL)."
    elif not settings.extracts:
        note = "No memory is extracted: it is turned off on this server (VADEMECUM_EXTRACTION_DAILY)."
    elif today >= daily:
        note = f"Today's {daily:,} requests have been used. Waiting jobs run after midnight UTC."
    return ExtractionStatus(
        settings.extracts, endpoint.model if endpoint is not None else None, daily, today, note
    )


@post(
    "/v1/jobs/retry",
    status_code=200,
    operation_id="retryJobs",
    tags=["assistant"],
    summary="Retry all failed jobs",
)
async def retry_all_route(request: Req) -> RetriedJobs:
    """Schedule all `failed` jobs to run now, with as many attempts as new jobs."""
    return RetriedJobs(await request.services.llm_jobs.retry_all(request.user.id))


@post(
    "/v1/jobs/{job:str}/retry",
    status_code=200,
    operation_id="retryJob",
    tags=["assistant"],
    summary="Retry a job now",
    responses=problem_specs(NotFound),
)
async def retry_route(request: Req, job: FromPath[str]) -> JobInfo:
    """Schedule a `failed` or `waiting` job to run now, with as many attempts as a new job. A job in another state is returned
    unchanged."""
    return job_info(await request.services.llm_jobs.retry(request.user.id, job))


ROUTES = [list_route, retry_all_route, retry_route]
