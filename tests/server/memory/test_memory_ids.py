"""Ids that are derived from a memory's text: they do not reveal deleted text, but identify a deleted statement."""

from property.rows import episode, project, session
from server.memory.extracting_server import (
    FOUND,
    REPLY,
    extracted_rows,
    push_turns,
    scenario_of,
    wait_until_finished,
)
from server.scripted_llm import Rule

KINDS = ("memories", "facts")


def test_same_memory_text_gets_different_ids_in_two_accounts(tmp_path):
    async def scenario(h, model, ada):
        bob = await h.person()
        for person in (ada, bob):
            await push_turns(person)
            await wait_until_finished(person)
        hers, his = await extracted_rows(ada), await extracted_rows(bob)
        assert set(hers["entities"]) == set(his["entities"]), (
            "entity ids must depend only on the project, type and name"
        )
        for kind in KINDS:
            assert len(hers[kind]) == 1 and set(hers[kind]).isdisjoint(his[kind]), kind

    scenario_of(tmp_path, scenario, Rule(say=[REPLY]))


def test_forget_everything_rotates_the_id_key_permanently(tmp_path):
    keys = []

    async def forgotten(h, model, ada):
        async def key():
            async with h.services.users.open(ada.id) as store:
                return await store.write(lambda tx: tx.meta.id_key)

        keys.append(await key())
        await ada.call("POST", "/v1/forget", json={"confirm": "forget everything"})
        keys.append(await key())
        await h.services.users.rewrite(ada.id)
        keys.append(await key())

    scenario_of(tmp_path, forgotten, Rule(say=[REPLY]))
    first, second, third = keys
    assert first and second and first != second == third


def test_memory_deleted_by_user_is_not_extracted_again(tmp_path):
    async def scenario(h, model, ada):
        await ada.push("projects", project("p1"))
        await ada.push("sessions", session("s1", projectId="p1"))
        body = {"text": FOUND["memories"][0], "sessionId": "s1"}
        memory = (await ada.call("POST", "/v1/memories", json=body)).json()["memory"]
        await ada.push("memories", {**memory, "_deleted": True}, assumed=memory)
        await ada.push("episodes", episode("e1", "s1"))
        await wait_until_finished(ada)
        assert await ada.live("memories") == {}
        assert (await ada.call("POST", "/v1/memories", json=body)).status_code == 201
        assert len(await ada.live("memories")) == 1, "the user must be able to store the memory again"

    scenario_of(tmp_path, scenario, Rule(say=[REPLY]))
