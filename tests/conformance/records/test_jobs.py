"""Every records engine stores jobs and the ids of ingested events in the same commit as the rows that cause them."""

import asyncio
import random

import pytest

from conformance.records.engines import NOW
from property.rows import fact
from vademecum.model.memory import jobs

SUBJECTS = [f"episodes/e{number}" for number in range(12)]
STEPS = {
    "start": lambda job: jobs.start(job, NOW),
    "answer": lambda job: jobs.with_answer(job, "an answer"),
    "complete": jobs.complete,
    "retry": lambda job: jobs.retry_later(job, NOW, "It failed."),
    "reset": lambda job: jobs.reset(job, NOW),
    "delete": lambda job: None,
    "recreate": lambda job: jobs.create(job.subject, job.seq + 1, "another", NOW),
}


def enqueue(number=0):
    return lambda tx: tx.jobs.put(jobs.create(SUBJECTS[number], 1, "text", NOW))


def read_job(store, number=0):
    return store.jobs.open.get(jobs.id_of(SUBJECTS[number]))


def test_job_stored_with_its_row_survives_a_restart(engine):
    def cause(tx):
        tx.put("facts/f", fact("f"), b"{}")
        enqueue()(tx)

    async def write(store):
        await store.write(cause)
        return read_job(store)

    async def read(store):
        assert store.is_live("facts/f")
        return read_job(store)

    assert engine.run_for_ada(write) == engine.run_for_ada(read) == jobs.create(SUBJECTS[0], 1, "text", NOW)


def test_failed_transaction_stores_no_job_and_no_event_id(engine):
    async def scenario(store):
        def fail(tx):
            enqueue(1)(tx)
            tx.jobs.llm_request_count += 1
            tx.ingested_events.added_ids.append("event")
            raise ValueError("halfway")

        works = enqueue(0), fail, lambda tx: tx.ingested_events.find(["event"])
        answers = await asyncio.gather(*(store.write(work) for work in works), return_exceptions=True)
        assert isinstance(answers[1], ValueError) and answers[2] == set()
        assert read_job(store, 0) and not read_job(store, 1) and not await store.has_ingested_events()
        assert store.jobs.llm_requests_on(NOW[:10]) == 0

    engine.run_for_ada(scenario)


def test_only_one_worker_claims_a_job(engine):
    async def scenario(store):
        await store.write(enqueue())
        job = read_job(store)
        running = jobs.start(job, NOW)
        claims = await asyncio.gather(
            *(store.write(lambda tx: tx.jobs.replace(job, running)) for _ in range(3))
        )
        assert sorted(claims) == [False, False, True] and read_job(store) == running

    engine.run_for_ada(scenario)


def test_worker_cannot_complete_a_job_that_was_taken_over(engine):
    async def scenario(store):
        await store.write(enqueue())
        claimed = jobs.start(read_job(store), NOW)
        await store.write(lambda tx: tx.jobs.put(claimed))
        await store.write(lambda tx: tx.jobs.put(jobs.start(claimed, NOW)))
        assert not await store.write(lambda tx: tx.jobs.replace(claimed, jobs.complete(claimed)))
        assert read_job(store).attempts == 2

    engine.run_for_ada(scenario)


def test_completed_job_is_listed_but_not_open(engine):
    async def complete(store):
        await store.write(enqueue())
        running = jobs.start(read_job(store), NOW)
        await store.write(lambda tx: tx.jobs.put(jobs.complete(running)))
        return jobs.complete(running)

    async def check(store):
        assert store.jobs.open == {}
        assert await store.list_jobs(9) == ([done], {"done": 1})
        assert await store.write(lambda tx: tx.jobs.get(done.id)) == done

    done = engine.run_for_ada(complete)
    engine.run_for_ada(check)


def test_newest_jobs_are_listed_first_with_counts_by_state(engine):
    async def scenario(store):
        for number in range(4):
            job = jobs.create(SUBJECTS[number], number, "text", NOW)
            await store.write(lambda tx, job=job: tx.jobs.put(job if job.seq else jobs.fail(job, NOW, "no")))
        newest, counts = await store.list_jobs(2)
        assert [job.seq for job in newest] == [3, 2] and counts == {"waiting": 3, "failed": 1}

    engine.run_for_ada(scenario)


def test_ingested_events_are_known_until_they_expire(engine):
    async def add(store):
        await store.write(lambda tx: tx.ingested_events.added_ids.extend(["a", "b"]))

    async def check(store):
        assert await store.write(lambda tx: tx.ingested_events.find(["a", "c"])) == {"a"}

        def expire(before):
            def work(tx):
                tx.ingested_events.expire_before = before

            return work

        await store.write(expire(NOW))
        assert await store.has_ingested_events()
        await store.write(expire("2026-01-02"))
        assert not await store.has_ingested_events()

    engine.run_for_ada(add)
    engine.run_for_ada(check)


def test_forget_everything_drops_the_ids_of_ingested_events(engine):
    async def scenario(store):
        await store.write(lambda tx: tx.ingested_events.added_ids.append("a"))
        await store.write(lambda tx: tx.forget_everything(NOW))
        assert not await store.has_ingested_events()

    engine.run_for_ada(scenario)


@pytest.mark.parametrize("seed", range(3))
def test_restart_restores_jobs_after_random_changes(engine, seed):
    chance = random.Random(seed)

    def change_some(tx):
        known = tx.jobs.find(map(jobs.id_of, SUBJECTS))
        for subject in chance.sample(SUBJECTS, chance.choice((1, 2, 9))):
            job = known.get(jobs.id_of(subject))
            if job is None:
                tx.jobs.put(jobs.create(subject, 1, "text", NOW))
            else:
                assert tx.jobs.replace(job, STEPS[chance.choice(list(STEPS))](job))
        tx.jobs.llm_request_count += chance.choice((0, 0, 1, 2, -1))

    async def state(store):
        newest, counts = await store.list_jobs(99)
        assert len({job.id for job in newest}) == len(newest) == sum(counts.values())
        return dict(store.jobs.open), store.jobs.llm_requests_on(NOW[:10]), newest, counts

    async def write(store):
        for _ in range(20):
            await store.write(change_some)
        return await state(store)

    for _ in range(2):
        assert engine.run_for_ada(write) == engine.run_for_ada(state)
