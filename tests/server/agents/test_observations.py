"""Hook events become observations of their project. Repeated events are merged, and observations are not synced."""

from __future__ import annotations

import asyncio

import pytest

from property.rows import dead, project, sync_path
from server.agents.agent_events import APP, SITE, event, list_observations, send_events, timestamp
from server.in_process_server import Harness, Person, check_problem, run, run_for_one, serve
from vademecum.model.sync.quotas import Limits
from vademecum.settings import default_tiers


def test_hook_event_becomes_observation_of_its_project(tmp_path):
    async def scenario(h: Harness, ada: Person) -> None:
        sent = event("make check", 3, tool="Bash", path="src")
        assert await send_events(ada, sent) == 1
        (row,) = await list_observations(ada, "app")
        assert {**row, "id": "", "projectId": ""} == {
            "id": "", "createdAt": timestamp(3), "updatedAt": timestamp(3), "_deleted": False, "projectId": "", "kind": "command",
            "agentSession": "s1", "content": "make check", "path": "src", "tool": "Bash", "count": 1, "pinned": False,
            "redactions": 0}  # fmt: skip
        assert (await ada.live("projects"))[row["projectId"]]["name"] == "app"

    run_for_one(tmp_path, scenario)


def test_event_sent_again_changes_no_observation(tmp_path):
    async def scenario(h: Harness, ada: Person) -> None:
        one, two = event("one"), event("two", 1)
        assert await send_events(ada, one, one, two) == 2
        before = await list_observations(ada)
        assert await send_events(ada, two, one) == 0
        assert await list_observations(ada) == before and {row["count"] for row in before} == {1}

    run_for_one(tmp_path, scenario)


def test_repeated_events_become_one_observation_with_a_count(tmp_path):
    async def scenario(h: Harness, ada: Person) -> None:
        file = {"kind": "read", "path": "a.py"}
        await send_events(ada, event("second", 20, **file), event("first", 10, redactions=2, **file))
        await send_events(ada, event("earlier still", 5, **file))
        (row,) = await list_observations(ada)
        assert (row["count"], row["content"], row["redactions"]) == (3, "second", 2)
        assert (row["createdAt"], row["updatedAt"]) == (timestamp(5), timestamp(20))
        others = [{"session": "s2"}, {"kind": "edit"}, {"path": "b.py"}, {"project": SITE}]
        await send_events(ada, *(event("other", 30, **{**file, **other}) for other in others))
        assert len(await list_observations(ada)) == 5
        await send_events(ada, event("make"), event("make", 1), event("test", 2))
        commands = await list_observations(ada, kind="command")
        assert {row["content"]: row["count"] for row in commands} == {"make": 2, "test": 1}

    run_for_one(tmp_path, scenario)


def test_event_sent_concurrently_is_counted_once(tmp_path):
    async def scenario(h: Harness, ada: Person) -> None:
        events = [event("make", n) for n in range(40)]
        taken = await asyncio.gather(*(send_events(ada, *events[at : at + 20]) for at in (0, 10, 20, 5, 0)))
        assert sum(taken) == 40
        (row,) = await list_observations(ada)
        assert row["count"] == 40

    run_for_one(tmp_path, scenario)


def test_observation_list_is_paginated_and_filtered(tmp_path):
    async def scenario(h: Harness, ada: Person) -> None:
        await send_events(
            ada, *(event(f"c{n}", n) for n in range(5)), event("why", 9, kind="decision", session="s2")
        )
        seen, cursor = [], ""
        while cursor is not None:
            params = {"project": "app", "limit": 2, "cursor": cursor}
            page = (await ada.call("GET", "/v1/observations", params=params)).json()
            seen += [row["content"] for row in page["observations"]]
            cursor = page["next"]
        assert seen == ["why", "c4", "c3", "c2", "c1", "c0"]
        assert [row["content"] for row in await list_observations(ada, kind="decision")] == ["why"]
        assert [row["content"] for row in await list_observations(ada, agentSession="s2")] == ["why"]
        (row,) = await list_observations(ada, kind="decision")
        pinned = await ada.call("PATCH", f"/v1/observations/{row['id']}?project=app", json={"pinned": True})
        assert pinned.json()["observation"] == {**row, "pinned": True}
        assert [row["content"] for row in await list_observations(ada, pinned="true")] == ["why"]
        assert len(await list_observations(ada, pinned="false")) == 5

    run_for_one(tmp_path, scenario)


def test_repeated_observation_stays_pinned(tmp_path):
    async def scenario(h: Harness, ada: Person) -> None:
        await send_events(ada, event("make"))
        (row,) = await list_observations(ada)
        await ada.call("PATCH", f"/v1/observations/{row['id']}?project=app", json={"pinned": True})
        await send_events(ada, event("make", 5))
        assert [(row["pinned"], row["count"]) for row in await list_observations(ada)] == [(True, 2)]

    run_for_one(tmp_path, scenario)


def test_observations_are_pinned_and_deleted_only_within_scope(tmp_path):
    async def scenario(h: Harness, ada: Person) -> None:
        await send_events(ada, event("mine"), event("of the site", project=SITE))
        (row,) = await list_observations(ada, "app")
        path = f"/v1/observations/{row['id']}"
        for params, status in (({}, 400), ({"project": "site"}, 404), ({"project": "nowhere"}, 404)):
            for method, body in (("PATCH", {"json": {"pinned": True}}), ("DELETE", {})):
                answer = await ada.call(method, path, params=params, **body)
                assert answer.status_code == status, (method, params)
        assert await list_observations(ada, "app") == [row]
        unknown = await ada.call("DELETE", "/v1/observations/unknown", params={"project": "site"})
        foreign = await ada.call("DELETE", path, params={"project": "site"})
        assert foreign.json()["detail"] == unknown.json()["detail"]
        assert (await ada.call("DELETE", path, params={"project": "app"})).status_code == 200
        assert [row["content"] for row in await list_observations(ada)] == ["of the site"]

    run_for_one(tmp_path, scenario)


def test_timeline_lists_observations_of_one_project_oldest_first(tmp_path):
    async def scenario(h: Harness, ada: Person) -> None:
        await send_events(ada, *(event(f"a{n}", 2 * n) for n in range(6)))
        await send_events(ada, *(event(f"b{n}", 2 * n + 1, project=SITE) for n in range(6)))
        middle = next(row for row in await list_observations(ada) if row["content"] == "a3")
        for scope in ("app", "*"):
            params = {"project": scope, "before": 2, "after": 1}
            answer = await ada.call("GET", f"/v1/observations/{middle['id']}/timeline", params=params)
            assert [row["content"] for row in answer.json()["observations"]] == ["a1", "a2", "a3", "a4"]

    run_for_one(tmp_path, scenario)


def test_secrets_in_session_and_tool_names_are_redacted(tmp_path):
    async def scenario(h: Harness, ada: Person) -> None:
        secret, build = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2, "assets/index-BkX9d2LmQz7TfGh3.js"
        await send_events(ada, event("x", path=build, session=f"s {secret}", tool=f"mcp__{secret} {secret}"))
        (row,) = await list_observations(ada)
        assert secret not in str(row) and row["path"] == build and row["redactions"] >= 2
        assert "[redacted]" in row["agentSession"] and "[redacted]" in row["tool"]

    run_for_one(tmp_path, scenario)


def test_secrets_in_sent_events_are_redacted(tmp_path):
    async def scenario(h: Harness, ada: Person) -> None:
        secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
        await send_events(ada, event(f"curl -H 'Authorization: token {secret}'", path=f"x/{secret}"))
        (row,) = await list_observations(ada)
        assert secret[:24] not in str(row) and row["redactions"] >= 1

    run_for_one(tmp_path, scenario)


@pytest.mark.parametrize("collection", ["observations", "roots"])
def test_observations_are_not_a_synced_collection(collection, tmp_path):
    async def scenario(h: Harness, ada: Person) -> None:
        await send_events(ada, event())
        for name in (collection, "nothing"):
            message = f"There is no collection {name}."
            for method, path in {"GET": "pull", "POST": "push"}.items():
                answer = await ada.call(method, f"{sync_path(name)}/{path}", json=[])
                assert check_problem(answer, 404, "NOT_FOUND")["detail"] == message
            for path in (f"{name}/0/pullStream", f"stream?versions={name}:0"):
                answer = await asyncio.wait_for(ada.call("GET", f"/v1/sync/{path}"), 60)
                assert check_problem(answer, 404, "NOT_FOUND")["detail"] == message

    run_for_one(tmp_path, scenario)


def test_streams_contain_no_events_about_observations(tmp_path):
    async def scenario(h: Harness, ada: Person) -> None:
        stream = asyncio.create_task(ada.call("GET", "/v1/sync/stream"))
        await h.streams(1)
        await send_events(ada, event("quite unmistakable"))
        await ada.push("projects", project("p9"))
        h.services.hub.close_user(ada.id)
        received = (await asyncio.wait_for(stream, 60)).text
        assert "p9" in received and '"app"' in received
        assert "unmistakable" not in received and "observations" not in received and "roots" not in received

    run_for_one(tmp_path, scenario)


def test_project_deletion_deletes_observations_and_claims(tmp_path):
    async def scenario(h: Harness, ada: Person) -> None:
        await send_events(ada, event("in the app"), event("in the site", project=SITE))
        app = next(row for row in (await ada.live("projects")).values() if row["name"] == "app")
        await ada.push("projects", dead(app), assumed=app)
        assert [row["content"] for row in await list_observations(ada)] == ["in the site"]
        await send_events(ada, event("begun again", 9))
        (again,) = await list_observations(ada, "app")
        assert again["projectId"] != app["id"]

    run_for_one(tmp_path, scenario)


@pytest.mark.parametrize(
    "wrong",
    [{"v": 2}, {"id": "a b"}, {"at": "today"}, {"kind": "dance"}, {"content": "x" * 8001}, {"project": {"name": "app"}},
     {"project": {**APP, "name": " "}}, {"redactions": -1}],
    ids=lambda wrong: next(iter(wrong)),
)  # fmt: skip
def test_event_batch_with_one_invalid_event_is_rejected(wrong, tmp_path):
    async def scenario(h: Harness, ada: Person) -> None:
        batch = {"events": [event(), event(**{"content": "make", **wrong})]}
        check_problem(await ada.call("POST", "/v1/observations", json=batch), 400, "BAD_REQUEST")
        assert await list_observations(ada) == []

    run_for_one(tmp_path, scenario)


def test_event_batch_over_quota_is_rejected_as_a_whole(tmp_path):
    async def scenario() -> None:
        async with serve(tmp_path, tiers={**default_tiers(), "FREE": Limits(storage_bytes=2**20)}) as h:
            ada = await h.person("FREE")
            batch = [event("x" * 7000 + str(n), n) for n in range(40)]
            taken = 0
            while True:
                more = [{**one, "id": f"{one['id']}-{taken}", "session": str(taken)} for one in batch]
                answer = await ada.call("POST", "/v1/observations", json={"events": more})
                if answer.status_code != 200:
                    break
                taken += len(more)
            check_problem(answer, 409, "STORAGE_LIMIT")
            assert len(h.services.users.attached_stores()[0].row_index.dependents) and taken >= 80
            count = sum(
                key.startswith("observations/")
                for key in h.services.users.attached_stores()[0].row_index.rows
            )
            assert count == taken

    run(scenario)


def test_future_event_time_is_replaced_by_ingest_time(tmp_path):
    async def scenario(h, ada):
        await send_events(ada, event("early", at="2999-01-01T00:00:00.000Z"))
        (row,) = await list_observations(ada)
        assert row["createdAt"] == row["updatedAt"] <= h.services.clock()

    run_for_one(tmp_path, scenario)
