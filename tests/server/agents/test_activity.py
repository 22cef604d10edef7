"""Activity of agents: counts and times by project and by session, within a scope."""

from __future__ import annotations

from pathlib import Path

from server.agents.agent_events import APP, SITE, event, identify, list_observations, send_events, timestamp
from server.in_process_server import run_for_one

FILE = {"kind": "read", "path": "a.py"}


async def read_activity(person, what, project="*"):
    answer = await person.call("GET", f"/v1/agents/{what}", params={"project": project})
    assert answer.status_code == 200, answer.text
    return answer.json()[what]


async def count_by_project(person, project="*"):
    projects = await read_activity(person, "projects", project)
    return [(one["project"]["name"], one["observations"], one["lastAt"]) for one in projects]


def test_project_list_has_observation_count_and_last_time(tmp_path):
    async def scenario(h, ada):
        await ada.call("POST", "/v1/projects", json={"name": "choir"})
        await send_events(
            ada, event("ls", 5), event("make", 9), event(second=20, **FILE), event(second=40, **FILE)
        )
        await send_events(ada, event("site", 30, project=SITE))
        assert await count_by_project(ada) == [
            ("app", 3, timestamp(40)),
            ("site", 1, timestamp(30)),
            ("choir", 0, None),
        ]
        assert await count_by_project(ada, "site") == [("site", 1, timestamp(30))]
        (row,) = await list_observations(ada, "site")
        await ada.call("DELETE", f"/v1/observations/{row['id']}?project=site")
        assert await count_by_project(ada, "site") == [("site", 0, None)]

    run_for_one(tmp_path, scenario)


def test_agent_session_list_has_first_and_last_observation_time(tmp_path):
    async def scenario(h, ada):
        await send_events(ada, event("ls", 5), event("make", 9), event("early", 1, session="s2"))
        await send_events(ada, event("elsewhere", 50, session="s3", project=SITE))
        assert await read_activity(ada, "sessions", "app") == [
            {"agentSession": "s1", "observations": 2, "firstAt": timestamp(5), "lastAt": timestamp(9)},
            {"agentSession": "s2", "observations": 1, "firstAt": timestamp(1), "lastAt": timestamp(1)},
        ]
        assert [one["agentSession"] for one in await read_activity(ada, "sessions")] == ["s3", "s1", "s2"]

    run_for_one(tmp_path, scenario)


def test_projects_of_same_named_folders_are_listed_with_a_notice(tmp_path):
    async def scenario(h, ada):
        first, other = ({**APP, "root": str(tmp_path / name / "app")} for name in ("dev", "work"))
        for folder in (first, other):
            Path(folder["root"]).mkdir(parents=True)
            await send_events(ada, event("ls", project=folder))
        await send_events(ada, event("ls", project=SITE))
        notices = {one["project"]["name"]: one["notice"] for one in await read_activity(ada, "projects")}
        assert notices.pop("site") is None
        assert set(notices) == {"app", f"app ({other['root']})"}
        assert set(notices.values()) == {(await identify(ada, **first))["notice"]}
        assert "Two folders have the name “app”" in notices["app"]

    run_for_one(tmp_path, scenario)
