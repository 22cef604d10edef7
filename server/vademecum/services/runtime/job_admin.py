"""Retry: what the jobs of a user have come to, and trying those again that did not succeed."""

from __future__ import annotations

from dataclasses import dataclass

import structlog

from vademecum.errors import NotFound
from vademecum.model.memory import jobs
from vademecum.model.memory.jobs import Job
from vademecum.model.records.store_interface import UserStore, UserStores
from vademecum.model.schema import timestamps
from vademecum.model.sync.transaction import Transaction
from vademecum.services.memory.turn_jobs import create_jobs_for_new_turns

_log = structlog.get_logger("vademecum.work")


@dataclass(frozen=True)
class Survey:
    """`today`: questions that jobs have asked since midnight UTC."""

    newest: list[Job]
    counts: dict[str, int]
    today: int


async def survey(users: UserStores, user_id: str, limit: int, now: str) -> Survey:
    async with users.open(user_id) as store:
        followed = await _take_up(store)
        while True:
            newest, counts = await store.list_jobs(limit)
            # A turn that was edited meanwhile has lost its job, and no other one may have been written down for it then.
            before, followed = followed, await _take_up(store)
            if followed == before:
                return Survey(newest, counts, store.jobs.llm_requests_on(timestamps.day(now)))


async def _take_up(store: UserStore) -> int | None:
    """Take up all turns that any reader may have seen. Returns up to which seq that is."""
    try:
        await store.write(lambda tx: None)  # done after every commit that has begun
        await create_jobs_for_new_turns(store)
    except Exception as error:  # a full disk: what is written down can be looked at all the same
        _log.error("jobs of turns are not written down yet", exc_info=error)
    return store.jobs.extracted_up_to_seq


async def retry_one(users: UserStores, user_id: str, job_id: str, now: str) -> Job:
    """Raises NotFound."""

    def again(tx: Transaction) -> Job:
        job = tx.jobs.get(job_id)
        if job is None:
            raise NotFound("There is no such job.")
        if job.state in ("failed", "waiting"):
            job = jobs.reset(job, now)
            tx.jobs.put(job)
        return job

    async with users.open(user_id) as store:
        await create_jobs_for_new_turns(store)
        return await store.write(again)


async def retry_all(users: UserStores, user_id: str, now: str) -> int:
    """All that have failed. Returns how many."""

    def again(tx: Transaction) -> int:
        failed = [job for job in tx.jobs.open() if job.state == "failed"]
        tx.jobs.put(*(jobs.reset(job, now) for job in failed))
        return len(failed)

    async with users.open(user_id) as store:
        return await store.write(again)
