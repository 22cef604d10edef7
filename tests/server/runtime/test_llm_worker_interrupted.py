"""LLM jobs that are interrupted by a clean shutdown, by a crash or by a full disk."""

import asyncio
import itertools
import time
from collections.abc import Coroutine

import msgspec
import pytest

from property.rows import episode
from server.in_process_server import reconnect, run, serve
from server.memory.extracting_server import (
    REPLY,
    list_jobs,
    push_turns,
    scenario_of,
    wait_for_jobs,
    wait_until_finished,
)
from server.scripted_llm import Rule
from vademecum.engines.duckdb import segments
from vademecum.model.memory import jobs
from vademecum.services.memory.turn_jobs import create_jobs_for_new_turns

NOW = "2026-01-01T00:00:00.000Z"


class Stepped(Coroutine):
    """A run of the worker. Its task is cancelled at the await number `last`, as by a shutdown."""

    def __init__(self, turn, last):
        self.turn, self.last, self.waits = turn, last, 0

    def send(self, value):
        waited_for = self.turn.send(value)
        self.waits += 1
        if self.waits == self.last:
            asyncio.get_running_loop().call_soon(asyncio.current_task().cancel)
        return waited_for

    def throw(self, *error):
        return self.turn.throw(*error)

    def close(self):
        self.turn.close()

    def __await__(self):
        return self.turn.__await__()


async def stopped_at(h, person, last, busy_s):
    """Run the worker while the writer is busy for `busy_s`, and cancel the run at its await number `last`.

    Return whether the cancellation interrupted the run, which may have fewer awaits.
    """
    async with h.services.users.open(person.id) as store:
        await create_jobs_for_new_turns(store)
        (job,) = (await store.list_jobs(1))[0]
        crashed = jobs.start(jobs.reset(jobs.with_answer(job, ""), NOW), NOW)
        await store.write(lambda tx: tx.jobs.put(crashed))
        h.services.background_jobs.is_closing = True
        busy = asyncio.create_task(store.write(lambda tx: time.sleep(busy_s)))
        # After the pause, the job's writes queue behind the busy write. Without it, they share its commit.
        await asyncio.sleep(0.005 if busy_s else 0)
        task = asyncio.create_task(Stepped(h.services.llm_jobs.run(person.id), last))
        await asyncio.wait([task, busy], timeout=30)
        await store.write(lambda tx: None)  # wait for the job's remaining writes
    return task.cancelled()


@pytest.mark.parametrize(
    ("rule", "ends"),
    [
        (Rule(say=[REPLY]), {("running", 1), ("waiting", 1), ("done", 2)}),
        (Rule(status=401), {("running", 1), ("waiting", 1)}),
        (Rule(say=["No."]), {("running", 1), ("waiting", 1), ("waiting", 2)}),
    ],
)
def test_clean_shutdown_does_not_count_as_job_attempt(tmp_path, rule, ends):
    """The job starts with one counted attempt, which a crash has interrupted."""
    seen = set()

    async def scenario(h, model, ada):
        await push_turns(ada)
        queue, tried = h.services.background_jobs.jobs["work"], []
        await queue.close()  # so that only the test runs jobs
        doers = h.services.llm_jobs._handlers
        extract = doers["extract"]
        doers["extract"] = lambda user_id, job: tried.append(job) or extract(user_id, job)
        for last, busy_s in ((last, busy_s) for last in itertools.count(1) for busy_s in (0, 0.02)):
            cut_off = await stopped_at(h, ada, last, busy_s)
            found = await list_jobs(ada)
            (job,) = found["jobs"]
            seen.add((job["state"], job["attempts"]))
            assert (job["state"], job["attempts"]) in ends, (
                f"wrong state after a cancellation at await number {last}: {job}"
            )
            assert found["extraction"]["today"] <= len(tried), (
                "only requests that may have been sent must count"
            )
            if not cut_off:
                break
        assert last > 8

    scenario_of(tmp_path, scenario, rule)
    assert seen == ends


def test_server_shutdown_does_not_wait_until_a_full_disk_has_space(tmp_path, monkeypatch):
    async def scenario(h, model, ada):
        await push_turns(ada)
        await wait_for_jobs(ada, lambda found: found["counts"]["running"])

        def full(cursor, statements):
            raise OSError("No space left on device")

        monkeypatch.setattr(segments, "commit", full)
        async with asyncio.timeout(60):
            await h.services.background_jobs.close()

    scenario_of(tmp_path, scenario, Rule(first_s=60))


def test_full_disk_does_not_prevent_listing_jobs(tmp_path, monkeypatch):
    commit = segments.commit

    def full(cursor, statements):
        raise OSError("No space left on device")

    async def scenario(h, model, ada):
        await push_turns(ada)
        await wait_for_jobs(ada, lambda found: found["counts"]["running"])
        await ada.push("episodes", episode("e2", "s1"))
        monkeypatch.setattr(segments, "commit", full)
        assert [job["subject"] for job in (await list_jobs(ada))["jobs"]] == ["episodes/e1"]
        monkeypatch.setattr(segments, "commit", commit)
        assert len((await list_jobs(ada))["jobs"]) == 2

    scenario_of(tmp_path, scenario, Rule(first_s=60))


def test_turns_are_extracted_after_server_starts_on_full_disk(tmp_path, monkeypatch):
    people, commit = [], segments.commit

    def full(cursor, statements):
        raise OSError("No space left on device")

    async def without():
        async with serve(tmp_path) as h:
            people.append(ada := await h.person())
            await push_turns(ada, episode("e0", "s1"))

    async def started(h, model, _):
        ada = reconnect(h, people[0])
        monkeypatch.setattr(segments, "commit", full)
        assert set(await ada.live("episodes")) == {"e0"}
        monkeypatch.setattr(segments, "commit", commit)
        await ada.push("episodes", episode("e1", "s1"))
        found = await wait_for_jobs(ada, lambda found: found["counts"]["done"])
        assert [job["subject"] for job in found["jobs"]] == ["episodes/e1"]

    run(without)
    scenario_of(tmp_path, started, Rule(say=[REPLY]))


def test_job_that_repeatedly_crashes_the_server_is_abandoned(tmp_path):
    async def scenario(h, model, ada):
        await push_turns(ada)
        await wait_until_finished(ada)
        async with h.services.users.open(ada.id) as store:
            (job,) = (await store.list_jobs(1))[0]
            cut_off = msgspec.structs.replace(job, state="running", attempts=jobs.TRIES)
            await store.write(lambda tx: tx.jobs.put(cut_off))
        h.services.background_jobs.schedule("work", ada.id, 0)
        found = await wait_for_jobs(ada, lambda found: found["counts"]["failed"])
        assert "stopped" in found["jobs"][0]["error"] and len(model.requests) == 1

    scenario_of(tmp_path, scenario, Rule(say=[REPLY]))
