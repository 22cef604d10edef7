"""Run, list and retry the jobs of the language model, which are stored in each user's file.

A run attempts one job of a user. Then it is the next user's turn. One transaction stores the result of a job and
completes the job, unless the job has changed: if its row was edited or deleted during the attempt, the row has a new
job or none. After a crash a job may still be `running`. The next run attempts it again, because a user's runs never
overlap.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import structlog

from vademecum.errors import (
    AssistantBusy,
    AssistantKeyRefused,
    AssistantSilent,
    AssistantUnreachable,
    ModelUnknown,
    NotFound,
    ReplyNotJson,
    VademecumError,
)
from vademecum.model.memory import job_triggers, jobs
from vademecum.model.memory.jobs import Job, Kind
from vademecum.model.records.store_interface import UserStore, UserStores
from vademecum.model.schema import timestamps
from vademecum.model.sync.transaction import Transaction
from vademecum.services.memory.turn_jobs import create_jobs_for_new_turns, list_new_turns

Handler = Callable[[str, Job], Awaitable[None]]
DEFECT = "The server failed at this job. It will be retried."
INTERRUPTED = "The server stopped during each attempt at this job."
# Errors that the job did not cause: the operator must fix them, or they pass by themselves.
UNAVAILABLE = (AssistantUnreachable, AssistantBusy, AssistantKeyRefused, ModelUnknown)

_log = structlog.get_logger("vademecum.work")


def unasked(error: VademecumError) -> bool:
    """Return whether the request did not reach the model.

    A silent model counts as reached. Otherwise a job that always makes the model silent would be retried forever.
    """
    return isinstance(error, UNAVAILABLE) and not isinstance(error, AssistantSilent)


@dataclass(frozen=True)
class JobList:
    """The newest jobs of a user.

    `counts`: maps states to numbers of jobs. `requests_today`: requests to the language model since midnight UTC.
    """

    newest: list[Job]
    counts: dict[str, int]
    requests_today: int


class LlmJobs:
    """Runs, lists and retries the jobs of the language model.

    `handlers`: maps kinds of jobs to the functions that run them. `schedule`: schedules the next run of a user after a
    number of seconds. `daily_limit`: requests per day and account, after which extraction jobs wait for the next day.
    Summaries count towards the limit but do not wait, because a person requested them.
    """

    def __init__(
        self,
        users: UserStores,
        handlers: Mapping[Kind, Handler],
        daily_limit: int,
        clock: Callable[[], str],
        schedule: Callable[[str, float], None],
        is_closing: Callable[[], bool],
    ) -> None:
        self._users = users
        self._handlers = handlers
        self._daily_limit = daily_limit
        self._clock = clock
        self._schedule = schedule
        self._is_closing = is_closing
        self._outages: dict[str, int] = {}  # maps users to consecutive attempts without an available model

    async def list_jobs(self, user_id: str, limit: int) -> JobList:
        """Return the newest jobs, including those of all turns that a client may have seen."""
        async with self._users.open(user_id) as store:
            extracted_up_to = await self._create_missing_jobs(store)
            while True:
                newest, counts = await store.list_jobs(limit)
                # An edit during the listing deletes the turn's job. If jobs had to be created again, list again.
                before, extracted_up_to = extracted_up_to, await self._create_missing_jobs(store)
                if extracted_up_to == before:
                    today = timestamps.day(self._clock())
                    return JobList(newest, counts, store.jobs.llm_requests_on(today))

    @staticmethod
    async def _create_missing_jobs(store: UserStore) -> int | None:
        """Create the missing jobs of all committed turns. Return the `seq` up to which turns have their jobs."""
        try:
            await store.write(lambda tx: None)  # wait until all earlier commits are complete
            await create_jobs_for_new_turns(store)
        except Exception as error:  # only log it: even on a full disk, the stored jobs can be listed
            _log.error("cannot create jobs of turns", exc_info=error)
        return store.jobs.extracted_up_to_seq

    async def retry(self, user_id: str, job_id: str) -> Job:
        """Make a failed or waiting job due now. Raises NotFound for a missing job."""
        now = self._clock()

        def reset(tx: Transaction) -> Job:
            job = tx.jobs.get(job_id)
            if job is None:
                raise NotFound("There is no such job.")
            if job.state in ("failed", "waiting"):
                job = jobs.reset(job, now)
                tx.jobs.put(job)
            return job

        async with self._users.open(user_id) as store:
            await create_jobs_for_new_turns(store)
            job = await store.write(reset)
        self._schedule(user_id, 0)
        return job

    async def retry_all(self, user_id: str) -> int:
        """Make all failed jobs due now. Return their number."""
        now = self._clock()

        def reset(tx: Transaction) -> int:
            failed = [job for job in tx.jobs.open() if job.state == "failed"]
            tx.jobs.put(*(jobs.reset(job, now) for job in failed))
            return len(failed)

        async with self._users.open(user_id) as store:
            count = await store.write(reset)
        self._schedule(user_id, 0)
        return count

    async def run(self, user_id: str) -> None:
        """Attempt the job that is due, if any, and schedule the next run.

        A graceful stop undoes the attempt, even if it interrupts the wait for the transaction that starts the attempt.
        """
        started: list[Job] = []
        was_requested = False
        try:
            async with self._users.open(user_id) as store:
                turns = list_new_turns(store)
                if not (turns or store.jobs.open):
                    return
                wait_s = await store.write(partial(self._start, turns=turns, started=started))
                if not started and list_new_turns(store):  # process the next turns at once
                    wait_s = 0
            if started:
                was_requested = True
                wait_s = await self._attempt(user_id, started[0])
        except asyncio.CancelledError:
            if self._is_closing():
                await self._undo_attempt(user_id, started, was_requested=was_requested)
            raise
        if wait_s is not None:
            self._schedule(user_id, wait_s)

    def _start(self, tx: Transaction, turns: Sequence[tuple[int, str]], started: list[Job]) -> float | None:
        """Start the job that is due, if any, and add it to `started`. Otherwise return the seconds until the next run."""
        job_triggers.create_turn_jobs(tx, turns)
        started.clear()  # after a version conflict the transaction runs again
        job, wait_s = self._next(tx)
        if job is None:
            return wait_s
        after: Job | None = jobs.start(job, tx.now)
        if job.attempts >= jobs.TRIES:
            after = jobs.retry_later(job, tx.now, INTERRUPTED)
        if tx.row_state(job.subject) != "live":
            after = None
        tx.jobs.replace(job, after)
        if after is None or after.state != "running":
            return 0
        tx.jobs.llm_request_count += not job.found
        started.append(after)
        return None

    def _next(self, tx: Transaction) -> tuple[Job | None, float | None]:
        """Return (job, None) if a job is due, or (None, seconds until a job is due) if jobs wait.

        If neither is the case, return (None, None).
        """
        candidates = tx.jobs.open()
        waits: list[float] = []
        if tx.jobs.llm_requests_on(timestamps.day(tx.now)) >= self._daily_limit:
            if any(job.kind == "extract" and job.state != "failed" for job in candidates):
                waits.append(timestamps.until_midnight_s(tx.now))
            candidates = [job for job in candidates if job.kind == "summarise"]
        job = jobs.first_due(candidates)
        if job is not None:
            due_s = timestamps.seconds_until(job.due, tx.now)
            if due_s <= 0:
                return job, None
            waits.append(due_s)
        return None, min(waits, default=None)

    async def _undo_attempt(self, user_id: str, started: Sequence[Job], *, was_requested: bool) -> None:
        """Make the job in `started` due again, as if it had not been started, because the server stops.

        If no LLM request was sent, also subtract it from the daily count. Log an error instead of raising it: the
        caller must raise CancelledError, or else the stopping server would wait for another attempt.
        """

        def undo(tx: Transaction) -> None:
            # Writes run in order. If the write that starts the job was still queued, it has filled `started` by now.
            for attempt in started:
                current = tx.jobs.get(attempt.id)
                if current is not None and jobs.is_same_attempt(current, attempt):
                    tx.jobs.put(jobs.postpone(current, tx.now, current.error, 0))
                    tx.jobs.llm_request_count -= not was_requested and not attempt.found

        try:
            async with self._users.open(user_id) as store:
                await store.write(undo)
        except Exception as error:
            _log.error("cannot undo an interrupted attempt", exc_info=error)

    async def _attempt(self, user_id: str, job: Job) -> float:
        """Run the job.

        Return the seconds until the next job: while the model is unavailable, all jobs of the user wait.
        """
        outages = self._outages.pop(user_id, 0)
        wait_s = 0.0
        try:
            await self._handlers[job.kind](user_id, job)
        except UNAVAILABLE as error:
            _log.warning("job waits for the model", kind=job.kind, code=error.code)
            self._outages[user_id] = outages + 1
            wait_s = max(jobs.backoff_s(outages + 1), error.retry_after_s or 0)
            change = jobs.postpone if unasked(error) else jobs.retry_later
            await self._put_off(
                user_id,
                job,
                partial(change, error=error.message, wait_s=wait_s),
                was_requested=not unasked(error),
            )
        except ReplyNotJson as error:  # fail at the second such reply: further attempts cost money
            _log.warning("reply is not JSON", kind=job.kind, attempts=job.attempts)
            change_to = jobs.fail if job.error == error.message else jobs.retry_later
            await self._put_off(user_id, job, partial(change_to, error=error.message))
        except VademecumError as error:
            _log.warning("job put off", kind=job.kind, attempts=job.attempts, code=error.code)
            retry_s = error.retry_after_s or 0
            await self._put_off(user_id, job, partial(jobs.retry_later, error=error.message, wait_s=retry_s))
        except Exception as error:
            _log.error("job failed", kind=job.kind, attempts=job.attempts, exc_info=error)
            await self._put_off(user_id, job, partial(jobs.retry_later, error=DEFECT))
        return wait_s

    async def _put_off(
        self, user_id: str, job: Job, change: Callable[[Job, str], Job], *, was_requested: bool = True
    ) -> None:
        """Apply `change` to the job unless another write has changed it.

        A pending answer that was stored in the job does not count as a change.
        """
        now = self._clock()

        def put_off(tx: Transaction) -> None:
            tx.jobs.llm_request_count -= not was_requested
            current = tx.jobs.get(job.id)
            if current is not None and jobs.is_same_attempt(current, job):
                tx.jobs.put(change(current, now))

        async with self._users.open(user_id) as store:
            await store.write(put_off)
