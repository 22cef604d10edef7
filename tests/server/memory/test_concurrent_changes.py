"""Changes between the lookup of known memories and the write of new ones: a session is moved, or a row is edited."""

import asyncio

from property.rows import episode, fact, project, session
from server.in_process_server import MODELS, serve
from server.memory.extracting_server import (
    FOUND,
    REPLY,
    extracted_rows,
    list_jobs,
    push_turns,
    reply,
    scenario_of,
    wait_for_jobs,
    wait_until_finished,
)
from server.scripted_llm import Rule
from vademecum.engines.duckdb.user_store import DuckDBUserStore
from vademecum.model.schema import derived_ids
from vademecum.model.sync.quotas import Limits
from vademecum.services.memory import remember
from vademecum.services.memory.remember import Memories

LOST = "Gina lost her job at the bank."
LOST_AGAIN = "Gina has lost the job that she had at the bank."
TEXTS = [f"Ada has planted a {tree} behind the mill." for tree in ("fir", "lime", "yew", "oak", "ash", "elm", "fig")]  # fmt: skip


def change_before_write(monkeypatch, change):
    """Run `change` once, between the next lookup of known memories and the write."""
    look_up, left = Memories.look_up, [change]

    async def look_up_slowly(self, *args):
        entities = await look_up(self, *args)
        while left:
            await left.pop()()
        return entities

    monkeypatch.setattr(Memories, "look_up", look_up_slowly)


async def move(person, before="p1", after="p2"):
    moved = session("s1", projectId=after)
    assert await person.push("sessions", moved, assumed=session("s1", projectId=before)) == []


def test_extracted_rows_go_to_the_sessions_current_project(tmp_path, monkeypatch):
    async def scenario(h, model, ada):
        await ada.push("projects", project("p2"))
        change_before_write(monkeypatch, lambda: move(ada))
        await push_turns(ada)
        await wait_until_finished(ada)
        rows = await extracted_rows(ada)
        assert len(model.requests) == 1
        assert {row["projectId"] for name in ("entities", "memories") for row in rows[name].values()} == {
            "p2"
        }
        assert len(rows["entities"]) == 2 and len(rows["memories"]) == len(rows["relationships"]) == 1

    scenario_of(tmp_path, scenario, Rule(say=[REPLY]))


def test_extraction_discards_result_if_turn_was_edited_meanwhile(tmp_path, monkeypatch):
    async def scenario(h, model, ada):
        first = episode("e1", "s1")

        async def edit():
            await ada.push("episodes", {**first, "userMessage": "anew"}, assumed=first)

        change_before_write(monkeypatch, edit)
        await push_turns(ada, first)
        await wait_until_finished(ada)
        assert [row["text"] for row in (await ada.live("memories")).values()] == ["It is new."]

    scenario_of(tmp_path, scenario, Rule(when="anew", say=reply(memories=["It is new."])), Rule(say=[REPLY]))


def test_turn_edited_during_job_listing_is_counted_once(tmp_path, monkeypatch):
    survey, edits = DuckDBUserStore.list_jobs, []

    async def surveyed(store, most):
        if edits:
            await asyncio.create_task(edits.pop())
        return await survey(store, most)

    async def scenario(h, model, ada):
        first = episode("e1", "s1")
        await push_turns(ada, first)
        assert (await list_jobs(ada))["counts"]["failed"] == 0
        monkeypatch.setattr(DuckDBUserStore, "list_jobs", surveyed)
        edits.append(ada.push("episodes", {**first, "userMessage": "anew"}, assumed=first))
        counts = (await list_jobs(ada))["counts"]
        assert not edits and sum(counts.values()) == 1, counts

    scenario_of(tmp_path, scenario, Rule(say=[REPLY]), Rule(say=[REPLY]))


def test_extraction_stores_no_rows_if_it_would_exceed_the_quota(tmp_path):
    async def scenario(h, model, ada):
        await push_turns(ada)
        await wait_for_jobs(ada, lambda found: found["jobs"] and found["jobs"][0]["error"])
        assert not any((await extracted_rows(ada)).values())

    full = {tier: Limits(file_bytes=1, storage_bytes=1500) for tier in ("FREE", "JIVE", "JIGGA")}
    facts = [{"key": f"user.k{n}", "value": "v" * 500, "confidence": 1} for n in range(3)]
    scenario_of(tmp_path, scenario, Rule(say=reply(memories=["Ada runs."], facts=facts)), tiers=full)


def test_extraction_creates_no_relationship_into_another_project(tmp_path):
    async def scenario(h, model, ada):
        await ada.push("projects", project("p1"), project("p2"))
        odd = {
            **{k: v for k, v in fact("x").items() if k in ("createdAt", "updatedAt", "_deleted")},
            "id": derived_ids.entity_id("p1", "place", "Old Mill"),
            "name": "Old Mill",
            "type": "place",
            "projectId": "p2",
        }
        assert await ada.push("entities", odd) == []
        await push_turns(ada)
        await wait_until_finished(ada)
        rows = await extracted_rows(ada)
        assert len(rows["entities"]) == 2 and rows["relationships"] == {}

    scenario_of(tmp_path, scenario, Rule(say=[REPLY]))


def test_session_at_memory_limit_gets_no_more_extracted_memories(tmp_path, monkeypatch):
    monkeypatch.setattr(remember, "SESSION_MEMORIES_MAX", 5)

    async def scenario(h, model, ada):
        await push_turns(ada, episode("e1", "s1", userMessage="first"))
        await wait_until_finished(ada)
        await ada.push("episodes", episode("e2", "s1", userMessage="second"))
        await wait_until_finished(ada)
        assert len(await ada.live("memories")) == 5
        body = {"text": FOUND["memories"][0], "sessionId": "s1"}
        assert (await ada.call("POST", "/v1/memories", json=body)).status_code == 201
        assert len(await ada.live("memories")) == 6, (
            "memories that the user stores must not count toward the limit"
        )

    first, second = Rule(when="first", say=reply(memories=TEXTS[:4])), Rule(say=reply(memories=TEXTS[3:]))
    scenario_of(tmp_path, scenario, first, second)


def test_extraction_skips_duplicate_check_when_session_has_maximum_memories(tmp_path, monkeypatch):
    monkeypatch.setattr(remember, "SESSION_MEMORIES_MAX", 5)
    compared = []
    repeated = Memories._find_repeated

    def noted(memories, user_id, home, text):
        compared.append(text)
        return repeated(memories, user_id, home, text)

    monkeypatch.setattr(Memories, "_find_repeated", noted)

    async def scenario(h, model, ada):
        await push_turns(ada, episode("e1", "s1", userMessage="first"))
        await wait_until_finished(ada)
        compared.clear()
        await ada.push("episodes", episode("e2", "s1", userMessage="second"))
        await wait_until_finished(ada)
        assert compared == []
        await ada.push("sessions", session("s2", projectId="p1"))
        await ada.push("episodes", episode("e3", "s2", userMessage="third"))
        await wait_until_finished(ada)
        assert compared == ["It rained in Thun."] and len(await ada.live("memories")) == 6

    first = Rule(when="first", say=reply(memories=TEXTS[:5]))
    scenario_of(tmp_path, scenario, first, Rule(say=reply(memories=["It rained in Thun."])))


async def test_remembered_text_goes_to_the_sessions_current_project(tmp_path, monkeypatch):
    async with serve(tmp_path) as h:
        ada = await h.person()
        await ada.push("projects", project("p1"), project("p2"))
        await ada.push("sessions", session("s1", projectId="p1"))
        change_before_write(monkeypatch, lambda: move(ada))
        result = (await ada.call("POST", "/v1/memories", json={"text": LOST, "sessionId": "s1"})).json()
        assert result["scope"] == {"kind": "project", "projectId": "p2"}
        assert result["memory"]["projectId"] == "p2" and len(await ada.live("memories")) == 1


async def test_new_memory_does_not_supersede_a_memory_edited_meanwhile(tmp_path, monkeypatch):
    async with serve(tmp_path, model=MODELS) as h:
        ada = await h.person()
        await ada.push("sessions", session("s1"))
        body = {"text": LOST, "sessionId": "s1"}
        old = (await ada.call("POST", "/v1/memories", json=body)).json()["memory"]
        await h.drain_jobs(ada)

        async def edit():
            assert await ada.push("memories", {**old, "text": "Gina found a job."}, assumed=old) == []

        first = await ada.call("POST", "/v1/memories", json={**body, "text": LOST_AGAIN})
        assert first.json()["supersedes"] == old["id"], (
            "control: without an edit, the memory must be superseded"
        )
        await ada.call("POST", f"/v1/memories/{first.json()['memory']['id']}/undo", params={"project": "*"})
        await ada.call("DELETE", f"/v1/memories/{first.json()['memory']['id']}", params={"project": "*"})
        old = (await ada.live("memories"))[old["id"]]
        await h.drain_jobs(ada)
        change_before_write(monkeypatch, edit)
        result = (await ada.call("POST", "/v1/memories", json={**body, "text": LOST_AGAIN})).json()
        assert result["supersedes"] is None and len(await ada.live("memories")) == 2
