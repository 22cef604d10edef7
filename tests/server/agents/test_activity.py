"""Where agents work: counts and times of projects and of sessions, each within its scope."""

from __future__ import annotations

from pathlib import Path

from server.agents.agent_events import APP, SITE, event, identify, listed, moment, take
from server.in_process_server import run_for_one

FILE = {"kind": "read", "path": "a.py"}


async def told(person, what, project="*"):
    answer = await person.call("GET", f"/v1/agents/{what}", params={"project": project})
    assert answer.status_code == 200, answer.text
    return answer.json()[what]


async def counted(person, project="*"):
    found = await told(person, "projects", project)
    return [(one["project"]["name"], one["observations"], one["lastAt"]) for one in found]


def test_projects_list_observation_count_and_last_time(tmp_path):
    async def scenario(h, ada):
        await ada.call("POST", "/v1/projects", json={"name": "choir"})
        await take(ada, event("ls", 5), event("make", 9), event(second=20, **FILE), event(second=40, **FILE))
        await take(ada, event("site", 30, project=SITE))
        assert await counted(ada) == [("app", 3, moment(40)), ("site", 1, moment(30)), ("choir", 0, None)]
        assert await counted(ada, "site") == [("site", 1, moment(30))]
        (row,) = await listed(ada, "site")
        await ada.call("DELETE", f"/v1/observations/{row['id']}?project=site")
        assert await counted(ada, "site") == [("site", 0, None)]

    run_for_one(tmp_path, scenario)


def test_sessions_list_first_and_last_time(tmp_path):
    async def scenario(h, ada):
        await take(ada, event("ls", 5), event("make", 9), event("early", 1, session="s2"))
        await take(ada, event("elsewhere", 50, session="s3", project=SITE))
        assert await told(ada, "sessions", "app") == [
            {"agentSession": "s1", "observations": 2, "firstAt": moment(5), "lastAt": moment(9)},
            {"agentSession": "s2", "observations": 1, "firstAt": moment(1), "lastAt": moment(1)},
        ]
        assert [one["agentSession"] for one in await told(ada, "sessions")] == ["s3", "s1", "s2"]

    run_for_one(tmp_path, scenario)


def test_projects_of_folders_with_same_name_have_notice(tmp_path):
    async def scenario(h, ada):
        first, other = ({**APP, "root": str(tmp_path / name / "app")} for name in ("dev", "work"))
        for folder in (first, other):
            Path(folder["root"]).mkdir(parents=True)
            await take(ada, event("ls", project=folder))
        await take(ada, event("ls", project=SITE))
        notices = {one["project"]["name"]: one["notice"] for one in await told(ada, "projects")}
        assert notices.pop("site") is None
        assert set(notices) == {"app", f"app ({other['root']})"}
        assert set(notices.values()) == {(await identify(ada, **first))["notice"]}
        assert "Two folders have the name “app”" in notices["app"]

    run_for_one(tmp_path, scenario)
