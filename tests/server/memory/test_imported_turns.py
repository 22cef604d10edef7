"""Imported turns include their extracted memory, so the model sees them only after an edit of their text."""

import asyncio

from property.rows import day, episode, session
from server.memory.extracting_server import REPLY, finished, made, scenario_of, until
from server.scripted_llm import Rule
from vademecum.services.memory.turn_jobs import list_new_turns

OLD = episode("e1", "s1", userMessage="old words")


async def bring(person, *rows, collection="episodes"):
    """Push rows as an import of the app does."""
    batch = [{"newDocumentState": row, "imported": True} for row in rows]
    answer = await person.call("POST", f"/v1/sync/{collection}/0/push", json=batch)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def looked_at(h, person):
    """Wait until the worker has seen all turns and finished their jobs."""
    async with h.services.users.open(person.id) as store, asyncio.timeout(60):
        while list_new_turns(store):
            await asyncio.sleep(0.05)
    await finished(person)


async def asked_only(h, model, person, *words):
    """Check that the model was asked about exactly these turns."""
    await looked_at(h, person)
    assert len(model.asked) == len(words)
    for asked, word in zip(model.asked, words, strict=True):
        assert word in asked.question


async def known(person, turn):
    """Return whether the turn has a job, listed or not."""
    return (await person.call("POST", f"/v1/jobs/extract.episodes.{turn['id']}/retry")).status_code == 200


def test_only_new_turns_are_extracted_after_an_import(tmp_path):
    async def scenario(h, model, ada):
        await ada.add("sessions", session("s1"))
        assert await bring(ada, *({**OLD, "id": f"e{n}"} for n in range(30))) == []
        await asked_only(h, model, ada)
        assert not any((await made(ada)).values())
        await ada.add("episodes", episode("new", "s1", userMessage="new words"))
        await asked_only(h, model, ada, "new words")
        assert any((await made(ada)).values())
        found = await until(ada, lambda found: found["counts"]["done"])
        assert [job["subject"] for job in found["jobs"]] == ["episodes/new"], "the others were not done here"
        assert found["counts"] == {"waiting": 0, "running": 0, "failed": 0, "done": 1}

    scenario_of(tmp_path, scenario, Rule(say=[REPLY]))


def test_edited_imported_turn_is_extracted(tmp_path):
    async def scenario(h, model, ada):
        await ada.add("sessions", session("s1"))
        await bring(ada, OLD)
        renamed = {**OLD, "model": "another", "updatedAt": day(2)}
        await ada.push("episodes", renamed, assumed=OLD)
        await asked_only(h, model, ada)
        edited = {**renamed, "userMessage": "other words", "updatedAt": day(3)}
        await ada.push("episodes", edited, assumed=renamed)
        await asked_only(h, model, ada, "other words")

    scenario_of(tmp_path, scenario, Rule(say=[REPLY]))


def test_repeated_or_early_import_is_still_not_extracted(tmp_path):
    async def scenario(h, model, ada):
        assert await bring(ada, OLD) == []
        assert await bring(ada, OLD) == []
        await bring(ada, session("s1"), collection="sessions")
        await looked_at(h, ada)
        assert await bring(ada, OLD) == []
        await asked_only(h, model, ada)
        assert list(await ada.live("episodes")) == ["e1"]

    scenario_of(tmp_path, scenario, Rule(say=[REPLY]))


def test_importing_an_existing_turn_does_not_suppress_extraction(tmp_path):
    """Importing a turn that the account already has must not stop its extraction."""

    async def scenario(h, model, ada):
        await ada.add("episodes", OLD)
        await bring(ada, OLD)
        await ada.add("sessions", session("s1"))
        await asked_only(h, model, ada, "old words")

    scenario_of(tmp_path, scenario, Rule(say=[REPLY]))


def test_invalid_unfinished_or_deleted_imports_are_not_remembered(tmp_path):
    async def scenario(h, model, ada):
        await ada.add("sessions", session("s1"))
        bad, begun = {**OLD, "status": "unheard of"}, {**OLD, "id": "e2", "status": "queued"}
        answer = await bring(ada, bad, begun, {**OLD, "id": "e3"})
        assert [row["syncError"]["code"] for row in answer] == ["INVALID"]
        assert [await known(ada, {"id": i}) for i in ("e1", "e2", "e3")] == [False, False, True]
        await ada.push("episodes", {**OLD, "id": "e3", "_deleted": True}, assumed={**OLD, "id": "e3"})
        assert not await known(ada, {"id": "e3"})
        await ada.add("episodes", OLD)
        await asked_only(h, model, ada, "old words")

    scenario_of(tmp_path, scenario, Rule(say=[REPLY]))
