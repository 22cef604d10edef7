"""What memory holds of jobs is what lies in the file, whatever became of them."""

import random

import pytest

from property.rows import episode, fact, project, session
from server.in_process_server import house, run
from vademecum.engines.duckdb import job_table
from vademecum.model.memory import jobs

NOW = "2026-01-01T00:00:00.000Z"
STEPS = {
    "begun": lambda job: jobs.start(job, NOW),
    "heard": lambda job: jobs.with_answer(job, "an answer"),
    "done": jobs.complete,
    "put off": lambda job: jobs.retry_later(job, NOW, "It failed."),
    "again": lambda job: jobs.reset(job, NOW),
    "gone": lambda job: None,
    "made anew": lambda job: jobs.create(job.subject, job.seq + 1, "another", NOW),
}


async def in_file(h, store):
    """As an opening would load it."""

    def load(cursor):
        meta = dict(cursor.execute(f"SELECT name, value FROM {store.alias}.main.meta").fetchall())
        return job_table.load_jobs(cursor, store.alias, meta)

    return await h.services.instance.run(load)


async def agree(h, store):
    loaded = await in_file(h, store)
    assert dict(store.open_jobs) == loaded.open
    assert store.llm_requests_on("2026-01-01") == loaded.llm_requests_on("2026-01-01")
    duplicates = f"SELECT id FROM {store.alias}.main.jobs GROUP BY id HAVING count(*) > 1"
    assert await h.services.instance.run(lambda c: c.execute(duplicates).fetchall()) == []


@pytest.mark.parametrize("seed", range(3))
def test_after_any_steps_memory_and_file_say_the_same(tmp_path, seed):
    chance = random.Random(seed)
    subjects = [f"episodes/e{number}" for number in range(12)]

    def some_steps(tx):
        known = tx.jobs.find(jobs.id_of(subject) for subject in subjects)
        for subject in chance.sample(subjects, chance.choice((1, 2, 9))):
            job = known.get(jobs.id_of(subject))
            if job is None:
                tx.jobs.put(jobs.create(subject, 1, "text", NOW))
            else:
                tx.jobs.replace(job, STEPS[chance.choice(list(STEPS))](job))
        tx.jobs.llm_request_count += chance.choice((0, 0, 1, 2, -1))

    async def scenario():
        async with house(tmp_path, clock=lambda: NOW) as h:
            ada = await h.person()
            await ada.push("projects", project("p1"))
            await ada.push("sessions", session("s1"))
            await ada.push("episodes", *(episode(f"e{number}", "s1") for number in range(12)))
            for number in range(40):
                async with h.services.users.open(ada.id) as store:
                    await store.write(some_steps)
                    await agree(h, store)
                if number % 10 == 9:  # what a model has answered may say what is deleted here
                    row = fact(f"f{number}")
                    await ada.push("facts", row)
                    await ada.push("facts", {**row, "_deleted": True}, assumed=row)
                    async with h.services.users.open(ada.id) as store:
                        await agree(h, store)
                        assert not any(job.found for job in store.open_jobs.values())
                if number % 20 == 19:
                    row = episode("e3", "s1")
                    await ada.push("episodes", {**row, "userMessage": "another text"}, assumed=row)
                    async with h.services.users.open(ada.id) as store:
                        await agree(h, store)
                        assert "extract.episodes.e3" not in store.open_jobs
                    await ada.push("episodes", row, assumed={**row, "userMessage": "another text"})
            await ada.push("sessions", {**session("s1"), "_deleted": True}, assumed=session("s1"))
            async with h.services.users.open(ada.id) as store:
                await agree(h, store)
                assert not store.open_jobs, "its turns are gone"

    run(scenario)
