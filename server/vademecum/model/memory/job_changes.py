"""Collect the job changes of one transaction. Its reads combine them with the committed jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from vademecum.model.memory.jobs import Job, StoredJobs, is_open


class JobChanges:
    """The jobs that a transaction reads and changes.

    The engine stores these results with the rows:
    - `changed`: maps ids to new states of jobs; None deletes a job. `missing_ids`: ids that `find` did not find.
    - `extracted_up_to_seq`: as in `StoredJobs`, see `job_triggers.create_turn_jobs`.
    - `llm_request_count`: requests to the language model that this transaction starts, minus earlier ones that were not
      delivered.
    """

    def __init__(self, stored: StoredJobs) -> None:
        self.changed: dict[str, Job | None] = {}
        self.missing_ids: set[str] = set()
        self.extracted_up_to_seq = stored.extracted_up_to_seq
        self.llm_request_count = 0
        self._stored = stored

    def get(self, job_id: str) -> Job | None:
        """Return the job, or None if it does not exist."""
        return self.find([job_id]).get(job_id)

    def find(self, ids: Iterable[str]) -> dict[str, Job]:
        """Return the existing jobs among `ids`, by id. One statement reads all jobs that are not in memory."""
        job_ids = list(ids)
        stored = self._stored
        unread = [i for i in job_ids if i not in self.changed and i not in stored.open]
        closed = stored.read(unread) if unread else {}
        self.missing_ids.update(i for i in unread if i not in closed)
        jobs = {i: self.changed.get(i, stored.open.get(i, closed.get(i))) for i in job_ids}
        return {i: job for i, job in jobs.items() if job is not None}

    def open(self) -> list[Job]:
        """Return the jobs that are not done."""
        jobs = {**self._stored.open, **self.changed}.values()
        return [job for job in jobs if job is not None and is_open(job)]

    def put(self, *jobs: Job) -> None:
        """Store the jobs, replacing earlier states of the same ids."""
        self.changed.update((job.id, job) for job in jobs)

    def delete(self, job_id: str) -> None:
        """Delete the job if it exists."""
        self.changed[job_id] = None

    def replace(self, job: Job, after: Job | None) -> bool:
        """Replace `job` with `after`, or delete it if `after` is None.

        Change nothing and return False if the job has changed. So a worker cannot complete a job that another run has
        already taken over.
        """
        if self.get(job.id) != job:
            return False
        self.changed[job.id] = after
        return True

    def llm_requests_on(self, day: str) -> int:
        """Return how many requests jobs sent to the language model on `day` (UTC), this transaction included."""
        return self._stored.llm_requests_on(day) + self.llm_request_count

    def savepoint(self) -> Callable[[], None]:
        """Return a function that rolls back every change made after this call."""
        changed, extracted_up_to_seq, count = (
            dict(self.changed),
            self.extracted_up_to_seq,
            self.llm_request_count,
        )

        def undo() -> None:
            self.changed, self.extracted_up_to_seq, self.llm_request_count = (
                changed,
                extracted_up_to_seq,
                count,
            )

        return undo
