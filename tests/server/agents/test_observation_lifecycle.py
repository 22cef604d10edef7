"""Retention, merge, export and deletion of observations and projects, and the briefing."""

from __future__ import annotations

import io
import json
import zipfile

import msgspec

from property import rows
from property.rows import entity, episode, memory, relationship, session, summary
from server.agents.agent_events import (
    APP,
    SITE,
    event,
    identify,
    list_observations,
    run_retention,
    send_events,
)
from server.in_process_server import MODELS, check_problem, run_for_one
from vademecum.model.agents.observations import days_before
from vademecum.model.sync.quotas import Limits
from vademecum.services.data.erase import scan


def ago(h, days):
    return days_before(h.services.clock(), days)


def test_expired_observations_are_erased_unless_pinned(tmp_path):
    async def scenario(h, ada):
        old = {"at": ago(h, 61)}
        await send_events(ada, event("an aubergine read", **old, kind="read"), event("pinned read", **old, kind="read"),
                   event("young read", at=ago(h, 59), kind="read"), event("ran", **old), event("why", **old, kind="decision"),
                   event("looked for", at=ago(h, 31), kind="search"))  # fmt: skip
        pinned = next(row for row in await list_observations(ada) if row["content"] == "pinned read")
        await ada.call("PATCH", f"/v1/observations/{pinned['id']}?project=app", json={"pinned": True})
        await run_retention(h, ada)
        assert {row["content"] for row in await list_observations(ada)} == {
            "pinned read",
            "young read",
            "ran",
            "why",
        }
        await h.drain_jobs(ada)
        assert scan(tmp_path / "data" / "users", [b"aubergine"]) == 0
        assert h.services.background_jobs.jobs["retain"].is_pending(ada.id), (
            "the retention job must be scheduled for the next day"
        )

    run_for_one(tmp_path / "data", scenario)


def test_configured_retention_counts_from_last_occurrence_of_observation(tmp_path):
    async def scenario(h, ada):
        file = {"kind": "read", "path": "a.py"}
        await send_events(
            ada,
            event("old", at=ago(h, 9), **file),
            event("again", at=ago(h, 1), **file),
            event("ran", at=ago(h, 400)),
        )
        await run_retention(h, ada)
        assert [row["content"] for row in await list_observations(ada)] == ["again"]

    run_for_one(tmp_path / "data", scenario, observation_retention_days={"read": 2, "command": 399})


def test_project_merge_moves_observations_and_folder_claims(tmp_path):
    async def scenario(h, ada):
        shared = {"kind": "edit", "path": "a.py"}
        await send_events(ada, event("of both, newer", 9, **shared), event("of the app", 1))
        await send_events(
            ada, event("of both, older", 3, project=SITE, **shared), event("of the site", 2, project=SITE)
        )
        app, site = [(await identify(ada, **who))["project"]["id"] for who in (APP, SITE)]
        await ada.push("sessions", session("s1", projectId=app))
        await ada.push("episodes", episode("e1", "s1"))
        await ada.push("memories", memory("m1", projectId=app))
        await ada.push("summaries", summary("x1", projectId=app))
        kept = [{"projectId": app, "name": name, "type": "person", "notes": "app"} for name in ("Ada", "Bea")]
        entity_ids = [(await ada.call("POST", "/v1/entities", json=new)).json()["id"] for new in kept]
        edge = {"fromId": entity_ids[0], "toId": entity_ids[1], "label": "knows"}
        await ada.call("POST", "/v1/relationships", params={"project": app}, json=edge)
        await ada.call("POST", "/v1/entities", json={**kept[0], "projectId": site, "notes": "site"})
        answer = await ada.call("POST", f"/v1/projects/{app}/merge", json={"into": site})
        assert answer.json() == {"scope": {"project": {"id": site, "name": "site"}}, "moved": 8}

        assert set(await ada.live("projects")) == {site}
        rows = {row["content"]: row for row in await list_observations(ada, "site")}
        assert {text: row["count"] for text, row in rows.items()} == {
            "of both, newer": 2,
            "of the app": 1,
            "of the site": 1,
        }
        for name in ("sessions", "memories", "summaries"):
            assert [row["projectId"] for row in (await ada.live(name)).values()] == [site], name
        entities = (await ada.live("entities")).values()
        assert {(row["name"], row["notes"], row["projectId"]) for row in entities} == {
            ("Ada", "site\napp", site),
            ("Bea", "app", site),
        }
        (edge,) = (await ada.live("relationships")).values()
        assert {edge["fromId"], edge["toId"]} == {row["id"] for row in entities}
        assert (await identify(ada))["project"]["id"] == site and (await identify(ada))["notice"] is None
        await send_events(ada, event("of both, newest", 20, **shared))
        assert {row["content"]: row["count"] for row in await list_observations(ada)}["of both, newest"] == 3

    run_for_one(tmp_path / "data", scenario)


def test_invalid_project_merge_changes_no_rows(tmp_path):
    async def scenario(h, ada):
        await send_events(ada, event("here"))
        app = (await identify(ada))["project"]["id"]
        path = f"/v1/projects/{app}/merge"
        check_problem(await ada.call("POST", path, json={"into": app}), 400, "BAD_REQUEST")
        check_problem(await ada.call("POST", path, json={"into": "nowhere"}), 404, "NOT_FOUND")
        check_problem(
            await ada.call("POST", "/v1/projects/nowhere/merge", json={"into": app}), 404, "NOT_FOUND"
        )
        assert [row["content"] for row in await list_observations(ada, "app")] == ["here"]

    run_for_one(tmp_path / "data", scenario)


def test_project_merge_in_full_account_is_charged_for_the_final_size(tmp_path):
    async def scenario(h, ada):
        await send_events(ada, event("here"), event("there", project=SITE))
        app, site = [(await identify(ada, **who))["project"]["id"] for who in (APP, SITE)]
        new = {"name": "Ada", "type": "person", "notes": "n" * 300, "projectId": app}
        assert (await ada.call("POST", "/v1/entities", json=new)).status_code == 201
        room = 10_000 - (await ada.call("GET", "/v1/me")).json()["usage"]["bytes"]
        empty = len(msgspec.json.encode(memory("full", text="")))
        await ada.push("memories", memory("full", text="x" * (room - empty)))
        assert (await ada.call("GET", "/v1/me")).json()["usage"]["bytes"] == 10_000
        answer = await ada.call("POST", f"/v1/projects/{app}/merge", json={"into": site})
        assert answer.json()["moved"] == 3
        assert [row["projectId"] for row in (await ada.live("entities")).values()] == [site]

    run_for_one(tmp_path / "data", scenario, tiers={"JIGGA": Limits(storage_bytes=10_000)})


def test_project_merge_over_quota_changes_no_rows(tmp_path):
    async def scenario(h, ada):
        await ada.push("projects", rows.project("p"), rows.project("q" * 100))
        for number in range(10):
            await ada.push("memories", memory(f"m{number}", projectId="p"))
        room = 5000 - (await ada.call("GET", "/v1/me")).json()["usage"]["bytes"]
        await ada.push("memories", memory("full", text="x" * (room - 200)))
        before = await ada.pull("memories")
        answer = await ada.call("POST", "/v1/projects/p/merge", json={"into": "q" * 100})
        check_problem(answer, 409, "STORAGE_LIMIT")
        assert await ada.pull("memories") == before
        assert set(await ada.live("projects")) == {"p", "q" * 100}

    run_for_one(tmp_path / "data", scenario, tiers={"JIGGA": Limits(storage_bytes=5000)})


def test_project_export_contains_only_that_project(tmp_path):
    async def scenario(h, ada):
        await send_events(ada, event("of the app"), event("of the site", project=SITE))
        app, site = [(await identify(ada, **who))["project"]["id"] for who in (APP, SITE)]
        for at, project in (("a", app), ("b", site)):
            await ada.push("sessions", session(f"s{at}", projectId=project))
            await ada.push("episodes", episode(f"e{at}", f"s{at}"))
            await ada.push("memories", memory(f"m{at}", projectId=project, sessionIds=["sa", "sb"]))
            await ada.push("entities", entity(f"n{at}", project), entity(f"o{at}", project))
            await ada.push("relationships", relationship(f"r{at}", f"n{at}", f"o{at}"))
        await ada.push("memories", memory("pool", sessionIds=["sa"]))
        answer = await ada.call("GET", f"/v1/projects/{app}/export")
        with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
            files = {
                n: archive.read(n).decode().splitlines() for n in archive.namelist() if n.endswith(".jsonl")
            }
        ids = {
            name.removesuffix(".jsonl"): [json.loads(line)["id"] for line in lines]
            for name, lines in files.items()
        }
        assert ids.pop("projects") == [app] and len(ids.pop("roots")) == 1
        assert [json.loads(line)["content"] for line in files["observations.jsonl"]] == ["of the app"]
        del ids["observations"]
        assert {name: rows for name, rows in ids.items() if rows} == {
            "sessions": ["sa"], "episodes": ["ea"], "memories": ["ma"], "entities": ["na", "oa"], "relationships": ["ra"]}  # fmt: skip
        check_problem(await ada.call("GET", "/v1/projects/nowhere/export"), 404, "NOT_FOUND")

    run_for_one(tmp_path / "data", scenario)


def test_immediate_project_deletion_erases_before_it_responds(tmp_path):
    async def scenario(h, ada):
        await send_events(
            ada, event("the aubergine is boiled", path="aubergine/a.md"), event("make all the checks of it")
        )
        await send_events(ada, event("make all the checks of it", project=SITE))
        app = (await identify(ada))["project"]["id"]
        await ada.push("memories", memory("m1", text="Ada likes aubergine a lot", projectId=app))
        receipt = (await ada.call("DELETE", f"/v1/projects/{app}?forget=now")).json()
        assert scan(tmp_path / "data" / "users", [b"aubergine"]) == 0
        assert (
            (receipt["rows"], receipt["leftovers"]) == (5, 0)
            and receipt["checked"] >= 2
            and receipt["bytes"] > 0
        )
        assert [row["content"] for row in await list_observations(ada)] == ["make all the checks of it"]
        check_problem(await ada.call("DELETE", f"/v1/projects/{app}?forget=now"), 404, "NOT_FOUND")

    run_for_one(tmp_path / "data", scenario, erase_delay_s=3600)


async def read_briefing(person, project="app", **more):
    answer = await person.call("GET", "/v1/agents/context", params={"project": project, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_briefing_contains_all_sections_and_only_its_own_project(tmp_path):
    async def scenario(h, ada):
        await send_events(
            ada,
            event("ran the tests", 5),
            event("use tabs", 1, kind="decision"),
            event("key insight", 2),
            event("secret plan", project=SITE),
        )
        app = (await identify(ada))["project"]["id"]
        await ada.push(
            "memories",
            memory("m1", text="prefers short names", projectId=app),
            memory("m2", text="of the pool"),
        )
        await ada.push("memories", memory("m3", text="superseded", projectId=app, supersededBy="m1"))
        pin = next(row for row in await list_observations(ada) if row["content"] == "key insight")
        await ada.call("PATCH", f"/v1/observations/{pin['id']}?project=app", json={"pinned": True})
        briefing = await read_briefing(ada)
        order = [
            briefing["text"].index(text)
            for text in ("key insight", "use tabs", "prefers short names", "ran the tests")
        ]
        assert order == sorted(order) and briefing["scope"] == {"project": {"id": app, "name": "app"}}
        assert not any(text in briefing["text"] for text in ("secret plan", "of the pool", "superseded"))
        assert "secret plan" in (await read_briefing(ada, "*"))["text"] and briefing["notice"] is None
        assert (await read_briefing(ada, "site"))["text"].count("\n- ") == 1

    run_for_one(tmp_path / "data", scenario)


def test_briefing_fits_budget_counted_with_the_model_tokenizer(tmp_path):
    async def scenario(h, ada):
        await send_events(ada, *(event(f"步骤 {n}: переписать модуль", n) for n in range(200)))
        for budget in (60, 200, 1000):
            briefing = await read_briefing(ada, tokens=budget)
            (counted,) = await h.services.inference.count_tokens([briefing["text"]])
            assert briefing["tokens"] == counted <= budget
        assert counted > 500
        for wrong in (0, 100_001):
            answer = await ada.call("GET", "/v1/agents/context", params={"project": "app", "tokens": wrong})
            check_problem(answer, 400, "BAD_REQUEST")

    run_for_one(tmp_path / "data", scenario, model=MODELS)
