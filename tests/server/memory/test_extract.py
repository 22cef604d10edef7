"""Extraction of memory from finished turns by a language model: once per turn, in the background, for any reply."""

import asyncio
import json
import time

import msgspec
import pytest

from property.rows import day, episode, fact, project, session
from server.in_process_server import check_problem, reconnect, serve
from server.memory.extracting_server import (
    FOUND,
    REPLY,
    extracted_rows,
    list_jobs,
    push_turns,
    reply,
    scenario_of,
    wait_for_failed_attempt,
    wait_for_jobs,
    wait_until_finished,
)
from server.scripted_llm import MODEL, Rule
from vademecum.model.memory.extraction import MEMORIES_MAX, SESSION_MEMORIES_MAX
from vademecum.model.sync.quotas import Limits
from wait_until import soon


def test_finished_turn_yields_entities_relationships_memories_and_facts(tmp_path):
    async def scenario(h, model, ada):
        await push_turns(ada)
        found = await wait_until_finished(ada)
        (job,) = found["jobs"]
        assert (job["state"], job["subject"], job["error"]) == ("done", "episodes/e1", "")
        assert found["counts"] == {"waiting": 0, "running": 0, "failed": 0, "done": 1}
        assert found["extraction"]["available"] and found["extraction"]["today"] == 1
        rows = await extracted_rows(ada)
        assert {(row["name"], row["type"], row["projectId"]) for row in rows["entities"].values()} == {
            ("Ada Brook", "person", "p1"), ("Old Mill", "place", "p1"),
        }  # fmt: skip
        names = {row["id"]: row["name"] for row in rows["entities"].values()}
        (edge,) = rows["relationships"].values()
        assert (names[edge["fromId"]], edge["label"], names[edge["toId"]]) == (
            "Ada Brook",
            "runs",
            "Old Mill",
        )
        (memory,) = rows["memories"].values()
        assert (memory["text"], memory["projectId"]) == (FOUND["memories"][0], "p1")
        assert (memory["source"], memory["sessionIds"]) == ("extracted", ["s1"])
        (proposed,) = rows["facts"].values()
        assert (proposed["key"], proposed["value"], proposed["confirmed"]) == ("user.city", "Bern", False)
        (request,) = model.requests
        assert (
            request.body["temperature"] == 0.1 and "what?" in request.question and "that." in request.question
        )

    scenario_of(tmp_path, scenario, Rule(say=[REPLY]))


def test_extraction_can_use_its_own_model(tmp_path):
    async def scenario(h, model, ada):
        await push_turns(ada)
        assert (await wait_until_finished(ada))["extraction"]["model"] == "qwen2.5:3b"
        assert model.requests[0].body["model"] == "qwen2.5:3b"

    scenario_of(tmp_path, scenario, Rule(say=[REPLY]), extraction_model="qwen2.5:3b")


def test_session_without_project_gets_memories_but_no_entities(tmp_path):
    async def scenario(h, model, ada):
        await push_turns(ada, project_id=None)
        await wait_until_finished(ada)
        rows = await extracted_rows(ada)
        async with h.services.users.open(ada.id) as store:
            kinds = {key.partition("/")[0] for key in store.row_index.rows}
            assert kinds == {"sessions", "episodes", "memories", "facts"}, "no row may wait for a project"
        (memory,) = rows["memories"].values()
        assert "projectId" not in memory and len(rows["facts"]) == 1

    scenario_of(tmp_path, scenario, Rule(say=[REPLY]))


def test_entities_keep_the_project_of_their_extraction(tmp_path):
    async def scenario(h, model, ada):
        await push_turns(ada)
        await wait_until_finished(ada)
        await ada.push("projects", project("p2"))
        before, moved = session("s1", projectId="p1"), session("s1", projectId="p2")
        await ada.push("sessions", moved, assumed=before)
        await ada.push("episodes", episode("e2", "s1", userMessage="and now?"))
        await wait_until_finished(ada)
        found = sorted((row["name"], row["projectId"]) for row in (await ada.live("entities")).values())
        assert found == [(n, p) for n in ("Ada Brook", "Old Mill") for p in ("p1", "p2")]

    scenario_of(tmp_path, scenario, Rule(say=[REPLY]))


def test_repeated_extraction_reuses_rows_and_prompts_with_known_names(tmp_path):
    async def scenario(h, model, ada):
        await push_turns(ada)
        await wait_until_finished(ada)
        before = await extracted_rows(ada)
        await ada.push("episodes", episode("e2", "s1", userMessage="once more?"))
        assert (await wait_until_finished(ada))["counts"]["done"] == 2
        after = await extracted_rows(ada)
        for memory_id, memory in after["memories"].items():
            # Ignore the timestamp, which a repeated statement updates.
            memory["updatedAt"] = before["memories"][memory_id]["updatedAt"]
        assert after == before
        assert "- Ada Brook" in model.requests[1].system and "- Ada Brook" not in model.requests[0].system

    scenario_of(tmp_path, scenario, Rule(say=[REPLY]))


def test_turn_is_extracted_once_and_again_after_an_edit(tmp_path):
    async def scenario(h, model, ada):
        first = episode("e1", "s1")
        await push_turns(ada, first)
        await wait_until_finished(ada)
        second = {**first, "model": "another", "updatedAt": day(2)}
        await ada.push("episodes", second, assumed=first)
        await ada.push("episodes", second, assumed=second)
        await wait_until_finished(ada)
        assert len(model.requests) == 1
        await ada.push("episodes", {**second, "aiResponse": "something else"}, assumed=second)
        await wait_until_finished(ada)
        assert len(model.requests) == 2 and "something else" in model.requests[1].question

    scenario_of(tmp_path, scenario, Rule(say=[REPLY]))


def test_confirmed_fact_stays_and_extracted_values_are_only_proposed(tmp_path):
    async def scenario(h, model, ada):
        confirmed = fact("mine", key="user.city", value="Basel", confirmed=True)
        await ada.push("facts", confirmed)
        await push_turns(ada, episode("e1", "s1", userMessage="first"))
        await wait_until_finished(ada)
        await ada.push("episodes", episode("e2", "s1", userMessage="second"))
        await wait_until_finished(ada)
        facts = await ada.live("facts")
        assert facts.pop("mine") == confirmed
        assert {(row["key"], row["value"], row["confirmed"]) for row in facts.values()} == {
            ("user.pet", "a cat", False), ("user.pet", "a dog", False),
        }  # fmt: skip
        await ada.push("facts", *({**row, "_deleted": True} for row in facts.values()))
        await ada.push("episodes", episode("e3", "s1", userMessage="the second again"))
        await wait_until_finished(ada)
        assert set(await ada.live("facts")) == {"mine"}, "a deleted proposal must not be made again"

    def said(pet):
        city = {"key": "user.city", "value": "Bern", "confidence": 1}
        return reply(facts=[city, {"key": "user.pet", "value": pet, "confidence": 0.7}])

    scenario_of(
        tmp_path, scenario, Rule(when="first", say=said("a cat")), Rule(when="second", say=said("a dog"))
    )


def test_proposed_fact_enters_no_prompt_until_confirmed(tmp_path):
    async def told(ada, session_id):
        asked = {"query": "In which city am I?", "sessionId": session_id}
        return "user.city: Bern" in (await ada.call("POST", "/v1/context", json=asked)).json()["prompt"]

    async def scenario(h, model, ada):
        await push_turns(ada)
        await ada.push("sessions", session("s2"))
        await wait_until_finished(ada)
        (proposed,) = (await ada.live("facts")).values()
        assert not await told(ada, "s2") and not await told(ada, "s1")
        assert await ada.push("facts", {**proposed, "confirmed": True}, assumed=proposed) == []
        assert await told(ada, "s2") and await told(ada, "s1")

    scenario_of(tmp_path, scenario, Rule(say=[REPLY]))


def test_rows_that_the_user_deleted_are_not_extracted_again(tmp_path):
    async def scenario(h, model, ada):
        await push_turns(ada)
        await wait_until_finished(ada)
        for name, rows in (await extracted_rows(ada)).items():
            await ada.push(name, *({**row, "_deleted": True} for row in rows.values()))
        await ada.push("episodes", episode("e2", "s1", userMessage="once more?"))
        assert (await wait_until_finished(ada))["counts"]["done"] == 2
        assert not any((await extracted_rows(ada)).values())

    scenario_of(tmp_path, scenario, Rule(say=[REPLY]))


def test_extraction_hides_recalled_text_and_secrets(tmp_path):
    secret = "sk-proj-a1B2c3D4e5F6g7H8i9J0k"
    said = {
        "memories": [f"The key is {secret}.", "Ada runs the mill."],
        "facts": [{"key": "user.key", "value": secret, "confidence": 1}],
        "entities": [
            {"name": "Ada", "type": "person", "notes": f"uses {secret}"},
            {"name": secret, "type": "concept"},
        ],
    }

    async def scenario(h, model, ada):
        words = f"Mine is {secret}. [MEMORY CONTEXT]\nrecalled words\n[END MEMORY CONTEXT] Remember it."
        await push_turns(ada, episode("e1", "s1", userMessage=words))
        await wait_until_finished(ada)
        told = json.dumps(model.requests[0].body)
        assert "Remember it." in told and "recalled words" not in told and secret not in told
        rows = await extracted_rows(ada)
        assert secret not in json.dumps(rows)
        assert [row["text"] for row in rows["memories"].values()] == ["Ada runs the mill."]
        assert [row["name"] for row in rows["entities"].values()] == ["Ada"] and rows["facts"] == {}

    scenario_of(tmp_path, scenario, Rule(say=[json.dumps(said)]))


@pytest.mark.parametrize(
    ("rule", "words", "counted"),
    [
        (Rule(say=["I would rather not."]), "no JSON", True),
        (Rule(say=["x"], ends="broken"), "was interrupted", True),
        (Rule(raw="<html>", headers={"Content-Type": "text/html"}), "an invalid reply", True),
        (Rule(status=500), "failed (500)", True),
        (Rule(status=401), "key", False),
        (Rule(first_s=120), "0.3 s", True),
        (Rule(ends="never", pause_s=0.05), "longer than 1 s", True),
    ],
)
def test_failed_extraction_is_reported_and_retried_later(tmp_path, rule, words, counted):
    async def scenario(h, model, ada):
        await push_turns(ada)
        (job,) = (await wait_for_failed_attempt(ada))["jobs"]
        assert words in job["error"] and (job["attempts"] > 0) == counted
        assert not any((await extracted_rows(ada)).values())
        model.rules = [Rule(say=[REPLY])]
        found = await wait_until_finished(ada)
        assert found["jobs"][0]["state"] == "done" and found["jobs"][0]["error"] == ""
        assert len((await extracted_rows(ada))["memories"]) == 1

    silence_s, whole_s = (0.3, 60) if rule.first_s else (60, 1) if rule.ends == "never" else (60, 60)
    scenario_of(tmp_path, scenario, rule, assistant_idle_timeout_s=silence_s, assistant_timeout_s=whole_s)


def test_extraction_reply_that_is_not_json_is_retried_once(tmp_path):
    async def scenario(h, model, ada):
        await push_turns(ada)
        found = await wait_until_finished(ada)
        assert found["counts"] == {"waiting": 0, "running": 0, "failed": 1, "done": 0}
        assert "no JSON" in found["jobs"][0]["error"]
        assert len(model.requests) == found["extraction"]["today"] == 2
        await ada.call("POST", "/v1/jobs/retry")
        await wait_for_jobs(ada, lambda found: len(model.requests) == 4 and found["counts"]["failed"])

    scenario_of(tmp_path, scenario, Rule(say=["I would rather not."]))


def test_truncated_extraction_reply_yields_its_complete_items(tmp_path):
    async def scenario(h, model, ada):
        await push_turns(ada)
        await wait_until_finished(ada)
        rows = await extracted_rows(ada)
        assert len(rows["entities"]) == 2 and rows["facts"] == {}

    cut = json.dumps(FOUND)
    scenario_of(tmp_path, scenario, Rule(say=[cut[: cut.index("memories")]], finish="length"))


def test_repeatedly_failed_extraction_job_waits_for_manual_retry(tmp_path, monkeypatch):
    monkeypatch.setattr("vademecum.model.memory.jobs.TRIES", 1)

    async def scenario(h, model, ada):
        await push_turns(ada, episode("e1", "s1"), episode("e2", "s1"))
        found = await wait_until_finished(ada)
        assert found["counts"]["failed"] == 2 and all("500" in job["error"] for job in found["jobs"])
        model.rules = [Rule(say=[REPLY])]
        one = (await ada.call("POST", "/v1/jobs/extract.episodes.e1/retry")).json()
        assert (one["state"], one["attempts"], one["error"]) == ("waiting", 0, "")
        assert (await wait_until_finished(ada))["counts"] == {
            "waiting": 0,
            "running": 0,
            "failed": 1,
            "done": 1,
        }
        assert (await ada.call("POST", "/v1/jobs/retry")).json() == {"retried": 1}
        assert (await wait_until_finished(ada))["counts"]["done"] == 2
        check_problem(await ada.call("POST", "/v1/jobs/extract.episodes.e9/retry"), 404, "NOT_FOUND")

    scenario_of(tmp_path, scenario, Rule(status=500))


def test_extraction_limits_memories_per_turn_and_session(tmp_path):
    async def scenario(h, model, ada):
        model.rules = [
            Rule(when=f"turn {n}.", say=reply(memories=[f"Statement {n}-{m} stands." for m in range(7)]))
            for n in range(12)
        ]
        turns = [episode(f"e{n}", "s1", userMessage=f"turn {n}.") for n in range(12)]
        await push_turns(ada, turns[0], project_id=None)
        await wait_until_finished(ada)
        assert len(await ada.live("memories")) == MEMORIES_MAX == 5
        await ada.add("episodes", *turns[1:])
        await wait_until_finished(ada)
        assert len(await ada.live("memories")) == SESSION_MEMORIES_MAX == 50
        await ada.add("sessions", session("s2"))
        await ada.add(
            "episodes", {**turns[0], "id": "other", "sessionId": "s2", "userMessage": "turn 3. again"}
        )
        model.rules.insert(0, Rule(when="again", say=reply(memories=["Another session has room."])))
        await wait_until_finished(ada)
        assert len(await ada.live("memories")) == 51

    scenario_of(tmp_path, scenario)


def test_extraction_into_full_account_is_retried_without_asking_again(tmp_path):
    async def scenario(h, model, ada):
        await push_turns(ada)
        found = await wait_for_jobs(ada, lambda found: found["jobs"] and found["jobs"][0]["error"])
        assert "full" in found["jobs"][0]["error"]
        rows = await extracted_rows(ada)
        assert rows["entities"] == rows["relationships"] == rows["facts"] == {}
        await wait_for_jobs(ada, lambda found: found["jobs"][0]["attempts"] == 2)
        assert len(model.requests) == 1, "the stored answer must be used in the next attempt"

    full = {tier: Limits(file_bytes=1, storage_bytes=600) for tier in ("FREE", "JIVE", "JIGGA")}
    facts = [{"key": f"user.k{n}", "value": "v" * 50, "confidence": 1} for n in range(3)]
    scenario_of(tmp_path, scenario, Rule(say=reply(facts=facts)), tiers=full)


def test_requests_do_not_wait_for_extraction(tmp_path):
    async def scenario(h, model, ada):
        await push_turns(ada)
        await wait_for_jobs(ada, lambda found: found["counts"]["running"])
        began = time.monotonic()
        await ada.push("facts", fact("f1"))
        answer = await ada.call("POST", "/v1/answer", json={"query": "Quick?", "sessionId": "s1"})
        assert "At once." in answer.text and time.monotonic() - began < 10
        await h.services.users.rewrite(ada.id)  # needs exclusive access to the file
        assert time.monotonic() - began < 10 and (await list_jobs(ada))["counts"]["running"] == 1

    slow = Rule(when="The user said", first_s=60)
    scenario_of(tmp_path, scenario, slow, Rule(say=["At once."]))


def test_extraction_is_discarded_if_its_turn_changes_while_it_runs(tmp_path):
    async def scenario(h, model, ada):
        deleted_turn, edited = episode("e1", "s1"), episode("e2", "s1")
        await push_turns(ada, deleted_turn)
        await soon(lambda: len(model.requests) == 1)
        await ada.push("episodes", {**deleted_turn, "_deleted": True})
        assert (await list_jobs(ada))["jobs"] == []
        await ada.push("episodes", edited)
        model.release_answer()
        await soon(lambda: len(model.requests) == 2)
        await ada.push("episodes", {**edited, "userMessage": "quick"}, assumed=edited)
        model.release_answer()
        await wait_until_finished(ada)
        assert [row["text"] for row in (await ada.live("memories")).values()] == ["It is quick."]

    slow = Rule(when="what?", say=[REPLY], held=True)
    scenario_of(tmp_path, scenario, slow, Rule(say=reply(memories=["It is quick."])))


def test_daily_limit_defers_further_extraction_requests(tmp_path):
    async def scenario(h, model, ada):
        extraction = (await list_jobs(ada))["extraction"]
        assert (extraction["today"], extraction["daily"]) == (0, 2)
        assert "up to 2 requests" in extraction["note"]
        await push_turns(ada, *(episode(f"e{n}", "s1", userMessage=f"turn {n}") for n in range(4)))
        found = await wait_for_jobs(ada, lambda found: found["counts"]["done"] == 2)
        await asyncio.sleep(0.3)
        found = await list_jobs(ada)
        assert found["counts"]["waiting"] == 2 and len(model.requests) == 2
        assert found["extraction"] == {
            "available": True,
            "model": MODEL,
            "daily": 2,
            "today": 2,
            "note": "Today's 2 requests have been used. Waiting jobs run after midnight UTC.",
        }
        summary = await ada.call("POST", "/v1/sessions/s1/summarize", params={"later": True})
        assert summary.status_code == 202
        await wait_for_jobs(ada, lambda found: found["counts"]["done"] == 3)

    scenario_of(tmp_path, scenario, Rule(say=[REPLY]), extraction_daily=2)


async def test_job_list_without_a_language_model_is_empty_and_explains_why(tmp_path):
    async with serve(tmp_path) as h:
        ada = await h.person()
        await push_turns(ada)
        found = await list_jobs(ada)
        assert found["jobs"] == [] and found["extraction"]["available"] is False
        assert "VADEMECUM_ASSISTANT_URL" in found["extraction"]["note"]


def test_server_restart_resumes_unfinished_extraction_jobs(tmp_path):
    people = []

    async def stopped(h, model, ada):
        people.append(ada)
        await push_turns(ada, episode("e1", "s1"), episode("e2", "s1"))
        await wait_for_jobs(ada, lambda found: found["counts"]["running"])

    async def started(h, model, _):
        (ada,) = people
        reconnect(h, ada)
        await wait_for_jobs(ada, lambda found: found["counts"]["done"] == 2)
        assert len((await extracted_rows(ada))["memories"]) == 1

    scenario_of(tmp_path, stopped, Rule(say=[REPLY], first_s=60))
    scenario_of(tmp_path, started, Rule(say=[REPLY]))


def test_forget_everything_deletes_jobs_and_discards_pending_replies(tmp_path):
    async def scenario(h, model, ada):
        await push_turns(ada)
        await soon(lambda: model.requests)
        receipt = await ada.call("POST", "/v1/forget", json={"confirm": "forget everything"})
        assert receipt.json()["leftovers"] == 0
        model.release_answer()
        await soon(lambda: not h.services.background_jobs.jobs["work"].is_pending(ada.id))
        assert (await list_jobs(ada))["jobs"] == [] and not any((await extracted_rows(ada)).values())

    scenario_of(tmp_path, scenario, Rule(say=[REPLY], held=True))


def test_restore_resumes_extraction_jobs_except_of_deleted_turns(tmp_path):
    async def scenario(h, model, ada):
        await push_turns(ada, episode("kept", "s1"), episode("gone", "s1"))
        await wait_for_jobs(
            ada, lambda found: all(job["error"] for job in found["jobs"]) and found["counts"]["waiting"]
        )
        async with h.services.users.open(ada.id) as store:
            job = next(job for job in (await store.list_jobs(9))[0] if job.subject == "episodes/gone")
            heard = msgspec.structs.replace(job, state="failed", found="a secret of its text")
            await store.write(lambda tx: tx.jobs.put(heard))
        await h.services.backup.create(tmp_path / "backup")
        await ada.push("episodes", {**episode("gone", "s1"), "_deleted": True})
        model.rules = [Rule(say=[REPLY])]
        await h.services.restore.restore_all(tmp_path / "backup")
        found = await wait_until_finished(ada)
        assert [(job["subject"], job["state"]) for job in found["jobs"]] == [("episodes/kept", "done")]

    scenario_of(tmp_path / "data", scenario, Rule(status=500))
