"""Extraction with hostile or faulty model replies: no turn is lost, and no row is stored twice."""

import json

import msgspec
import pytest

from property.rows import entity, episode, fact, memory, project, session
from server.in_process_server import reconnect, serve
from server.memory.extracting_server import (
    FOUND,
    REPLY,
    extracted_rows,
    push_turns,
    reply,
    scenario_of,
    wait_for_failed_attempt,
    wait_until_finished,
)
from server.scripted_llm import Rule
from vademecum.errors import BadRequest
from vademecum.model.memory.extraction import ENTITIES_MAX, Entity, Relationship, ValidatedExtraction
from vademecum.model.memory.scope import InProject, Pool
from vademecum.model.sync.quotas import Limits
from vademecum.services.memory.extract import _Entity, _ExtractionWriter

ADA = {"name": "Ada Brook", "type": "person"}
TRUE = {"entities": [ADA], "memories": ["Ada Brook has a boat."]}
MEGABYTE = "A" * 1_000_000
HUGE = "1" + "0" * 400


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"memories": TRUE["memories"], "entities": [ADA, {"name": MEGABYTE, "type": "person"}]}),
        json.dumps({**TRUE, "memories": [*TRUE["memories"], MEGABYTE[:300] * 100]}),
        json.dumps(
            {**TRUE, "entities": [ADA, *({"name": "Ada  BROOK", "type": "person"} for _ in range(99))]}
        ),
        json.dumps(
            {**TRUE, "memories": [*TRUE["memories"], "......", "-----", "\u200b" * 9, None, 7, [], {}]}
        ),
        json.dumps({**TRUE, "sessions": [session("s9")], "projects": "all", "drop": "table"}),
        json.dumps({"thoughts": "a" * 5000}) + json.dumps(TRUE) + json.dumps(FOUND),
        json.dumps(TRUE)[:-1] + ', "facts": [{"key": "", "value": ""}, {"key": "a", "value": "\\u200b"}]}',
    ],
    ids=[
        "a long name",
        "a long text",
        "one name often",
        "no words",
        "other kinds",
        "two answers",
        "empty facts",
    ],
)
def test_only_valid_items_of_hostile_reply_are_stored(tmp_path, text):
    async def scenario(h, model, ada):
        await push_turns(ada)
        assert (await wait_until_finished(ada))["counts"]["done"] == 1
        rows = await extracted_rows(ada)
        names = [row["name"] for row in rows["entities"].values()]
        assert "Ada Brook" in names and len(names) <= 2 and max(map(len, names)) <= 100
        texts = [row["text"] for row in rows["memories"].values()]
        assert "Ada Brook has a boat." in texts and len(texts) <= 2 and max(map(len, texts)) <= 500
        assert rows["facts"] == rows["relationships"] == {}

    scenario_of(tmp_path, scenario, Rule(say=[text]))


@pytest.mark.parametrize("number", [HUGE, "-" + HUGE, "1e308", "0.5"])
def test_out_of_range_confidence_of_extracted_fact_is_clamped(tmp_path, number):
    async def scenario(h, model, ada):
        await push_turns(ada)
        assert (await wait_until_finished(ada))["counts"]["done"] == 1
        rows = await extracted_rows(ada)
        assert len(rows["entities"]) == len(rows["memories"]) == len(rows["facts"]) == 1
        assert all(0 <= row["confidence"] <= 1 for row in rows["facts"].values())

    fact_said = f'{{"key": "user.city", "value": "Bern", "confidence": {number}}}'
    scenario_of(tmp_path, scenario, Rule(say=[json.dumps(TRUE)[:-1] + f', "facts": [{fact_said}]}}']))


def test_number_of_entities_per_extraction_reply_is_limited(tmp_path):
    many = [{"name": f"Person {n} of Ten Thousand", "type": "person"} for n in range(10_000)]

    async def scenario(h, model, ada):
        await push_turns(ada)
        await wait_until_finished(ada)
        assert len((await extracted_rows(ada))["entities"]) == ENTITIES_MAX

    scenario_of(tmp_path, scenario, Rule(say=reply(entities=many)))


def test_turn_with_unreadable_extraction_reply_is_kept_and_retried(tmp_path):
    async def scenario(h, model, ada):
        await push_turns(ada)
        found = await wait_for_failed_attempt(ada)
        assert found["counts"]["waiting"] == 1 and not any((await extracted_rows(ada)).values())
        assert set(await ada.live("episodes")) == {"e1"}
        model.rules = [Rule(say=[REPLY])]
        await wait_until_finished(ada)
        assert len((await extracted_rows(ada))["entities"]) == 2

    scenario_of(tmp_path, scenario, Rule(say=reply(entities=[{"name": 2 * MEGABYTE, "type": "person"}])))


async def test_extracted_rows_that_violate_the_schema_are_rejected(tmp_path):
    async with serve(tmp_path) as h:
        ada = await h.person()
        keep = _ExtractionWriter(Limits(), "s1", "", Pool(), [], {}, [])
        reply_body = {
            "key": "user.city",
            "value": "Bern",
            "confidence": 7,
            "confirmed": False,
            "sourceRemoved": False,
        }
        async with h.services.users.open(ada.id) as store:
            with pytest.raises(BadRequest, match="confidence"):
                await store.write(lambda tx: keep._put_row(tx, "facts", "f1", reply_body))
        assert await ada.live("facts") == {}


def test_extraction_reply_cannot_choose_ids_projects_or_confirmation(tmp_path):
    mine = fact("mine", key="user.name", value="Ada", confirmed=True)
    pinned_memory = memory("m-pinned", text="Ada likes tea.", projectId="p2", pinned=True)
    other = entity("n-other", "p2", name="Secret Mill", type="place", notes="of another project")
    lies = {
        "entities": [{**ADA, "id": "n-other", "projectId": "p2", "notes": "moved", "_deleted": True}],
        "memories": [{"id": "m-pinned", "text": "Ada hates tea.", "projectId": "p2", "pinned": True,
                      "sessionIds": ["s2"], "source": "user", "supersedes": "m-pinned"}],
        "facts": [{"id": "mine", "key": "user.name", "value": "Mallory", "confidence": 1, "confirmed": True},
                  {"key": "User Pet", "value": "a cat", "confidence": 1, "confirmed": True}],
        "relationships": [{"from": "Ada Brook", "to": "Secret Mill", "label": "owns"},
                          {"from": "n-other", "to": "Ada Brook", "label": "owns"}],
    }  # fmt: skip

    async def scenario(h, model, ada):
        await ada.push("projects", project("p2"))
        for name, row in (("facts", mine), ("memories", pinned_memory), ("entities", other)):
            assert await ada.push(name, row) == []
        await push_turns(ada)
        await wait_until_finished(ada)
        rows = await extracted_rows(ada)
        assert rows["facts"].pop("mine") == mine
        assert [(row["key"], row["confirmed"]) for row in rows["facts"].values()] == [("user_pet", False)]
        assert rows["memories"].pop("m-pinned") == pinned_memory and rows["entities"].pop("n-other") == other
        (said,) = rows["memories"].values()
        assert (said["projectId"], said["pinned"], said["source"], said["sessionIds"]) == (
            "p1", False, "extracted", ["s1"],
        )  # fmt: skip
        assert [row["projectId"] for row in rows["entities"].values()] == ["p1"]
        assert rows["relationships"] == {}, "no relationship may lead to another project"
        assert "Secret Mill" not in json.dumps(model.requests[0].body), (
            "the request must not contain a name of another project"
        )

    scenario_of(tmp_path, scenario, Rule(say=[json.dumps(lies)]))


def test_statements_repeated_in_later_turns_add_no_rows(tmp_path):
    """Otherwise a model that repeats recalled memories multiplies rows: one memory once became 668 rows."""

    async def scenario(h, model, ada):
        for turn in range(4):
            words = f"Turn {turn}. [MEMORY CONTEXT] ada brook has a boat. [END MEMORY CONTEXT]"
            await push_turns(ada, episode(f"e{turn}", "s1", aiResponse=words))
            await wait_until_finished(ada)
        assert len(model.requests) == 4
        rows = await extracted_rows(ada)
        assert len(rows["memories"]) == len(rows["entities"]) == 1

    said = [
        json.dumps({**TRUE, "memories": [text]})
        for text in ("Ada Brook has a boat.", "ADA brook  has a boat")
    ]
    scenario_of(tmp_path, scenario, Rule(when="Turn 0", say=said[:1]), Rule(say=said[1:]))


def test_server_restart_after_storing_extraction_adds_no_rows(tmp_path):
    people = []

    async def stored(h, model, ada):
        people.append(ada)
        await push_turns(ada)
        await wait_until_finished(ada)

    async def started(h, model, _):
        (ada,) = people
        reconnect(h, ada)
        before = await extracted_rows(ada)
        async with h.services.users.open(ada.id) as store:
            (job,) = (await store.list_jobs(1))[0]
            found = msgspec.json.encode(
                ValidatedExtraction(
                    [Entity("Ada Brook", "person", "the miller")], [], ["Ada Brook runs the Old Mill."], []
                )
            )
            cut_off = msgspec.structs.replace(job, state="running", found=found.decode())
            await store.write(lambda tx: tx.jobs.put(cut_off))
        h.services.background_jobs.schedule("work", ada.id, 0)
        assert (await wait_until_finished(ada))["counts"]["done"] == 1
        after = await extracted_rows(ada)
        assert {name: set(rows) for name, rows in after.items()} == {
            n: set(rows) for n, rows in before.items()
        }
        assert model.requests == []

    scenario_of(tmp_path, stored, Rule(say=[REPLY]))
    scenario_of(tmp_path, started, Rule(say=[REPLY]))


def test_extraction_for_former_project_or_epoch_stores_no_rows(tmp_path):
    """Extraction reads known entities before its transaction. Meanwhile the session may move, or a restore may run."""

    async def scenario(h, model, ada):
        await push_turns(ada)
        await wait_until_finished(ada)
        await ada.push("projects", project("p2"))
        await ada.push("entities", entity("n-old", "p2", name="Secret Mill", type="place"))
        found = ValidatedExtraction(
            [Entity("Ada Brook", "person")], [Relationship("Ada Brook", "Secret Mill", "owns")]
        )
        async with h.services.users.open(ada.id) as store:
            (job,) = (await store.list_jobs(1))[0]
            limits = h.services.limits(h.services.accounts.accounts[ada.id])
            for epoch, project_id in ((store.epoch, "p2"), ("of before a restore", "p1")):
                old_entities = [_Entity("n-old", "Secret Mill")]
                keep = _ExtractionWriter(limits, "s1", epoch, InProject(project_id), old_entities, {}, [])
                assert not await store.write(lambda tx, keep=keep: keep.write(tx, job, found))
        rows = await extracted_rows(ada)
        assert set(rows["entities"]) == {"n-old"} and rows["relationships"] == {}

    scenario_of(tmp_path, scenario, Rule(say=reply(entities=[])))
