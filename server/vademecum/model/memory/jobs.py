"""A job: what a language model is to do with one row, tried until it succeeds or has failed often enough.

What causes it is in the user's own file, so it is there from that commit on (`job_triggers`), whatever dies after.
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
BACKOFF = 4  # each wait is so many times the one before
BACKOFF_MAX_S = 3600.0


class Job(msgspec.Struct, frozen=True):
    """Fields as in migrations/0002_jobs.sql."""

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
    """What a user's file has of jobs. `open`: those that are not done, by id; `read`: the others with these ids. `followed`:
    up to which seq turns have been looked at for the jobs that they cause; None: they cause none. `asked`: the last day,
    UTC, on which the model was asked anything, and how often then."""

    open: dict[str, Job] = field(default_factory=dict)
    read: Callable[[list[str]], Mapping[str, Job]] = lambda ids: {}
    extracted_up_to_seq: int | None = None
    last_llm_requests: tuple[str, int] = ("", 0)

    def llm_requests_on(self, day: str) -> int:
        last, count = self.last_llm_requests
        return count if last == day else 0

    def apply(self, jobs: Mapping[str, Job | None]) -> None:
        """Take over what became of jobs."""
        for job_id, job in jobs.items():
            if job is not None and is_open(job):
                self.open[job_id] = job
            else:
                self.open.pop(job_id, None)


def create(subject: str, seq: int, text: str, now: str) -> Job:
    """A job about the row `subject`, due at once."""
    return Job(
        id_of(subject), KIND_OF[_collection(subject)], subject, "waiting", 0, now, "", "", seq, text, ""
    )


def create_done(subject: str, seq: int, text: str) -> Job:
    """As if it had been done, without an attempt."""
    return complete(create(subject, seq, text, ""))


def id_of(subject: str) -> str:
    """A row has one job, because a collection has one kind of them."""
    return f"{KIND_OF[_collection(subject)]}.{subject.replace('/', '.')}"


def _collection(subject: str) -> str:
    return subject.partition("/")[0]


def start(job: Job, now: str) -> Job:
    """Counted before it is tried, so that a job that brings the server down is not tried for ever."""
    return msgspec.structs.replace(job, state="running", attempts=job.attempts + 1, asked=now)


def with_answer(job: Job, found: str) -> Job:
    """The model has answered: what is left is to store it."""
    return msgspec.structs.replace(job, found=found)


def is_same_attempt(one: Job, other: Job) -> bool:
    """Are they the same but for what the model has answered?"""
    return with_answer(one, "") == with_answer(other, "")


def is_open(job: Job) -> bool:
    """Is there anything left to do, by the worker or by a person?"""
    return job.state != "done"


def first_due(among: Iterable[Job]) -> Job | None:
    """The one that is to be tried first, now or later. What runs when somebody looks was cut off by a crash."""
    tried = (job for job in among if job.state in ("waiting", "running"))
    return min(tried, key=lambda job: (job.due, job.seq, job.id), default=None)


def complete(job: Job) -> Job:
    return msgspec.structs.replace(job, state="done", error="", found="")


def retry_later(job: Job, now: str, error: str, wait_s: float = 0) -> Job:
    """It did not succeed: it waits, longer each time and at least `wait_s`, or has failed if it was tried enough. What the
    model has answered does not outlive the attempts: a person may take long to look."""
    if job.attempts >= TRIES:
        return fail(job, now, error)
    due = later(now, max(backoff_s(job.attempts), wait_s))
    return msgspec.structs.replace(job, state="waiting", due=due, error=error)


def fail(job: Job, now: str, error: str) -> Job:
    """Mark the job as failed: only a person starts it again."""
    return msgspec.structs.replace(job, state="failed", due=now, error=error, found="")


def postpone(job: Job, now: str, error: str, wait_s: float) -> Job:
    """Nobody was there to be asked: it waits, and the attempt does not count."""
    due = later(now, min(wait_s, BACKOFF_MAX_S))
    return msgspec.structs.replace(job, state="waiting", attempts=job.attempts - 1, due=due, error=error)


def reset(job: Job, now: str) -> Job:
    """As if it had not been tried; what the model has answered to one that waits is kept."""
    return msgspec.structs.replace(job, state="waiting", attempts=0, due=now, error="")


def backoff_s(attempts: int) -> float:
    """How long to wait after so many attempts: 1, 4, 16 … 3600 s."""
    return min(float(BACKOFF ** (min(attempts, TRIES) - 1)), BACKOFF_MAX_S)


def digest(*texts: str) -> str:
    """By which it is known whether a text was worked on."""
    return hashlib.sha256("\0".join(texts).encode(errors="surrogatepass")).hexdigest()[:32]
