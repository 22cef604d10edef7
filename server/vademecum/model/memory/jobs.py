"""Define jobs of the language model. A job is about one row and is tried until it succeeds or has failed `TRIES` times.

The row that triggers a job is stored in the user's own file. So the job exists from the commit of that row on, even
after a crash (`job_triggers`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from vademecum.model.schema.timestamps import later

Kind = Literal["extract", "summarise"]
State = Literal["waiting", "running", "failed", "done"]

KIND_OF: dict[str, Kind] = {"episodes": "extract", "sessions": "summarise", "projects": "summarise"}
TRIES = 10
BACKOFF = 4  # each wait is this many times as long as the previous wait
BACKOFF_MAX_S = 3600.0


class Job(msgspec.Struct, frozen=True):
    """A job of the language model. migrations/0002_jobs.sql describes the fields."""

    id: str
    kind: Kind
    subject: str
    state: State
    attempts: int
    due: str
    asked: str
    error: str
    seq: int
    text: str
    found: str


@dataclass(slots=True)
class StoredJobs:
    """The committed jobs of a user.

    `open`: maps ids to the jobs that are not done. `read`: returns the done jobs with the given ids.
    `extracted_up_to_seq`: jobs of turns up to this `seq` are written; None if turns start no jobs. `last_llm_requests`:
    the last day (UTC) with a request to the language model, and the number of requests on that day.
    """

    open: dict[str, Job] = field(default_factory=dict)
    read: Callable[[list[str]], Mapping[str, Job]] = lambda ids: {}
    extracted_up_to_seq: int | None = None
    last_llm_requests: tuple[str, int] = ("", 0)

    def llm_requests_on(self, day: str) -> int:
        """Return the number of requests to the language model on `day` (UTC). Only the last day is stored."""
        last, count = self.last_llm_requests
        return count if last == day else 0

    def apply(self, jobs: Mapping[str, Job | None]) -> None:
        """Apply the job changes of a commit."""
        for job_id, job in jobs.items():
            if job is not None and is_open(job):
                self.open[job_id] = job
            else:
                self.open.pop(job_id, None)


def create(subject: str, seq: int, text: str, now: str) -> Job:
    """Return a new job about the row `subject`, due now."""
    return Job(
        id_of(subject), KIND_OF[_collection(subject)], subject, "waiting", 0, now, "", "", seq, text, ""
    )


def create_done(subject: str, seq: int, text: str) -> Job:
    """Return a job that is done without an attempt."""
    return complete(create(subject, seq, text, ""))


def id_of(subject: str) -> str:
    """Return the id of the job about a row. A row has at most one job, because each collection has one kind of job."""
    return f"{KIND_OF[_collection(subject)]}.{subject.replace('/', '.')}"


def _collection(subject: str) -> str:
    return subject.partition("/")[0]


def start(job: Job, now: str) -> Job:
    """Return the job as running. The attempt is counted now, so that a job that crashes the server fails eventually."""
    return msgspec.structs.replace(job, state="running", attempts=job.attempts + 1, asked=now)


def with_answer(job: Job, found: str) -> Job:
    """Return the job with a pending answer: the reply of the model, whose contents are not stored as rows yet."""
    return msgspec.structs.replace(job, found=found)


def is_same_attempt(one: Job, other: Job) -> bool:
    """Return whether two states of a job differ at most in the pending answer."""
    return with_answer(one, "") == with_answer(other, "")


def is_open(job: Job) -> bool:
    """Return whether the job is not done, so that the worker or the user still has to act."""
    return job.state != "done"


def first_due(among: Iterable[Job]) -> Job | None:
    """Return the job to try first. A job that is `running` here was interrupted by a crash."""
    unfinished = (job for job in among if job.state in ("waiting", "running"))
    return min(unfinished, key=lambda job: (job.due, job.seq, job.id), default=None)


def complete(job: Job) -> Job:
    """Return the job as done, without its pending answer."""
    return msgspec.structs.replace(job, state="done", error="", found="")


def retry_later(job: Job, now: str, error: str, wait_s: float = 0) -> Job:
    """Return the job to retry after the backoff, but at least `wait_s` seconds, or as failed after `TRIES` attempts.

    A failed job has no pending answer, because it may stay failed for a long time.
    """
    if job.attempts >= TRIES:
        return fail(job, now, error)
    due = later(now, max(backoff_s(job.attempts), wait_s))
    return msgspec.structs.replace(job, state="waiting", due=due, error=error)


def fail(job: Job, now: str, error: str) -> Job:
    """Return the job as failed. Only the user can start it again."""
    return msgspec.structs.replace(job, state="failed", due=now, error=error, found="")


def postpone(job: Job, now: str, error: str, wait_s: float) -> Job:
    """Return the job to retry after `wait_s` seconds.

    The attempt does not count, because it did not reach the model.
    """
    due = later(now, min(wait_s, BACKOFF_MAX_S))
    return msgspec.structs.replace(job, state="waiting", attempts=job.attempts - 1, due=due, error=error)


def reset(job: Job, now: str) -> Job:
    """Return the job with zero attempts, due now. A pending answer is kept."""
    return msgspec.structs.replace(job, state="waiting", attempts=0, due=now, error="")


def backoff_s(attempts: int) -> float:
    """Return the wait after `attempts` attempts, in seconds: 1, 4, 16 … 3600."""
    return min(float(BACKOFF ** (min(attempts, TRIES) - 1)), BACKOFF_MAX_S)


def digest(*texts: str) -> str:
    """Return a hash of the texts. A job stores it to detect later edits."""
    return hashlib.sha256("\0".join(texts).encode(errors="surrogatepass")).hexdigest()[:32]
