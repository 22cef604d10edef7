"""Observation search: scopes, words and filters. No search for other rows finds observations."""

from __future__ import annotations

import asyncio

import pytest

from property.rows import episode, memory, session
from server.agents.agent_events import SITE, event, identify, list_observations, send_events, timestamp
from server.in_process_server import MODELS, check_problem, run_for_one

WORD = "aubergine"


async def search(person, query=WORD, project="app", **more):
    body = {"query": query, "project": project, "limit": 100, **more}
    answer = await person.call("POST", "/v1/observations/search", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["results"]


async def search_texts(person, *args, **more):
    return [
        hit[hit["type"]].get("content") or hit["memory"]["text"]
        for hit in await search(person, *args, **more)
    ]


def test_observation_search_finds_only_rows_of_the_scope(tmp_path):
    async def scenario(h, ada):
        await send_events(
            ada, event(f"cut the {WORD}"), event("boil water"), event(f"{WORD} of the site", project=SITE)
        )
        app = (await identify(ada))["project"]["id"]
        await ada.push(
            "memories",
            memory("m1", text=f"Ada likes {WORD}", projectId=app),
            memory("m2", text=f"{WORD} pool"),
        )
        assert set(await search_texts(ada)) == {f"cut the {WORD}", f"Ada likes {WORD}"}
        assert await search_texts(ada, project="site") == [f"{WORD} of the site"]
        assert len(await search_texts(ada, project=None)) == 4
        assert {hit["type"] for hit in await search(ada)} == {"observation", "memory"}

    run_for_one(tmp_path / "data", scenario)


def test_observation_search_finds_paraphrases_by_meaning(tmp_path):
    async def scenario(h, ada):
        await send_events(
            ada,
            event("Decided to keep all data in PostgreSQL", kind="decision"),
            event("painted the fence green"),
        )
        await h.drain_jobs(ada)
        (first, *_) = await search_texts(ada, "which database do we store things in?")
        assert "PostgreSQL" in first

    run_for_one(tmp_path / "data", scenario, model=MODELS)


def test_observation_filters_kind_path_and_time_apply_before_the_limit(tmp_path):
    async def scenario(h, ada):
        many = [event(f"{WORD} {n}", n) for n in range(150)]
        await send_events(ada, *many, event(f"{WORD} read", 200, kind="read", path="src/a.py"))
        await send_events(
            ada, event(f"{WORD} read", 210, kind="read", path="srcs/b.py"), event("src", 220, path="src")
        )
        assert await search_texts(ada, kind="read", path="src", limit=1) == [f"{WORD} read"]
        assert {hit["observation"]["path"] for hit in await search(ada, path="src")} == {"src/a.py"}
        assert len(await search_texts(ada, kind="read")) == 2
        assert set(await search_texts(ada, after=timestamp(147), before=timestamp(150))) == {
            f"{WORD} 148",
            f"{WORD} 149",
        }

    run_for_one(tmp_path / "data", scenario)


def test_observation_filters_session_and_pinned_apply_before_ranking(tmp_path):
    async def scenario(h, ada):
        await send_events(
            ada, *(event(f"{WORD} {n}", n) for n in range(120)), event(f"{WORD} of s2", session="s2")
        )
        (kept,) = await list_observations(ada, agentSession="s2")
        await ada.call("PATCH", f"/v1/observations/{kept['id']}?project=app", json={"pinned": True})
        app = (await identify(ada))["project"]["id"]
        await ada.push("memories", memory("m1", text=f"Ada likes {WORD}", projectId=app))
        for filters in ({"agentSession": "s2"}, {"pinned": True}):
            assert await search_texts(ada, limit=1, **filters) == [f"{WORD} of s2"]
            assert len(await search_texts(ada, **filters)) == 1

    run_for_one(tmp_path / "data", scenario)


def test_repeated_observation_is_found_only_by_its_newest_text(tmp_path):
    async def scenario(h, ada):
        await send_events(ada, event(f"{WORD} old", 1, kind="edit", path="a"))
        assert await search_texts(ada) == [f"{WORD} old"]
        await send_events(ada, event("courgette", 2, kind="edit", path="a"))
        assert await search_texts(ada) == [] and await search_texts(ada, "courgette") == ["courgette"]
        (row,) = await list_observations(ada)
        await ada.call("DELETE", f"/v1/observations/{row['id']}?project=app")
        assert await search_texts(ada, "courgette") == []

    run_for_one(tmp_path / "data", scenario)


@pytest.mark.parametrize(
    "wrong", [{"query": " "}, {"limit": 0}, {"limit": 101}, {"before": "soon"}, {"kind": "dance"}]
)
def test_invalid_observation_search_is_rejected(wrong, tmp_path):
    async def scenario(h, ada):
        await send_events(ada, event())
        body = {"query": WORD, "project": "app", **wrong}
        check_problem(await ada.call("POST", "/v1/observations/search", json=body), 400, "BAD_REQUEST")

    run_for_one(tmp_path / "data", scenario)


def test_observations_appear_in_no_other_search_or_prompt(tmp_path):
    async def scenario(h, ada):
        await send_events(ada, event(f"{WORD} from the agent"))
        app = (await identify(ada))["project"]["id"]
        await ada.push("sessions", session("s1", projectId=app))
        await ada.push("episodes", episode("e1", "s1", userMessage=f"{WORD}?", aiResponse="Purple."))
        await ada.push("memories", memory("m1", text=f"Ada likes {WORD}", projectId=app))
        await ada.call("POST", "/v1/entities", json={"projectId": app, "name": WORD, "type": "concept"})
        await h.drain_jobs(ada)
        for scope in ({"sessionId": "s1"}, {"project": "*"}):
            body = {"q": WORD, "limit": 100, **scope}
            answers = [
                await ada.call("GET", f"/v1/{kind}/search", params=body) for kind in ("episodes", "entities")
            ]
            wanted = {
                "query": WORD,
                **{name: None if value == "*" else value for name, value in scope.items()},
            }
            answers.append(await ada.call("POST", "/v1/memories/search", json=wanted))
            for answer in answers:
                assert len(answer.json()["results"]) == 1 and "from the agent" not in answer.text
        prompt = await ada.call("POST", "/v1/context", json={"query": WORD, "sessionId": "s1"})
        assert "Ada likes" in prompt.text and "from the agent" not in prompt.text

    run_for_one(tmp_path / "data", scenario)


def test_observation_search_finds_just_ingested_events(tmp_path):
    async def scenario(h, ada):
        for number in range(5):
            await send_events(ada, event(f"{WORD} {number}", number))
            assert len(await search_texts(ada)) == number + 1

    run_for_one(tmp_path / "data", scenario)


def test_observation_search_during_writes_stays_in_scope(tmp_path):
    async def scenario(h, ada):
        await send_events(ada, event("begin"), event("begin", project=SITE))

        async def write(project, count=12):
            for number in range(count):
                more = {} if project == "app" else {"project": SITE}
                await send_events(ada, event(f"{WORD} {project} {number}", number, **more))

        async def ask(project):
            for _ in range(12):
                assert all(project in text for text in await search_texts(ada, project=project))

        await asyncio.gather(write("app"), write("site"), ask("app"), ask("site"))

    run_for_one(tmp_path / "data", scenario)
