"""Memories: repeats, secrets, recency, history, and invisibility in other scopes."""

import asyncio
from datetime import datetime, timedelta

import pytest

from property.rows import NEW, OLD, memory, project, session
from server.in_process_server import MODELS, check_problem, run, serve

TEA = "Ada likes green tea."
POOL, P1, ALL = {"kind": "pool"}, {"kind": "project", "projectId": "p1"}, {"kind": "all"}


async def furnished(h):
    ada = await h.person()
    assert await ada.push("projects", project("p1"), project("p2")) == []
    rows = (
        session("loose"),
        session("loose2"),
        session("inside", projectId="p1"),
        session("other", projectId="p2"),
    )
    assert await ada.push("sessions", *rows) == []
    return ada


def living(scenario):
    """Decorate a test that receives a person on a server without an embedding model."""

    def test(tmp_path):
        async def whole():
            async with serve(tmp_path) as h:
                await scenario(await furnished(h))

        run(whole)

    test.__name__, test.__doc__ = scenario.__name__, scenario.__doc__
    return test


async def remember(person, text, session_id="loose", status=201, **more):
    answer = await person.call("POST", "/v1/memories", json={"text": text, "sessionId": session_id, **more})
    assert answer.status_code == status, answer.text
    return answer.json()


async def found(person, query, **scope):
    answer = await person.call("POST", "/v1/memories/search", json={"query": query, **scope})
    assert answer.status_code == 200, answer.text
    return answer.json()["scope"], [hit["memory"]["id"] for hit in answer.json()["results"]]


def ago(days):
    then = datetime.fromisoformat("2026-01-01T00:00:00+00:00") - timedelta(days=days)
    return then.strftime("%Y-%m-%dT%H:%M:%S.000Z")


@living
async def test_exactly_repeated_memory_is_refreshed_and_gets_the_session(ada):
    assert await ada.push("memories", memory("m1", text="ADA  likes green tea", sessionIds=["loose"])) == []
    result = await remember(ada, TEA, "loose2", 200, pinned=True)
    row = result["memory"]
    assert (result["deduplicated"], result["supersedes"], result["scope"]) == (True, None, POOL)
    assert (row["id"], row["createdAt"], row["text"]) == ("m1", OLD, "ADA  likes green tea")
    assert row["updatedAt"] > OLD and row["sessionIds"] == ["loose", "loose2"] and row["pinned"]
    assert await ada.live("memories") == {"m1": row}


@living
async def test_new_memory_is_a_synced_row(ada):
    result = await remember(ada, TEA, "inside")
    assert (result["deduplicated"], result["redacted"], result["scope"]) == (False, False, P1)
    row = result["memory"]
    assert await ada.live("memories") == {row["id"]: row}
    assert (row["projectId"], row["source"], row["sessionIds"]) == ("p1", "user", ["inside"])


@living
async def test_text_repeated_in_another_scope_is_a_new_memory(ada):
    ids = {(await remember(ada, TEA, where))["memory"]["id"] for where in ("loose", "inside", "other")}
    by_name = await remember(ada, TEA, None, 200, project="p2")
    assert len(ids) == 3 and by_name["memory"]["id"] in ids and len(await ada.live("memories")) == 3


@living
async def test_repeated_text_of_superseded_memory_is_a_new_memory(ada):
    old, new = (
        memory("old", text=TEA, supersededBy="new"),
        memory("new", text="Ada prefers mate.", supersedes="old"),
    )
    assert await ada.push("memories", old, new) == []
    result = await remember(ada, TEA)
    assert not result["deduplicated"] and result["memory"]["id"] not in ("old", "new")


@living
async def test_concurrently_repeated_text_becomes_one_memory(ada):
    responses = await asyncio.gather(
        *(ada.call("POST", "/v1/memories", json={"text": TEA, "project": "p1"}) for _ in range(8))
    )
    assert (
        len({answer.json()["memory"]["id"] for answer in responses}) == 1 == len(await ada.live("memories"))
    )


@living
async def test_secret_in_memory_is_redacted_and_reported(ada):
    result = await remember(ada, "The password of the router is hunter2, says Ada.")
    assert (
        result["redacted"]
        and result["memory"]["text"] == "The password of the router is [redacted], says Ada."
    )
    assert "hunter2" not in str(await ada.pull("memories"))


@living
async def test_empty_or_secret_only_memory_text_is_rejected(ada):
    for text in (" ", "password: hunter2", "AKIA" + "Q7" * 8):
        check_problem(
            await ada.call("POST", "/v1/memories", json={"text": text, "sessionId": "loose"}),
            400,
            "BAD_REQUEST",
        )
    assert await ada.pull("memories") == []


@living
async def test_memory_with_missing_or_unknown_scope_is_rejected(ada):
    for scope, status in (
        ({}, 400),
        ({"project": None}, 400),
        ({"sessionId": "nope"}, 404),
        ({"project": "nope"}, 404),
        ({"sessionId": "nope", "project": "p1"}, 404),
    ):
        answer = await ada.call("POST", "/v1/memories", json={"text": TEA, **scope})
        assert answer.status_code == status, scope
    assert await ada.pull("memories") == []


@living
async def test_memory_search_covers_and_names_its_scope(ada):
    ids = {where: (await remember(ada, TEA, where))["memory"]["id"] for where in ("loose", "inside", "other")}
    for query in ("tea", ""):
        assert await found(ada, query, sessionId="loose2") == (POOL, [ids["loose"]])
        assert await found(ada, query, sessionId="inside") == (P1, [ids["inside"]])
        assert await found(ada, query, sessionId="other", project="p1") == (P1, [ids["inside"]])
        scope, everywhere = await found(ada, query, project=None)
        assert scope == ALL and set(everywhere) == set(ids.values())
    assert await found(ada, "coffee", project=None) == (ALL, [])
    check_problem(await ada.call("POST", "/v1/memories/search", json={"query": "tea"}), 400, "BAD_REQUEST")


@living
async def test_pinned_memories_do_not_lose_rank_with_age(ada):
    rows = (
        memory("old", text=TEA, updatedAt=ago(900)),
        memory("new", text=TEA, updatedAt=ago(1), createdAt=ago(990)),
        memory("pinned", text=TEA, updatedAt=ago(990), pinned=True),
        memory("fits", text="Tea, tea and green tea", updatedAt=ago(999)),
    )
    assert await ada.push("memories", *rows) == []
    assert (await found(ada, "", sessionId="loose"))[1][:3] == ["pinned", "new", "old"]
    assert (await found(ada, "green tea", sessionId="loose", limit=1))[1] == ["fits"]


@living
async def test_memory_with_future_timestamp_is_found(ada):
    assert await ada.push("memories", memory("ahead", text=TEA, updatedAt=NEW)) == []
    assert len((await found(ada, "tea", sessionId="loose"))[1]) == 1


async def chain(ada, **more):
    """Create three memories, of which "c" superseded "b", and "b" superseded "a"."""
    rows = (
        memory("a", text="Ada likes tea", supersededBy="b", **more),
        memory("b", text="Ada likes green tea", supersedes="a", supersededBy="c", **more),
        memory("c", text="Ada likes green tea a lot", supersedes="b", **more),
    )
    assert await ada.push("memories", *rows) == []


async def call(person, method, path, status=200, **params):
    answer = await person.call(method, f"/v1/memories/{path}", params=params or {"sessionId": "loose"})
    assert answer.status_code == status, answer.text
    return answer.json()


@living
async def test_superseded_memories_appear_only_in_history(ada):
    await chain(ada, sessionIds=["loose"])
    assert await found(ada, "tea", sessionId="loose") == (POOL, ["c"])
    listed = (await ada.call("GET", "/v1/sessions/loose/memories")).json()
    assert (listed["scope"], [row["id"] for row in listed["memories"]]) == (POOL, ["c"])
    for asked in "abc":
        history = await call(ada, "GET", f"{asked}/history")
        assert [row["id"] for row in history["memories"]] == ["c", "b", "a"] and history["scope"] == POOL


@living
async def test_memory_history_ends_at_cycles_and_scope_boundaries(ada):
    rows = memory("x", supersedes="y"), memory("y", supersedes="x"), memory("z", supersedes="far")
    assert await ada.push("memories", *rows, memory("far", projectId="p1")) == []
    assert [row["id"] for row in (await call(ada, "GET", "x/history"))["memories"]] == ["x", "y"]
    assert [row["id"] for row in (await call(ada, "GET", "z/history"))["memories"]] == ["z"]
    await call(ada, "POST", "z/undo", 409)
    assert (await call(ada, "DELETE", "x"))["deleted"] == 2
    assert (await call(ada, "DELETE", "z"))["deleted"] == 1
    assert set(await ada.live("memories")) == {"far"}, "a delete must not remove memories of another scope"


@living
async def test_undo_makes_superseded_memory_current_and_keeps_both_memories(ada):
    await chain(ada)
    undone = await call(ada, "POST", "c/undo")
    assert undone["restored"]["id"] == "b" and "supersededBy" not in undone["restored"]
    assert undone["memory"]["id"] == "c" and "supersedes" not in undone["memory"]
    assert undone["restored"]["updatedAt"] == undone["memory"]["updatedAt"] == OLD, (
        "an undo must not refresh the memories"
    )
    assert set((await found(ada, "tea", sessionId="loose"))[1]) == {"b", "c"}
    await call(ada, "POST", "c/undo", 409)


@living
async def test_deleting_a_memory_deletes_its_older_versions(ada):
    await chain(ada)
    assert (await call(ada, "DELETE", "b"))["deleted"] == 2
    assert set(await ada.live("memories")) == {"c"}
    await call(ada, "GET", "b", 404)


@living
async def test_concurrently_repeated_text_becomes_one_memory_per_scope(ada):
    places = ["loose", "inside", "other"] * 3
    answers = await asyncio.gather(
        *(ada.call("POST", "/v1/memories", json={"text": TEA, "sessionId": place}) for place in places)
    )
    assert sorted(answer.status_code for answer in answers) == [200] * 6 + [201] * 3
    memories = await ada.live("memories")
    assert sorted(row.get("projectId", "") for row in memories.values()) == ["", "p1", "p2"]


@living
async def test_memory_id_is_not_found_outside_its_scope(ada):
    await chain(ada, projectId="p1")
    for method, path in (("GET", "c"), ("GET", "c/history"), ("POST", "c/undo"), ("DELETE", "c")):
        await call(ada, method, path, 404, sessionId="loose")
        await call(ada, method, path, 404, project="p2")
        check_problem(await ada.call(method, f"/v1/memories/{path}"), 400, "BAD_REQUEST")
    assert (await call(ada, "GET", "c", project="*"))["id"] == "c"
    assert set(await ada.live("memories")) == {"a", "b", "c"}


@living
async def test_memories_of_session_are_listed_only_in_its_current_scope(ada):
    row = (await remember(ada, TEA, "inside"))["memory"]
    assert (await ada.call("GET", "/v1/sessions/inside/memories")).json() == {
        "scope": P1,
        "memories": [row],
        "next": None,
    }
    assert await ada.push("sessions", session("inside"), assumed=session("inside", projectId="p1")) == []
    assert (await ada.call("GET", "/v1/sessions/inside/memories")).json() == {
        "scope": POOL,
        "memories": [],
        "next": None,
    }
    check_problem(await ada.call("GET", "/v1/sessions/nope/memories"), 404, "NOT_FOUND")


@living
async def test_memory_statistics_count_all_and_reset_needs_confirmation(ada):
    await chain(ada, sessionIds=["loose", "inside"])
    assert (
        await ada.push(
            "memories", memory("d", projectId="p1", pinned=True, source="extracted", sessionIds=["inside"])
        )
        == []
    )
    assert (await ada.call("GET", "/v1/memories/stats")).json() == {
        "scope": ALL,
        "total": 4,
        "superseded": 2,
        "pinned": 1,
        "bySource": {"user": 3, "extracted": 1},
        "totalSessions": 2,
    }
    for body in ({}, {"confirm": False}):
        check_problem(await ada.call("POST", "/v1/memories/reset", json=body), 400, "BAD_REQUEST")
    assert len(await ada.live("memories")) == 4
    assert (await ada.call("POST", "/v1/memories/reset", json={"confirm": True})).json() == {"deleted": 4}
    assert await ada.live("memories") == {} and len(await ada.live("sessions")) == 4


@pytest.mark.parametrize("limit", [0, 101])
async def test_invalid_limit_of_memory_search_is_rejected(tmp_path, limit):
    async with serve(tmp_path) as h:
        ada = await furnished(h)
        question = {"query": "tea", "sessionId": "loose", "limit": limit}
        check_problem(await ada.call("POST", "/v1/memories/search", json=question), 400, "BAD_REQUEST")


def knowing(scenario):
    """Decorate a test that receives a server with an embedding model and a person."""

    def test(tmp_path):
        async def whole():
            async with serve(tmp_path, model=MODELS) as h:
                await scenario(h, await furnished(h))

        run(whole)

    test.__name__, test.__doc__ = scenario.__name__, scenario.__doc__
    return test


SAM = "Sam expresses gratitude to Evan for his support and encouragement."
SAM_AGAIN = "Sam has expressed his gratitude to Evan for his support and encouragement."


@knowing
async def test_paraphrase_supersedes_memory_and_can_be_undone(h, ada):
    old = (await remember(ada, SAM, pinned=True))["memory"]
    await h.drain_jobs(ada)
    result = await remember(ada, SAM_AGAIN, "loose2")
    new = result["memory"]
    assert (result["deduplicated"], result["supersedes"], new["supersedes"]) == (True, old["id"], old["id"])
    assert (await ada.live("memories"))[old["id"]]["updatedAt"] == old["updatedAt"]
    assert new["pinned"], "the new wording must stay pinned"
    stored = await ada.live("memories")
    assert stored[old["id"]]["supersededBy"] == new["id"] and stored[old["id"]]["text"] == SAM
    await h.drain_jobs(ada)
    assert await found(ada, "gratitude for encouragement", sessionId="loose") == (POOL, [new["id"]])
    await call(ada, "POST", f"{new['id']}/undo")
    await h.drain_jobs(ada)
    assert set((await found(ada, "gratitude for encouragement", sessionId="loose"))[1]) == {
        old["id"],
        new["id"],
    }


@knowing
async def test_merely_similar_or_out_of_scope_memories_coexist(h, ada):
    for text, where in (
        (SAM, "inside"),
        (SAM, "loose"),
        (SAM_AGAIN, "other"),
        (SAM.replace("expresses", "never expresses"), "loose"),
        (SAM.replace("Sam", "Tim"), "loose"),
        (SAM.replace("encouragement", "2 letters"), "loose"),
    ):
        result = await remember(ada, text, where)
        await h.drain_jobs(ada)
        assert not result["deduplicated"] and result["supersedes"] is None, text
    assert len(await ada.live("memories")) == 6


@knowing
async def test_repeated_paraphrase_supersedes_only_the_current_memory(h, ada):
    first = (await remember(ada, SAM))["memory"]
    await h.drain_jobs(ada)
    second = (await remember(ada, SAM_AGAIN))["memory"]
    await h.drain_jobs(ada)
    third = await remember(ada, SAM)
    assert third["supersedes"] == second["id"] and third["memory"]["id"] != first["id"]
    history = await call(ada, "GET", f"{first['id']}/history")
    assert [row["id"] for row in history["memories"]] == [third["memory"]["id"], second["id"], first["id"]]
