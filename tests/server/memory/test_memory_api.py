"""The memory API writes rows of the synced collections, under the same rules as a push of a device."""

import asyncio

import pytest

from property.rows import entity, episode, project, relationship, session, summary
from server.in_process_server import Harness, check_problem, run_for_one, serve
from server.listening_server import listen, run_over_network
from server.memory.memory_rows import EDGE, EXTERNAL, MILL, SCOPE, TURN, create_rows, get, ids, post
from server.sync.test_quotas import small
from vademecum.app import create_app
from vademecum.model.schema.derived_ids import entity_id
from vademecum.settings import Settings


def test_writes_by_memory_api_reach_pulls_and_streams(tmp_path):
    async def scenario(h, url, ada):
        async with listen(url, ada, "/v1/sync/stream") as stream:
            p = await post(ada, "projects", name="Mill")
            s = await post(ada, "sessions", externalId="a", title="t", projectId=p["id"])
            of_project = {"projectId": p["id"], "type": "place"}
            n1, n2 = [await post(ada, "entities", name=name, **of_project) for name in ("Mill", "Pond")]
            rows = {
                "projects": [p],
                "sessions": [s],
                "episodes": [await post(ada, "episodes", **{**TURN, "sessionId": s["id"]})],
                "entities": [n1, n2],
                "relationships": [
                    await post(ada, "relationships?project=*", fromId=n1["id"], toId=n2["id"], label="at")
                ],
                "summaries": [await post(ada, "summaries", content="c", sessionId=s["id"])],
            }
            for name, expected in rows.items():
                assert await ada.pull(name) == expected
            await stream.wait_until(lambda: stream.rows("summaries"))
            assert {name: stream.rows(name) for name in rows} == rows
            for name in ("episodes", "summaries"):
                row = rows[name][0]
                assert (await ada.call("DELETE", f"/v1/{name}/{row['id']}?project=*")).status_code == 200
                await stream.wait_until(lambda name=name: len(stream.rows(name)) == 2)
                assert stream.rows(name)[1]["_deleted"] is True and await ada.live(name) == {}

    run_over_network(tmp_path, scenario)


async def test_memory_api_lists_pushed_rows_unchanged(tmp_path):
    async with serve(tmp_path) as h:
        ada = await h.person()
        await create_rows(ada)
        edge, overview = relationship("r1", "n1", "n2"), summary("u2", projectId="p1")
        assert await ada.push("relationships", edge) == [] and await ada.push("summaries", overview) == []
        lists = {
            "projects": ("projects", [project("p2"), project("p1")]),
            "sessions": ("sessions", [session("s2", projectId="p1"), session("s1", externalId="chat")]),
            "projects/p1/sessions": ("sessions", [session("s2", projectId="p1")]),
            "sessions/s1/episodes": ("episodes", [episode("e1", "s1")]),
            "sessions/s1/summaries": ("summaries", [summary("u1", sessionId="s1")]),
            "projects/p1/summaries": ("summaries", [overview]),
            "entities/by-type/person": ("entities", [entity("n2", "p1"), entity("n1", "p1")]),
            "entities/n1/relationships": ("relationships", [edge]),
            "entities/n2/relationships": ("relationships", []),
        }
        for path, (name, expected) in lists.items():
            assert (await get(ada, path, project="p1"))[name] == expected, path
        assert await get(ada, "projects/p1/overview") == overview
        assert await get(ada, "sessions/by-external/chat") == session("s1", externalId="chat")
        # The API finds and deletes a relationship whose id was chosen by a device.
        assert (await post(ada, "relationships?project=p1", **EDGE))["id"] == "r1"
        assert (await ada.call("DELETE", "/v1/relationships", json=EDGE, **SCOPE)).status_code == 200
        assert await ada.live("relationships") == {}


async def test_waiting_row_is_not_listed_by_the_memory_api(tmp_path):
    async with serve(tmp_path) as h:
        ada = await h.person()
        assert await ada.push("episodes", episode("early", "later")) == []
        assert (await ada.call("DELETE", "/v1/episodes/early", params={"project": "*"})).status_code == 404
        assert (await get(ada, "episodes", project="*"))["episodes"] == []
        assert await ada.push("sessions", session("later")) == []
        assert ids((await get(ada, "sessions/later/episodes"))["episodes"]) == ["early"]


async def test_entity_of_an_unknown_project_is_rejected(tmp_path):
    async with serve(tmp_path) as h:
        ada = await h.person()
        row_id = entity_id("later", "place", "Mill")
        assert await ada.push("entities", entity(row_id, "later", name="Mill", type="place")) == []
        body = {**MILL, "projectId": "later"}
        check_problem(await ada.call("POST", "/v1/entities", json=body), 404, "NOT_FOUND")
        assert await ada.push("projects", project("later")) == []
        assert (await post(ada, "entities", **body))["id"] == row_id


async def test_writes_after_forget_succeed_even_if_clock_was_set_back(tmp_path):
    times = ["2026-01-02T00:00:00.000Z"]
    app = create_app(Settings(data=tmp_path, models=tmp_path / "none"), clock=lambda: times[0])
    async with app.lifespan():
        ada = await Harness(app.state.services, app).person()
        await post(ada, "projects", name="Mill")
        await ada.call("POST", "/v1/forget", json={"confirm": "forget everything"})
        times[0] = "2026-01-01T00:00:00.000Z"
        assert (await post(ada, "projects", name="Mill"))["createdAt"] == "2026-01-02T00:00:00.000Z"


async def test_session_whose_project_is_missing_can_be_renamed(tmp_path):
    """A device pushes its collections in parallel, so a session may arrive before its project."""
    async with serve(tmp_path) as h:
        ada = await h.person()
        assert await ada.push("sessions", session("s1", externalId="chat", projectId="later")) == []
        answer = await ada.call("PATCH", f"{EXTERNAL}/chat", json={"title": "Lease"})
        assert (answer.json()["title"], answer.json()["projectId"]) == ("Lease", "later")


async def test_external_id_identifies_exactly_one_session(tmp_path):
    async with serve(tmp_path) as h:
        ada = await h.person()
        weird = "https://chat.example//room/ä b?c=d#e%2F/"
        row = await post(ada, "sessions", externalId=weird, title="t")
        path = "sessions/by-external/" + "".join(f"%{byte:02X}" for byte in weird.encode())
        assert await get(ada, path) == row
        (answer,) = await ada.push("sessions", session("s1", externalId=weird))
        assert answer["syncError"]["code"] == "DUPLICATE"
        body = {"externalId": "race", "title": "t"}
        answers = await asyncio.gather(*(ada.call("POST", "/v1/sessions", json=body) for _ in range(5)))
        assert sorted(a.status_code for a in answers) == [201, 409, 409, 409, 409]
        check_problem(next(a for a in answers if a.status_code == 409), 409, "DUPLICATE")


async def test_first_turn_of_new_project_session_belongs_to_the_project(tmp_path):
    """One commit creates the session in its project, so the session is never visible in the pool."""
    async with serve(tmp_path) as h:
        ada = await h.person()
        p = await post(ada, "projects", name="Mill")
        s = await post(ada, "sessions", externalId="a", title="t", projectId=p["id"])
        assert [(row["id"], row["projectId"]) for row in await ada.pull("sessions")] == [(s["id"], p["id"])]
        turn = await post(ada, "episodes", **{**TURN, "sessionId": s["id"]})
        assert (turn["status"], turn["citations"]) == ("done", [])
        page = await get(ada, f"sessions/{s['id']}/episodes")
        assert page["scope"] == {"kind": "project", "projectId": p["id"]}
        assert ids((await get(ada, "episodes", project="Mill"))["episodes"]) == [turn["id"]]


async def test_spellings_of_an_entity_share_one_row_and_keep_all_notes(tmp_path):
    async with serve(tmp_path) as h:
        ada = await h.person()
        await create_rows(ada)
        new = {"type": "person", "projectId": "p1"}
        first = await post(ada, "entities", name="Zoë  Miller", notes="the tenant", **new)
        for name, notes in (("ZOE MILLER", None), (" zoë miller ", ""), ("Zoë Miller", "  ")):
            assert await post(ada, "entities", name=name, notes=notes, **new) == first
        changed = await post(ada, "entities", name="zoe miller", notes="the owner", **new)
        assert (changed["id"], changed["name"], changed["notes"]) == (
            first["id"],
            "Zoë  Miller",
            "the owner",
        )
        assert changed["createdAt"] == first["createdAt"]
        for other in ({"type": "place", "projectId": "p1"}, {"type": "person", "projectId": "p2"}):
            assert (await post(ada, "entities", name="Zoë Miller", **other))["id"] != first["id"]
        assert (await ada.call("DELETE", f"/v1/entities/{first['id']}", **SCOPE)).status_code == 200
        again = await post(ada, "entities", name="Zoë Miller", **new)
        assert (again["id"], again.get("notes")) == (first["id"], None)
        assert (await ada.live("entities"))[first["id"]] == again


async def test_repeated_relationship_is_stored_once(tmp_path):
    async with serve(tmp_path) as h:
        ada = await h.person()
        await create_rows(ada)
        answers = [await ada.call("POST", "/v1/relationships", json=EDGE, **SCOPE) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [201, 200, 200]
        assert answers[0].json() == answers[1].json() == answers[2].json()
        pulled = (await ada.call("GET", "/v1/sync/relationships/0/pull")).json()
        assert ids(pulled["documents"]) == [answers[0].json()["id"]]
        async with h.services.users.open(ada.id) as store:
            assert store.seq == pulled["checkpoint"]["lwt"]


async def test_session_deletion_removes_only_its_turns_and_summaries(tmp_path):
    async with serve(tmp_path) as h:
        ada = await h.person()
        await create_rows(ada)
        assert await ada.push("relationships", relationship("r1", "n1", "n2")) == []
        assert (await ada.call("DELETE", f"{EXTERNAL}/chat")).json() == {"deleted": 1}
        assert set(await ada.live("sessions")) == {"s2"}
        assert await ada.live("episodes") == {} and await ada.live("summaries") == {}
        assert set(await ada.live("relationships")) == {"r1"} and len(await ada.live("entities")) == 3


@pytest.mark.parametrize(("choice", "left"), [("keep", {"s1", "s2"}), ("delete", {"s1"})])
async def test_project_deletion_removes_its_memory_and_optionally_its_sessions(tmp_path, choice, left):
    async with serve(tmp_path) as h:
        ada = await h.person()
        await create_rows(ada)
        assert await ada.push("summaries", summary("u2", projectId="p1")) == []
        answer = await ada.call("DELETE", "/v1/projects/p1", params={"sessions": choice})
        assert answer.status_code == 200
        assert ids((await get(ada, "sessions"))["sessions"]) == sorted(left, reverse=True)
        assert set(await ada.live("entities")) == {"n3"} and set(await ada.live("summaries")) == {"u1"}
        assert (await get(ada, "entities/by-type/person", project="*"))["entities"] == [entity("n3", "p2")]


async def test_summary_belongs_to_its_sessions_current_project(tmp_path):
    async with serve(tmp_path) as h:
        ada = await h.person()
        await create_rows(ada)
        named = summary("u2", sessionId="s1", projectId="p2")
        old, new = (
            summary("u3", projectId="p1"),
            summary("u4", projectId="p1", createdAt="2021-01-01T00:00:00.000Z"),
        )
        assert await ada.push("summaries", named, new, old) == []

        async def seen(project_id):
            return ids((await get(ada, f"projects/{project_id}/summaries"))["summaries"])

        assert (await seen("p1"), await seen("p2")) == (["u4", "u3"], [])
        assert (await get(ada, "projects/p1/overview"))["id"] == "u4"
        assert await get(ada, "projects/p2/overview") is None
        await ada.call("PATCH", f"{EXTERNAL}/chat", json={"projectId": "p1"})
        assert (await seen("p1"), await seen("p2")) == (["u4", "u3", "u2", "u1"], [])
        assert (await get(ada, "projects/p1/overview"))["id"] == "u4"
        assert ids((await get(ada, "sessions/s1/summaries"))["summaries"]) == ["u2", "u1"]


async def test_memory_api_rejects_writes_over_quota_and_oversized_rows(tmp_path):
    async with serve(tmp_path, **small(storage_bytes=6000, row_bytes=3000)) as h:
        ada = await h.person()
        s = await post(ada, "sessions", externalId="a", title="t")
        turn = {"sessionId": s["id"], "userMessage": "When?"}
        body = {**turn, "aiResponse": "x" * 4000}
        said = check_problem(await ada.call("POST", "/v1/episodes", json=body), 413, "TOO_LARGE")
        assert "was not stored" in said["detail"] and "device" not in said["detail"]
        for _ in range(2):
            await post(ada, "episodes", **turn, aiResponse="x" * 2000)
        body = {**turn, "aiResponse": "x" * 2000}
        said = check_problem(await ada.call("POST", "/v1/episodes", json=body), 409, "STORAGE_LIMIT")
        assert "was not stored" in said["detail"] and "device" not in said["detail"]
        assert len(await ada.live("episodes")) == 2


async def test_only_edits_that_change_a_value_are_stored(tmp_path):
    async with serve(tmp_path) as h:
        ada = await h.person()
        await create_rows(ada)
        answer = await ada.call(
            "PATCH", "/v1/summaries/u1", json={"content": "anew"}, params={"project": "*"}
        )
        row = answer.json()
        assert row["content"] == "anew" and row["updatedAt"] > row["createdAt"]
        assert (await ada.live("summaries"))["u1"] == row
        async with h.services.users.open(ada.id) as store:
            seq = store.seq
        same = await ada.call("PATCH", "/v1/summaries/u1", json={"content": "anew"}, params={"project": "*"})
        async with h.services.users.open(ada.id) as store:
            assert (same.json(), store.seq) == (row, seq)


def test_turn_is_readable_only_within_its_session_or_a_named_scope(tmp_path):
    async def scenario(h, ada):
        await ada.add("projects", project("p1"), project("p2"))
        await ada.add("sessions", session("s1", projectId="p1"), session("s2"))
        turn = {"sessionId": "s1", "userMessage": "When?", "aiResponse": "In May."}
        made = (await ada.call("POST", "/v1/episodes", json={**turn, "projectId": "p1"})).json()
        assert "projectId" not in made
        path = f"/v1/episodes/{made['id']}"
        assert (await ada.call("GET", path)).json() == made
        for scope, status in (({"project": "p1"}, 200), ({"project": "p2"}, 404), ({"sessionId": "s2"}, 404)):
            assert (await ada.call("GET", path, params=scope)).status_code == status, scope
        check_problem(
            await ada.call("POST", "/v1/episodes", json={**turn, "projectId": "p2"}), 409, "CONFLICT"
        )
        bob = await h.person()
        check_problem(await bob.call("GET", path), 404, "NOT_FOUND")

    run_for_one(tmp_path, scenario)


@pytest.mark.parametrize(
    ("fields", "title"),
    [
        ({"name": "Lease"}, "Lease"),
        ({"name": "x", "title": "Lease"}, "Lease"),
        ({"name": None}, ""),
        ({}, ""),
    ],
)
def test_session_created_with_a_name_has_it_as_title(tmp_path, fields, title):
    async def scenario(_, ada):
        made = (await ada.call("POST", "/v1/sessions", json={"externalId": "chat", **fields})).json()
        assert made["title"] == title and "name" not in made

    run_for_one(tmp_path, scenario)
