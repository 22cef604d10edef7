"""Turns out of an export come with what was made of them: the model is not asked again, until their words are others."""

import asyncio

from property.rows import day, episode, session
from server.memory.extracting_server import REPLY, finished, made, scenario_of, until
from server.scripted_llm import Rule
from vademecum.services.memory.turn_jobs import list_new_turns

OLD = episode("e1", "s1", userMessage="old words")


async def bring(person, *rows, collection="episodes"):
    """Push rows as an app does that has them out of an export."""
    batch = [{"newDocumentState": row, "imported": True} for row in rows]
    answer = await person.call("POST", f"/v1/sync/{collection}/0/push", json=batch)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def looked_at(h, person):
    """Wait until all turns have been looked at, and what they caused is done."""
    async with h.services.users.open(person.id) as store, asyncio.timeout(60):
        while list_new_turns(store):
            await asyncio.sleep(0.05)
    await finished(person)


async def asked_only(h, model, person, *words):
    """The model was asked about these turns alone."""
    await looked_at(h, person)
    assert len(model.asked) == len(words)
    for asked, word in zip(model.asked, words, strict=True):
        assert word in asked.question


async def known(person, turn):
    """Whether there is a job of the turn, told or not."""
    return (await person.call("POST", f"/v1/jobs/extract.episodes.{turn['id']}/retry")).status_code == 200


def test_the_model_is_asked_about_what_is_said_here_and_not_about_what_was_imported(tmp_path):
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


def test_an_imported_turn_that_is_edited_is_looked_at_like_any_other(tmp_path):
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


def test_an_import_that_is_sent_again_or_came_before_its_session_stays_one(tmp_path):
    async def scenario(h, model, ada):
        assert await bring(ada, OLD) == []
        assert await bring(ada, OLD) == []
        await bring(ada, session("s1"), collection="sessions")
        await looked_at(h, ada)
        assert await bring(ada, OLD) == []
        await asked_only(h, model, ada)
        assert list(await ada.live("episodes")) == ["e1"]

    scenario_of(tmp_path, scenario, Rule(say=[REPLY]))


def test_what_is_here_already_is_looked_at_for_what_it_says_here(tmp_path):
    """Who imports what the account has does not keep the account from remembering it."""

    async def scenario(h, model, ada):
        await ada.add("episodes", OLD)
        await bring(ada, OLD)
        await ada.add("sessions", session("s1"))
        await asked_only(h, model, ada, "old words")

    scenario_of(tmp_path, scenario, Rule(say=[REPLY]))


def test_nothing_is_known_of_an_imported_turn_that_was_refused_is_not_over_or_is_deleted(tmp_path):
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
