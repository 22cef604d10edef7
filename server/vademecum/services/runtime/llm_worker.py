"""Work: the jobs of a user's file are tried, one at a time, until each succeeds or has failed often enough.

A turn is one job; then it is the next user's. What a job makes and that it is done is one transaction, in which it must
still be what was begun: a row that was edited or deleted meanwhile has another job, or none. A crash leaves a job
`running`; whoever looks next tries it again, because nobody else does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

import structlog

from vademecum.errors import (
    AssistantBusy,
    AssistantKeyRefused,
    AssistantSilent,
    AssistantUnreachable,
    ModelUnknown,
    ReplyNotJson,
    VademecumError,
)
from vademecum.model.memory import job_triggers, jobs
from vademecum.model.memory.jobs import Job, Kind
from vademecum.model.records.store_interface import UserStores
from vademecum.model.schema import timestamps
from vademecum.model.sync.transaction import Transaction
from vademecum.services.memory.turn_jobs import list_new_turns

Doer = Callable[[str, Job], Awaitable[None]]
DEFECT = "The server failed at this. It is tried again."
CUT_OFF = "The server was stopped each time while it worked on this."
# That is for whoever runs the model to mend, and says nothing about the job.
OUT = (AssistantUnreachable, AssistantBusy, AssistantKeyRefused, ModelUnknown)

_log = structlog.get_logger("vademecum.work")


def unasked(error: VademecumError) -> bool:
    """Has the model not even got the question? One that then falls silent may do so at this question every time."""
    return isinstance(error, OUT) and not isinstance(error, AssistantSilent)


class Worker:
    """`doers`: how each kind of job is done. `again`: asks for another turn of this user, after so
    many seconds. `daily`: after how many questions a day an account's turns wait for the next; summaries count, and do
    not wait, because a person has asked for them."""

    def __init__(
        self,
        users: UserStores,
        doers: Mapping[Kind, Doer],
        daily: int,
        clock: Callable[[], str],
        again: Callable[[str, float], None],
        stops: Callable[[], bool],
    ) -> None:
        self._users = users
        self._doers = doers
        self._daily = daily
        self._clock = clock
        self._again = again
        self._stops = stops
        self._outs: dict[str, int] = {}  # user -> how often in a row the model was not there

    async def work(self, user_id: str) -> None:
        """A turn: the job that is due, if one is. What an orderly end cuts off is no attempt, also when it comes while that
        is written down: then nobody but the file knows whether it was."""
        begun: list[Job] = []
        asked = False
        try:
            async with self._users.open(user_id) as store:
                turns = list_new_turns(store)
                if not (turns or store.jobs.open):
                    return
                wait = await store.write(partial(self._begin, turns=turns, begun=begun))
                if not begun and list_new_turns(store):  # those were dead, or had nothing to say
                    wait = 0
            if begun:
                asked = True
                wait = await self._try(user_id, begun[0])
        except asyncio.CancelledError:
            if self._stops():
                await self._take_back(user_id, begun, asked=asked)
            raise
        if wait is not None:
            self._again(user_id, wait)

    def _begin(self, tx: Transaction, turns: Sequence[tuple[int, str]], begun: list[Job]) -> float | None:
        """Begins the job that is due, if one is: then it is in `begun`. Else in how many seconds there is something to do."""
        begun.clear()  # a version conflict runs this again
        job_triggers.create_turn_jobs(tx, turns)
        job, wait = self._next(tx)
        if job is None:
            return wait
        after: Job | None = jobs.start(job, tx.now)
        if job.attempts >= jobs.TRIES:
            after = jobs.retry_later(job, tx.now, CUT_OFF)
        if tx.row_state(job.subject) != "live":
            after = None
        tx.jobs.replace(job, after)
        if after is None or after.state != "running":
            return 0
        tx.jobs.llm_request_count += not job.found
        begun.append(after)
        return None

    def _next(self, tx: Transaction) -> tuple[Job | None, float | None]:
        """The job that is due; else in how many seconds one will be."""
        tried = tx.jobs.open()
        waits: list[float] = []
        if tx.jobs.llm_requests_on(timestamps.day(tx.now)) >= self._daily:
            held = [job for job in tried if job.kind == "extract" and job.state != "failed"]
            waits += [timestamps.until_midnight_s(tx.now)] * bool(held)
            tried = [job for job in tried if job.kind == "summarise"]
        job = jobs.first_due(tried)
        if job is not None:
            due = timestamps.seconds_until(job.due, tx.now)
            if due <= 0:
                return job, None
            waits.append(due)
        return None, min(waits, default=None)

    async def _take_back(self, user_id: str, begun: Sequence[Job], *, asked: bool) -> None:
        """`begun` is known when the write that may have begun it is over, as it is when the next one comes. Whatever fails
        here must not take the place of the cancelling, or the stop would wait for the next attempt."""

        def take_back(tx: Transaction) -> None:
            for attempt in begun:
                current = tx.jobs.get(attempt.id)
                if current is not None and jobs.is_same_attempt(current, attempt):
                    tx.jobs.put(jobs.postpone(current, tx.now, current.error, 0))
                    tx.jobs.llm_request_count -= not asked and not attempt.found

        try:
            async with self._users.open(user_id) as store:
                await store.write(take_back)
        except Exception as error:
            _log.error("an attempt that a stop cut off counts", exc_info=error)

    async def _try(self, user_id: str, job: Job) -> float:
        """Returns in how many seconds the next job may be tried: while the model is not there, they wait together."""
        outs = self._outs.pop(user_id, 0)
        pause = 0.0
        try:
            await self._doers[job.kind](user_id, job)
        except OUT as error:
            _log.warning("job waits for the model", kind=job.kind, code=error.code)
            self._outs[user_id] = outs + 1
            pause = max(jobs.backoff_s(outs + 1), error.retry_after_s or 0)
            how = partial(
                jobs.postpone if unasked(error) else jobs.retry_later, error=error.message, wait_s=pause
            )
            await self._put_off(user_id, job, how, unheard=unasked(error))
        except (
            ReplyNotJson
        ) as error:  # a model that fails twice at this most likely fails always, and each try costs
            _log.warning("reply is not JSON", kind=job.kind, attempts=job.attempts)
            settle = jobs.fail if job.error == error.message else jobs.retry_later
            await self._put_off(user_id, job, partial(settle, error=error.message))
        except VademecumError as error:
            _log.warning("job put off", kind=job.kind, attempts=job.attempts, code=error.code)
            wait_s = error.retry_after_s or 0
            await self._put_off(user_id, job, partial(jobs.retry_later, error=error.message, wait_s=wait_s))
        except Exception as error:
            _log.error("job failed", kind=job.kind, attempts=job.attempts, exc_info=error)
            await self._put_off(user_id, job, partial(jobs.retry_later, error=DEFECT))
        return pause

    async def _put_off(
        self, user_id: str, job: Job, how: Callable[[Job, str], Job], *, unheard: bool = False
    ) -> None:
        """What the model has answered stays with the job. `unheard`: its question was not asked after all."""
        now = self._clock()

        def put_off(tx: Transaction) -> None:
            tx.jobs.llm_request_count -= unheard
            current = tx.jobs.get(job.id)
            if current is not None and jobs.is_same_attempt(current, job):
                tx.jobs.put(how(current, now))

        async with self._users.open(user_id) as store:
            await store.write(put_off)
