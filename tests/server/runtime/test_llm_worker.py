"""The worker of LLM jobs: it needs a model, stops at the daily limit, and uses backoff after failures."""

import asyncio

import msgspec

from property.rows import episode, fact
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
from vademecum.model.schema import timestamps
from vademecum.services.memory import turn_jobs

NOW = "2026-01-01T00:00:00.000Z"


def test_llm_jobs_survive_server_start_without_an_assistant(tmp_path):
    people = []

    async def stopped(h, model, ada):
        people.append(ada)
        await push_turns(ada)
        await wait_for_jobs(ada, lambda found: found["counts"]["running"])

    async def without():
        async with serve(tmp_path) as h:
            ada = reconnect(h, people[0])
            assert (await list_jobs(ada))["jobs"][0]["attempts"] == 0, (
                "a clean shutdown must not count as an attempt"
            )
            await ada.call("POST", "/v1/jobs/retry")
            await asyncio.sleep(0.5)
            assert (await list_jobs(ada))["counts"]["waiting"] == 1, (
                "the job must wait while there is no assistant"
            )

    async def started(h, model, _):
        ada = reconnect(h, people[0])
        await wait_for_jobs(ada, lambda found: found["counts"]["done"] == 1)

    scenario_of(tmp_path, stopped, Rule(say=[REPLY], first_s=60))
    run(without)
    scenario_of(tmp_path, started, Rule(say=[REPLY]))


def test_turns_pushed_while_no_assistant_is_configured_are_not_extracted(
    tmp_path,
):
    people = []
    first, second, third = (episode(f"e{n}", "s1", userMessage=f"turn {n}") for n in (1, 2, 3))

    def subjects(found):
        return sorted(job["subject"] for job in found["jobs"])

    async def stopped(h, model, ada):
        people.append(ada)
        await push_turns(ada, first)
        await wait_for_jobs(ada, lambda found: found["counts"]["running"])
        # The worker has not found it yet, because it waits for the first reply.
        await ada.push("episodes", second)

    async def without():
        async with serve(tmp_path) as h:
            ada = reconnect(h, people[0])
            await ada.push("episodes", third)
            found = await list_jobs(ada)
            assert subjects(found) == ["episodes/e1", "episodes/e2"] and found["counts"]["waiting"] == 2

    async def started(h, model, _):
        ada = reconnect(h, people[0])
        await ada.call("GET", "/v1/jobs")
        found = await wait_until_finished(ada)
        assert subjects(found) == ["episodes/e1", "episodes/e2"] and found["counts"]["done"] == 2
        await ada.push("episodes", {**third, "aiResponse": "Said anew."}, assumed=third)
        await wait_for_jobs(ada, lambda found: found["counts"]["done"] == 3)

    scenario_of(tmp_path, stopped, Rule(say=[REPLY], first_s=60))
    run(without)
    scenario_of(tmp_path, started, Rule(say=[REPLY]))


def test_extraction_job_exists_from_the_commit_of_its_turn(tmp_path):
    """The job list and a request by job id find the job even before the worker has found the turn."""

    async def scenario(h, model, ada):
        await push_turns(ada)
        await wait_for_jobs(ada, lambda found: found["counts"]["running"])
        await ada.push("episodes", episode("e2", "s1", userMessage="turn 2"))
        retried = await ada.call("POST", "/v1/jobs/extract.episodes.e2/retry")
        assert (retried.status_code, retried.json()["state"]) == (200, "waiting")
        await ada.push("episodes", episode("e3", "s1", userMessage="turn 3"))
        assert (await list_jobs(ada))["counts"]["waiting"] == 2

    scenario_of(tmp_path, scenario, Rule(say=[REPLY], first_s=60))


def test_extraction_finds_turn_after_many_deleted_turns(tmp_path, monkeypatch):
    """The worker reads turns in batches. It must continue by itself, because no later event wakes it."""
    monkeypatch.setattr(turn_jobs, "BATCH_TURNS", 2)

    async def scenario(h, model, ada):
        queue = h.services.background_jobs.jobs["work"]
        await push_turns(ada)
        await wait_until_finished(ada)
        await queue.drain(ada.id)
        many = [episode(f"d{number}", "s1", status="failed") for number in range(7)]
        await ada.push("episodes", *many)
        await ada.push("episodes", *({**row, "_deleted": True} for row in many))
        await ada.push("episodes", episode("e2", "s1", userMessage="turn 2"))
        await queue.drain(ada.id)
        async with h.services.users.open(ada.id) as store:
            done = [job.subject for job in (await store.list_jobs(9))[0]]
        assert done == ["episodes/e2", "episodes/e1"] and len(model.requests) == 2

    scenario_of(tmp_path, scenario, Rule(say=[REPLY]))


def test_unavailable_model_postpones_jobs_without_counting_attempts(tmp_path, monkeypatch):
    monkeypatch.setattr("vademecum.model.memory.jobs.TRIES", 1)
    monkeypatch.setattr("vademecum.model.memory.jobs.backoff_s", lambda attempts: 8.0)

    async def scenario(h, model, ada):
        await push_turns(ada, *(episode(f"e{n}", "s1", userMessage=f"turn {n}") for n in range(6)))
        await wait_for_jobs(ada, lambda found: any(job["error"] for job in found["jobs"]))
        await asyncio.sleep(0.5)
        found = await list_jobs(ada)
        assert found["counts"]["waiting"] == 6 and len(model.requests) == 1, "the other jobs must wait too"
        assert all(job["attempts"] == 0 for job in found["jobs"]) and found["extraction"]["today"] == 0
        model.rules = [Rule(say=[REPLY])]
        assert (await wait_until_finished(ada))["counts"]["done"] == 6

    scenario_of(tmp_path, scenario, Rule(status=401), extraction_daily=6)


def test_pushing_a_turn_is_one_insert_and_editing_it_adds_no_job(tmp_path, monkeypatch):
    statements, commit = [], segments.commit

    def noted(cursor, of_commit):
        statements.append([sql.split()[0] for sql, _ in of_commit])
        commit(cursor, of_commit)

    async def scenario(h, model, ada):
        await push_turns(ada, episode("e0", "s1"))
        await wait_for_jobs(ada, lambda found: found["counts"]["running"])
        monkeypatch.setattr(segments, "commit", noted)
        turn = episode("e1", "s1")
        await ada.push("episodes", turn)
        assert statements == [["INSERT"]], "the push must commit only the turn, without its job"
        assert len((await list_jobs(ada))["jobs"]) == 2
        await ada.push("episodes", {**turn, "userMessage": "anew"}, assumed=turn)
        async with h.services.users.open(ada.id) as store:
            assert [left.subject for left in (await store.list_jobs(9))[0]] == ["episodes/e0"]
        assert len((await list_jobs(ada))["jobs"]) == 2

    scenario_of(tmp_path, scenario, Rule(first_s=60))


def test_job_of_model_that_never_replies_fails_and_can_be_retried(tmp_path, monkeypatch):
    monkeypatch.setattr("vademecum.model.memory.jobs.TRIES", 2)
    monkeypatch.setattr("vademecum.model.memory.jobs.BACKOFF", 1)

    async def scenario(h, model, ada):
        await push_turns(ada)
        found = await wait_for_jobs(ada, lambda found: found["counts"]["failed"])
        (job,) = found["jobs"]
        assert job["attempts"] == len(model.requests) == found["extraction"]["today"] == 2
        assert "sent nothing" in job["error"]
        model.rules = [Rule(say=[REPLY])]
        await ada.call("POST", f"/v1/jobs/{job['id']}/retry")
        assert (await wait_until_finished(ada))["counts"]["done"] == 1

    scenario_of(tmp_path, scenario, Rule(first_s=60), assistant_idle_timeout_s=0.2)


def test_backoff_for_unavailable_model_is_capped_at_one_hour():
    job = jobs.start(jobs.create("episodes/e1", 1, "", NOW), NOW)
    for wait_s, waited in ((4, 4), (10**6, 3600)):
        after = jobs.postpone(job, NOW, "It is away.", wait_s)
        assert (after.state, after.attempts, after.error) == ("waiting", 0, "It is away.")
        assert timestamps.seconds_until(after.due, NOW) == waited


def test_daily_limit_counts_every_model_request(tmp_path):
    async def scenario(h, model, ada):
        turn = episode("e1", "s1")
        await push_turns(ada, turn)
        await wait_until_finished(ada)
        edited = {**turn, "userMessage": "something else"}
        await ada.push("episodes", edited, assumed=turn)
        await wait_until_finished(ada)
        await ada.push("episodes", {**edited, "_deleted": True}, assumed=edited)
        await ada.push("episodes", episode("e2", "s1"))
        await wait_until_finished(ada)
        await ada.call("POST", "/v1/sessions/s1/summarize", params={"later": True})
        assert (await wait_until_finished(ada))["extraction"]["today"] == len(model.requests) == 4
        async with h.services.users.open(ada.id) as store:
            assert store.jobs.llm_requests_on(timestamps.day(h.services.clock())) == 4
            assert store.jobs.llm_requests_on("2026-01-01") == 0, "the count of a new day must start at zero"

    scenario_of(tmp_path, scenario, Rule(say=[REPLY]))


def test_job_retry_keeps_daily_count_and_stored_answers(tmp_path, monkeypatch):
    monkeypatch.setattr("vademecum.model.memory.jobs.TRIES", 1)

    async def scenario(h, model, ada):
        await push_turns(ada)
        for asked in (1, 2):
            found = await wait_for_jobs(ada, lambda found: found["counts"]["failed"])
            assert found["extraction"]["today"] == len(model.requests) == asked
            await ada.call("POST", "/v1/jobs/retry")
        await wait_for_jobs(ada, lambda found: found["counts"]["failed"])
        async with h.services.users.open(ada.id) as store:
            (job,) = store.jobs.open.values()
            heard = jobs.reset(jobs.with_answer(job, "{}"), h.services.clock())
            await store.write(lambda tx: tx.jobs.put(heard))
        h.services.background_jobs.schedule("work", ada.id, 0)
        found = await wait_for_jobs(ada, lambda found: found["counts"]["done"])
        assert found["extraction"]["today"] == len(model.requests) == 3

    scenario_of(tmp_path, scenario, Rule(say=["No."]))


def test_zero_daily_limit_keeps_jobs_pending(tmp_path):
    people = []

    async def stopped(h, model, ada):
        people.append(ada)
        await push_turns(ada)
        await wait_for_jobs(ada, lambda found: found["counts"]["running"])

    async def without(h, model, _):
        ada = reconnect(h, people[0])
        await ada.call("POST", "/v1/jobs/retry")
        await asyncio.sleep(0.5)
        assert model.requests == [] and h.services.background_jobs.jobs["work"].is_pending(ada.id)

    scenario_of(tmp_path, stopped, Rule(say=[REPLY], first_s=60))
    scenario_of(tmp_path, without, Rule(say=[REPLY]), extraction_daily=0)


def test_deletion_of_any_row_discards_stored_model_answers_of_jobs(tmp_path):
    async def scenario(h, model, ada):
        await ada.push("facts", fact("f1"), fact("f2"))
        await push_turns(ada)
        await wait_until_finished(ada)
        async with h.services.users.open(ada.id) as store:
            (job,) = (await store.list_jobs(1))[0]
            late = timestamps.later(h.services.clock(), 600)
            heard = msgspec.structs.replace(job, state="waiting", due=late, found="what was said")
            await store.write(lambda tx: tx.jobs.put(heard))
        await ada.push("facts", {**fact("f1"), "value": "another"}, assumed=fact("f1"))
        async with h.services.users.open(ada.id) as store:
            assert (await store.list_jobs(1))[0][0].found == "what was said"
        await ada.push("facts", {**fact("f2"), "_deleted": True}, assumed=fact("f2"))
        async with h.services.users.open(ada.id) as store:
            assert (await store.list_jobs(1))[0] == [jobs.with_answer(heard, "")]

    scenario_of(tmp_path, scenario, Rule(say=[REPLY]))
