"""The scope of summaries: a session's summary follows its session, and a project's summary stays in the project."""

from property.rows import day, episode, project, session, summary
from server.in_process_server import check_problem, serve
from server.memory.extracting_server import push_turns, scenario_of
from server.memory.memory_rows import get, ids
from server.scripted_llm import Rule
from vademecum.model.memory.scope import InProject
from vademecum.services.chat import prompt_memory

OFF = {"extraction_daily": 0}


async def furnished(ada):
    assert await ada.push("projects", project("p1"), project("p2")) == []
    assert await ada.push("sessions", session("s1", projectId="p2"), session("s2", projectId="p1")) == []


async def test_summary_follows_its_session_to_another_project(tmp_path):
    async with serve(tmp_path) as h:
        ada = await h.person()
        await furnished(ada)
        rows = [
            summary("u1", sessionId="s1", projectId="p1", content="harpsichord"),
            summary("u2", sessionId="s2"),
            summary("u3", projectId="p1"),
        ]
        assert await ada.push("summaries", *rows) == []
        assert sorted(ids((await get(ada, "projects/p1/summaries"))["summaries"])) == ["u2", "u3"]
        assert ids((await get(ada, "projects/p2/summaries"))["summaries"]) == ["u1"]


async def test_prompt_overview_excludes_session_summaries(tmp_path):
    async with serve(tmp_path) as h:
        ada = await h.person()
        await furnished(ada)
        assert await ada.push("summaries", summary("u1", sessionId="s1", projectId="p1")) == []
        async with h.services.users.open(ada.id) as store:
            assert await prompt_memory.read_summaries(store, "s2", InProject("p1")) == []


async def test_summary_that_names_the_wrong_project_is_rejected(tmp_path):
    async with serve(tmp_path) as h:
        ada = await h.person()
        await furnished(ada)
        body = {"content": "said", "sessionId": "s1", "projectId": "p1"}
        check_problem(await ada.call("POST", "/v1/summaries", json=body), 400, "BAD_REQUEST")
        assert await ada.live("summaries") == {}
        made = await ada.call("POST", "/v1/summaries", json={**body, "projectId": "p2"})
        assert made.status_code == 201
        unknown = await ada.call("POST", "/v1/summaries", json={**body, "sessionId": "none"})
        check_problem(unknown, 404, "NOT_FOUND")


def test_new_session_summary_keeps_a_summary_that_names_a_project(tmp_path):
    async def scenario(h, model, ada):
        await push_turns(ada, episode("e1", "s1"))
        both = summary("a1", sessionId="s1", projectId="p1", content="of both")
        assert await ada.push("summaries", both) == []
        made = (await ada.call("POST", "/v1/sessions/s1/summarize")).json()
        assert made["id"] != "a1" and (await ada.live("summaries"))["a1"]["content"] == "of both"

    scenario_of(tmp_path, scenario, Rule(say=["It is about rent."]), **OFF)


def test_new_project_overview_replaces_the_displayed_overview(tmp_path):
    async def scenario(h, model, ada):
        await push_turns(ada, episode("e1", "s1"))
        rows = [
            summary("a1", projectId="p1", createdAt=day(1)),
            summary("b1", projectId="p1", createdAt=day(9)),
            summary("c1", projectId="p1", createdAt=day(3)),
            summary("w1", projectId="p1", sessionId="later", createdAt=day(20)),  # a waiting row
        ]
        assert await ada.push("summaries", *rows) == []
        made = (await ada.call("POST", "/v1/projects/p1/summarize")).json()
        shown = await get(ada, "projects/p1/overview")
        assert (made["id"], shown["id"], shown["content"]) == ("b1", "b1", "It is about rent.")

    scenario_of(tmp_path, scenario, Rule(say=["It is about rent."]), **OFF)
