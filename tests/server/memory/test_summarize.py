"""Summaries of sessions and projects: each has one, made from its newest text, immediately or by a job."""

import asyncio
import json

import pytest

from property.rows import day, episode, project, session
from server.chat.assistant_server import ask
from server.in_process_server import check_problem, serve
from server.memory.extracting_server import (
    list_jobs,
    push_turns,
    scenario_of,
    wait_for_jobs,
    wait_until_finished,
)
from server.scripted_llm import Rule
from vademecum.model.memory import summary_input
from vademecum.services.runtime.request_priority import GAP_S
from wait_until import soon

OFF = {"extraction_daily": 0}
SESSION, PROJECT = "/v1/sessions/s1/summarize", "/v1/projects/p1/summarize"


def test_new_session_summary_replaces_the_old_summary(tmp_path):
    async def scenario(h, model, ada):
        await push_turns(ada, episode("e1", "s1", userMessage="What is the rent?", aiResponse="R9,000."))
        first = (await ada.call("POST", SESSION)).json()
        assert (first["content"], first["sessionId"]) == ("It is about rent.", "s1")
        assert [row["content"] for row in (await ada.live("summaries")).values()] == ["It is about rent."]
        assert "User: What is the rent?\nAnswer: R9,000." in model.requests[0].question
        assert (model.requests[0].body["temperature"], model.requests[0].body["max_tokens"]) == (0.2, 1200)
        model.rules = [Rule(say=["Something else."])]
        second = (await ada.call("POST", SESSION)).json()
        assert second["id"] == first["id"] and second["content"] == "Something else."
        (row,) = (await ada.live("summaries")).values()
        assert {name: row[name] for name in second} == second

    scenario_of(tmp_path, scenario, Rule(say=["It is ", "about **rent**."]), **OFF)


def test_project_summary_uses_session_summaries_or_turns_if_none_exist(tmp_path):
    async def scenario(h, model, ada):
        await push_turns(ada, episode("e1", "s1", userMessage="first words"))
        await ada.push("projects", project("p2"))
        await ada.push("sessions", session("s2", projectId="p2"), session("s3"))
        await ada.push(
            "episodes", episode("e2", "s2", userMessage="foreign"), episode("e3", "s3", userMessage="foreign")
        )
        overview = (await ada.call("POST", PROJECT)).json()
        assert overview["projectId"] == "p1" and "sessionId" not in overview
        assert "first words" in model.requests[-1].question
        model.rules = [Rule(say=["A summary of the session."])]
        await ada.call("POST", SESSION)
        again = (await ada.call("POST", PROJECT)).json()
        assert again["id"] == overview["id"] and len(await ada.live("summaries")) == 2
        assert model.requests[-1].question == "A summary of the session."
        assert not any("foreign" in asked.question for asked in model.requests)

    scenario_of(tmp_path, scenario, Rule(say=["An overview."]), **OFF)


def test_summary_input_is_truncated_to_newest_unformatted_text(tmp_path):
    async def scenario(h, model, ada):
        turns = [
            episode(f"e{n}", "s1", createdAt=day(n), userMessage=f"turn {n}.", aiResponse="word " * 1500)
            for n in range(1, 9)
        ]
        marked = "<think>secretly</think># Title\n```py\nprint(1)\n```\n[link](http://x.y/z) **bold** [MEMORY CONTEXT] old [END MEMORY CONTEXT]"
        await push_turns(ada, *turns, episode("e9", "s1", createdAt=day(9), aiResponse=marked))
        await ada.call("POST", SESSION)
        told = model.requests[0].question
        assert len(told) <= summary_input.MAX_INPUT_CHARS and len(told) > summary_input.MAX_INPUT_CHARS - 100
        assert "turn 8." in told and "turn 1." not in told
        assert told.endswith("Answer: Title\n\nprint(1)\n\nlink bold")

    scenario_of(tmp_path, scenario, Rule(say=["Short."]), **OFF)


def test_summary_of_empty_session_or_project_is_rejected(tmp_path):
    async def scenario(h, model, ada):
        await ada.push("projects", project("p1"))
        await ada.push("sessions", session("s1", projectId="p1"))
        for path in (SESSION, PROJECT):
            for later in (False, True):
                check_problem(await ada.call("POST", path, params={"later": later}), 422, "NO_DATA")
        check_problem(await ada.call("POST", "/v1/sessions/none/summarize"), 404, "NOT_FOUND")
        check_problem(await ada.call("POST", "/v1/projects/none/summarize"), 404, "NOT_FOUND")
        assert model.requests == [] and (await list_jobs(ada))["jobs"] == []

    scenario_of(tmp_path, scenario, **OFF)


def test_deferred_summary_is_retried_after_model_failure(tmp_path):
    async def scenario(h, model, ada):
        await push_turns(ada)
        job = (await ada.call("POST", SESSION, params={"later": True})).json()
        assert (job["kind"], job["subject"]) == ("summarise", "sessions/s1")
        await wait_for_jobs(ada, lambda found: found["jobs"][0]["error"])
        model.rules = [Rule(say=["It is about rent."])]
        assert (await wait_until_finished(ada))["counts"]["done"] == 1
        (row,) = (await ada.live("summaries")).values()
        assert row["content"] == "It is about rent."
        await ada.call("POST", SESSION, params={"later": True})
        await wait_until_finished(ada)
        assert len(await ada.live("summaries")) == 1

    scenario_of(tmp_path, scenario, Rule(status=500), **OFF)


def test_immediate_summary_counts_toward_daily_limit_only_if_model_was_asked(tmp_path):
    async def scenario(h, model, ada):
        async def today():
            return (await list_jobs(ada))["extraction"]["today"]

        await push_turns(ada)
        assert (await ada.call("POST", SESSION)).status_code == 200 and await today() == 1
        model.rules = [Rule(status=500)]
        assert (await ada.call("POST", SESSION)).status_code == 502 and await today() == 2
        model.rules = [Rule(status=401)]
        assert (await ada.call("POST", SESSION)).status_code == 502 and await today() == 2
        assert (
            await ada.call("POST", SESSION.replace("s1", "nope"))
        ).status_code == 404 and await today() == 2

    scenario_of(tmp_path, scenario, Rule(say=["It is about rent."]), **OFF)


def test_summaries_and_answers_share_concurrency_limits(tmp_path):
    async def scenario(h, model, ada):
        bob = await h.person()
        await push_turns(ada)
        await push_turns(bob)
        waiting = [asyncio.create_task(ada.call("POST", SESSION)) for _ in range(3)]
        await soon(lambda: len(model.requests) >= 3)
        async with asyncio.timeout(20):
            check_problem(await ada.call("POST", PROJECT), 429, "RATE_LIMITED")
            check_problem(await ask(ada), 429, "RATE_LIMITED")
        assert (await list_jobs(ada))["extraction"]["today"] == 3, (
            "rejected requests must not count toward the daily limit"
        )
        h.services.summaries.question_limit.total = 3
        for answer in (await bob.call("POST", SESSION), await ask(bob)):
            assert int(check_problem(answer, 503, "BUSY") and answer.headers["retry-after"]) > 0
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        model.rules = [Rule(say=["It is about rent."])]
        for _ in range(4):
            assert (await ada.call("POST", SESSION)).status_code == 200
        model.rules = [Rule(status=500)]
        for _ in range(4):
            assert (await ada.call("POST", SESSION)).status_code == 502
        for _ in range(4):
            assert (await ask(ada)).status_code == 502

    scenario_of(tmp_path, scenario, Rule(ends="silent"), **OFF)


def test_session_deleted_during_summarization_gets_no_summary(tmp_path):
    async def scenario(h, model, ada):
        await push_turns(ada)
        await ada.call("POST", SESSION, params={"later": True})
        await soon(lambda: model.requests)
        await ada.call("DELETE", "/v1/sessions/s1")
        model.release_answer()
        assert (await wait_until_finished(ada))["jobs"] == []
        await h.drain_jobs(ada)
        assert await ada.live("summaries") == {}

    scenario_of(tmp_path, scenario, Rule(say=["Too late."], held=True), **OFF)


def test_secrets_are_redacted_from_summary_input_and_output(tmp_path):
    secret = "sk-proj-a1B2c3D4e5F6g7H8i9J0k"

    async def scenario(h, model, ada):
        await push_turns(ada, episode("e1", "s1", userMessage=f"mine is {secret}"))
        row = (await ada.call("POST", SESSION)).json()
        assert secret not in json.dumps(model.requests[0].body) and secret not in row["content"]

    scenario_of(tmp_path, scenario, Rule(say=[f"It is {secret}."]), **OFF)


@pytest.mark.parametrize("path", [SESSION, PROJECT])
async def test_summary_request_is_rejected_if_no_assistant_is_configured(tmp_path, path):
    async with serve(tmp_path) as h:
        ada = await h.person()
        for later in (False, True):
            check_problem(await ada.call("POST", path, params={"later": later}), 404, "NOT_FOUND")
        await push_turns(ada)
        for later in (False, True):
            check_problem(await ada.call("POST", path, params={"later": later}), 503, "NO_ASSISTANT")


def test_pending_model_request_does_not_delay_background_work(tmp_path):
    async def scenario(h, model, ada):
        await push_turns(ada, episode("e1", "s1"))
        asking = asyncio.create_task(ada.call("POST", SESSION))
        await soon(lambda: model.requests)
        await asyncio.sleep(2 * GAP_S)
        assert not h.services.request_priority.is_busy()
        asking.cancel()

    scenario_of(tmp_path, scenario, Rule(ends="silent", say=[]), **OFF)
