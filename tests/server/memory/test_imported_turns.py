"""Imports contain the extracted memory of their turns, so an imported turn is extracted only after an edit."""

import asyncio

from property.rows import day, episode, session, sync_path
from server.memory.extracting_server import (
    REPLY,
    extracted_rows,
    scenario_of,
    wait_for_jobs,
    wait_until_finished,
)
from server.scripted_llm import Rule
from vademecum.services.memory.turn_jobs import list_new_turns

OLD = episode("e1", "s1", userMessage="old words")


async def import_rows(person, *rows, collection="episodes"):
    """Push rows as the app does when it imports an export."""
    batch = [{"newDocumentState": row, "imported": True} for row in rows]
    answer = await person.call("POST", f"{sync_path(collection)}/push", json=batch)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def wait_for_worker(h, person):
    """Wait until the worker has found all new turns and finished their jobs."""
    async with h.services.users.open(person.id) as store, asyncio.timeout(60):
        while list_new_turns(store):
            await asyncio.sleep(0.05)
    await wait_until_finished(person)


async def check_requests(h, model, person, *words):
    """Check that the model received exactly one request per word, and that each request contains its word."""
    await wait_for_worker(h, person)
    assert len(model.requests) == len(words)
    for asked, word in zip(model.requests, words, strict=True):
        assert word in asked.question


async def has_job(person, turn):
    """Return whether the turn has a job. A retry request also finds jobs that the list omits."""
    return (await person.call("POST", f"/v1/jobs/extract.episodes.{turn['id']}/retry")).status_code == 200


def test_only_new_turns_are_extracted_after_an_import(tmp_path):
    async def scenario(h, model, ada):
        await ada.add("sessions", session("s1"))
        assert await import_rows(ada, *({**OLD, "id": f"e{n}"} for n in range(30))) == []
        await check_requests(h, model, ada)
        assert not any((await extracted_rows(ada)).values())
        await ada.add("episodes", episode("new", "s1", userMessage="new words"))
        await check_requests(h, model, ada, "new words")
        assert any((await extracted_rows(ada)).values())
        found = await wait_for_jobs(ada, lambda found: found["counts"]["done"])
        assert [job["subject"] for job in found["jobs"]] == ["episodes/new"], (
            "imported turns must have no job"
        )
        assert found["counts"] == {"waiting": 0, "running": 0, "failed": 0, "done": 1}

    scenario_of(tmp_path, scenario, Rule(say=[REPLY]))


def test_edited_imported_turn_is_extracted(tmp_path):
    async def scenario(h, model, ada):
        await ada.add("sessions", session("s1"))
        await import_rows(ada, OLD)
        renamed = {**OLD, "model": "another", "updatedAt": day(2)}
        await ada.push("episodes", renamed, assumed=OLD)
        await check_requests(h, model, ada)
        edited = {**renamed, "userMessage": "other words", "updatedAt": day(3)}
        await ada.push("episodes", edited, assumed=renamed)
        await check_requests(h, model, ada, "other words")

    scenario_of(tmp_path, scenario, Rule(say=[REPLY]))


def test_turn_imported_twice_or_before_its_session_is_not_extracted(tmp_path):
    async def scenario(h, model, ada):
        assert await import_rows(ada, OLD) == []
        assert await import_rows(ada, OLD) == []
        await import_rows(ada, session("s1"), collection="sessions")
        await wait_for_worker(h, ada)
        assert await import_rows(ada, OLD) == []
        await check_requests(h, model, ada)
        assert list(await ada.live("episodes")) == ["e1"]

    scenario_of(tmp_path, scenario, Rule(say=[REPLY]))


def test_importing_an_existing_turn_does_not_suppress_extraction(tmp_path):
    """The turn was pushed before it is imported."""

    async def scenario(h, model, ada):
        await ada.add("episodes", OLD)
        await import_rows(ada, OLD)
        await ada.add("sessions", session("s1"))
        await check_requests(h, model, ada, "old words")

    scenario_of(tmp_path, scenario, Rule(say=[REPLY]))


def test_invalid_unfinished_or_deleted_imports_do_not_prevent_extraction(tmp_path):
    async def scenario(h, model, ada):
        await ada.add("sessions", session("s1"))
        bad, begun = {**OLD, "status": "unheard of"}, {**OLD, "id": "e2", "status": "queued"}
        answer = await import_rows(ada, bad, begun, {**OLD, "id": "e3"})
        assert [row["syncError"]["code"] for row in answer] == ["INVALID"]
        assert [await has_job(ada, {"id": i}) for i in ("e1", "e2", "e3")] == [False, False, True]
        await ada.push("episodes", {**OLD, "id": "e3", "_deleted": True}, assumed={**OLD, "id": "e3"})
        assert not await has_job(ada, {"id": "e3"})
        await ada.add("episodes", OLD)
        await check_requests(h, model, ada, "old words")

    scenario_of(tmp_path, scenario, Rule(say=[REPLY]))
