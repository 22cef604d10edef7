"""Recall finds earlier turns within one scope, by words and by meaning.

Results may lack recent changes, but they are never wrong.
"""

import shutil
from pathlib import Path
from typing import Any

import pytest

from property.rows import dead, entity, episode, memory, project, session, summary
from server.in_process_server import MODELS, Harness, Person, check_problem, serve, stop_index, with_token
from vademecum.engines.lance import Block, Chunk
from vademecum.model.memory.indexable_text import KINDS
from vademecum.model.memory.scope import Everything, InProject, MemoryScope, Pool

WORD = "harpsichord"
# Maps each kind of row and each asking session to the ids that a search returns.
SCOPES: dict[str, dict[str, set[str]]] = {
    "episodes": {"loose": {"loose", "other"}, "in1": {"in1", "in1b"}, "in2": {"in2"}},
    "entities": {"loose": set(), "in1": {"n1"}, "in2": {"n2"}},
}
ASKED: dict[str, dict[str, set[str]]] = {
    "episodes": {"p1": {"in1", "in1b"}, "two": {"in2"}, "*": {"loose", "other", "in1", "in1b", "in2"}},
    "entities": {"p1": {"n1"}, "two": {"n2"}, "*": {"n1", "n2"}},
}


async def create_sessions(h: Harness) -> Person:
    """Create sessions in two projects and in the pool, one turn per session with the session's id, and an entity per
    project.
    """
    ada = await h.person()
    assert await ada.push("projects", project("p1", name="One"), project("p2", name="Two")) == []
    homes = {"loose": None, "other": None, "in1": "p1", "in1b": "p1", "in2": "p2"}
    rows = [session(name, **({"projectId": home} if home else {})) for name, home in homes.items()]
    assert await ada.push("sessions", *rows) == []
    turns = [episode(name, name, userMessage=f"Who plays the {WORD}?", aiResponse=name) for name in homes]
    assert await ada.push("episodes", *turns) == []
    assert await ada.push("entities", entity("n1", "p1", name=WORD), entity("n2", "p2", name=WORD)) == []
    return ada


async def look(person: Person, kind: str = "episodes", q: str = WORD, **params: Any) -> dict[str, Any]:
    answer = await person.call("GET", f"/v1/{kind}/search", params={"q": q, **params})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def seen(person: Person, kind: str = "episodes", q: str = WORD, **params: Any) -> set[str]:
    return {result["id"] for result in (await look(person, kind, q, **params))["results"]}


@pytest.mark.parametrize("model", [False, True])
async def test_each_session_sees_only_its_own_scope(tmp_path: Path, model: bool) -> None:
    async with serve(tmp_path, model=model) as h:
        ada = await create_sessions(h)
        await h.drain_jobs(ada)
        for kind, expected in SCOPES.items():
            for session_id, ids in expected.items():
                assert await seen(ada, kind, sessionId=session_id) == ids, (kind, session_id)
        for kind, asked in ASKED.items():
            for said, ids in asked.items():
                assert await seen(ada, kind, project=said) == ids, (kind, said)
                assert await seen(ada, kind, sessionId="loose", project=said) == ids, (kind, said)


async def test_search_results_name_scope_and_current_projects(tmp_path: Path) -> None:
    async with serve(tmp_path) as h:
        ada = await create_sessions(h)
        assert (await look(ada, sessionId="loose"))["scope"] == {"kind": "pool"}
        assert (await look(ada, project="*"))["scope"] == {"kind": "all"}
        found = await look(ada, sessionId="in2")
        assert found["scope"] == {"kind": "project", "projectId": "p2"} and found["complete"]
        (result,) = found["results"]
        assert (result["kind"], result["sessionId"], result["projectId"]) == ("episodes", "in2", "p2")
        assert result["text"] == f"Who plays the {WORD}?\n\nin2"


async def test_turns_of_moved_session_are_recalled_in_its_new_scope(tmp_path: Path) -> None:
    """The session moves into a project, to another project, and back to the pool. No row is indexed again."""
    async with serve(tmp_path) as h:
        ada = await create_sessions(h)
        assert await seen(ada, sessionId="loose") == {"loose", "other"}
        before: dict[str, Any] = session("loose")
        for home, inside, expected in [
            ("p1", "in1", {"in1", "in1b", "loose"}),
            ("p2", "in2", {"in2", "loose"}),
            (None, "other", {"loose", "other"}),
        ]:
            now = session("loose", **({"projectId": home} if home else {}))
            assert await ada.push("sessions", now, assumed=before) == []
            before = now
            assert await seen(ada, sessionId="loose") == expected
            assert await seen(ada, sessionId=inside) == expected
            assert "loose" not in await seen(ada, sessionId="in1") or home == "p1"
            assert await seen(ada, "entities", sessionId="loose") == ({f"n{home[1]}"} if home else set())


@pytest.mark.parametrize(
    ("asker", "mover", "before", "after"),
    [("loose", "other", {}, {"projectId": "p1"}), ("in1", "in1b", {"projectId": "p1"}, {"projectId": "p2"})],
)
async def test_search_omits_turn_whose_session_leaves_scope_during_search(
    tmp_path: Path, asker: str, mover: str, before: dict[str, str], after: dict[str, str]
) -> None:
    async with serve(tmp_path) as h:
        ada = await create_sessions(h)
        seek = h.services.recall.hybrid_search.search_hybrid

        async def moving(*asked: Any) -> Any:
            hits = await seek(*asked)
            assert len(hits[0]) == 2, "the test needs both turns in the results"
            moved = session(mover, **after)
            assert await ada.push("sessions", moved, assumed=session(mover, **before)) == []
            return hits

        h.services.recall.hybrid_search.search_hybrid = moving  # type: ignore[method-assign]
        assert await seen(ada, sessionId=asker) == {asker}


async def test_project_deletion_moves_turns_to_pool_and_deletes_entities(
    tmp_path: Path,
) -> None:
    async with serve(tmp_path) as h:
        ada = await create_sessions(h)
        assert await seen(ada, "entities", project="*") == {"n1", "n2"}
        assert (await ada.call("DELETE", "/v1/projects/p1")).status_code == 200
        assert await seen(ada, sessionId="loose") == {"loose", "other", "in1", "in1b"}
        assert await seen(ada, "entities", project="*") == {"n2"}
        check_problem(
            await ada.call("GET", "/v1/episodes/search", params={"q": WORD, "project": "p1"}),
            404,
            "NOT_FOUND",
        )


async def test_stale_memory_index_does_not_return_deleted_rows(tmp_path: Path) -> None:
    async with serve(tmp_path, search_wait_s=0.05) as h:
        ada = await create_sessions(h)
        await h.drain_jobs(ada)
        stop_index(h.services.recall.indexer)
        assert await ada.push("episodes", dead(episode("other", "other"))) == []
        found = await look(ada, sessionId="loose")
        assert [result["id"] for result in found["results"]] == ["loose"] and not found["complete"]
        assert (await ada.call("DELETE", "/v1/sessions/loose")).status_code == 200
        assert await seen(ada, sessionId="other") == set()


async def test_matches_outside_scope_do_not_displace_search_results(tmp_path: Path) -> None:
    async with serve(tmp_path) as h:
        ada = await create_sessions(h)
        better = [episode(f"x{n}", "in1", userMessage=WORD, aiResponse="") for n in range(150)]
        assert await ada.push("episodes", *better) == []
        others = [memory(f"m{n}", text=WORD) for n in range(150)]
        assert await ada.push("memories", *others) == []
        assert await seen(ada, sessionId="loose", limit=2) == {"loose", "other"}


async def recalled(h: Harness, person: Person, scope: MemoryScope, q: str, *kinds: Any) -> dict[str, str]:
    found = await h.services.recall.search(person.id, scope, q, frozenset(kinds or KINDS), 100)
    return {one.id: one.text for one in found}


async def test_stale_memory_index_does_not_show_edited_text(tmp_path: Path) -> None:
    async with serve(tmp_path, search_wait_s=0.05) as h:
        ada = await h.person()
        rows = memory("m1", text="Ada likes tea"), memory("m2", text="Ada drinks tea at four")
        assert await ada.push("memories", *rows) == []
        await h.drain_jobs(ada)
        assert set(await recalled(h, ada, Pool(), "tea")) == {"m1", "m2"}
        stop_index(h.services.recall.indexer)
        now = memory("m1", text="Ada likes tea no more")
        assert await ada.push("memories", now, assumed=rows[0]) == []
        pinned = {**rows[1], "pinned": True}
        assert await ada.push("memories", pinned, assumed=rows[1]) == []
        assert await recalled(h, ada, Pool(), "tea") == {"m2": "Ada drinks tea at four"}


async def test_index_text_that_differs_from_the_records_is_not_shown(tmp_path: Path) -> None:
    async with serve(tmp_path) as h:
        ada = await h.person()
        assert await ada.push("memories", memory("m1", text="Ada likes tea")) == []
        await h.drain_jobs(ada)
        forged = Block("memories/m1", "memories/m1", 0, [Chunk(0, None, None, "Ada hates tea")])
        await h.services.recall.indexes.write(
            ada.id, lambda index: index.apply([forged], [], [], index.checkpoint)
        )
        assert await recalled(h, ada, Pool(), "tea") == {}


async def test_only_finished_turns_and_current_memories_are_recalled(tmp_path: Path) -> None:
    async with serve(tmp_path) as h:
        ada = await h.person()
        assert await ada.push("sessions", session("s1")) == []
        states = ("queued", "streaming", "done", "stopped", "failed")
        turns = [episode(state, "s1", userMessage=WORD, status=state) for state in states]
        assert await ada.push("episodes", *turns) == []
        rows = memory("old", text=WORD, supersededBy="new"), memory("new", text=WORD, supersedes="old")
        assert await ada.push("memories", *rows) == []
        assert set(await recalled(h, ada, Pool(), WORD)) == {"done", "stopped", "new"}
        again = {**turns[2], "status": "streaming"}
        assert await ada.push("episodes", again, assumed=turns[2]) == []
        assert set(await recalled(h, ada, Pool(), WORD)) == {"stopped", "new"}


async def test_recall_finds_rows_of_each_kind_only_in_their_scope(tmp_path: Path) -> None:
    async with serve(tmp_path) as h:
        ada = await create_sessions(h)
        memories = memory("pool", text=WORD, sessionIds=["in1"]), memory("own", text=WORD, projectId="p1")
        assert await ada.push("memories", *memories) == []
        summaries = (
            summary("talk", content=WORD, sessionId="in1"),
            summary("overview", content=WORD, projectId="p1"),
            summary("moved", content=WORD, sessionId="loose", projectId="p1"),
        )
        assert await ada.push("summaries", *summaries) == []
        expected: list[tuple[MemoryScope, str, set[str]]] = [
            (Pool(), "memories", {"pool"}),
            (InProject("p1"), "memories", {"own"}),
            (InProject("p2"), "memories", set()),
            (Everything(), "memories", {"pool", "own"}),
            (Pool(), "summaries", {"moved"}),
            (InProject("p1"), "summaries", {"talk", "overview"}),
            (Everything(), "summaries", {"talk", "overview", "moved"}),
            (Pool(), "entities", set()),
        ]
        for scope, kind, ids in expected:
            assert set(await recalled(h, ada, scope, WORD, kind)) == ids, (scope, kind)


async def test_recency_ranks_equal_matches_but_does_not_outweigh_relevance(tmp_path: Path) -> None:
    async with serve(tmp_path) as h:
        ada = await h.person()
        assert await ada.push("sessions", *map(session, ("s1", "s2", "s3"))) == []
        question = f"Who plays the {WORD}?"
        turns = (  # one session per turn, so that neighbors do not raise each other's score
            episode("old", "s1", userMessage=question, updatedAt="2020-01-01T00:00:00.000Z"),
            episode("new", "s2", userMessage=question, updatedAt="2098-01-01T00:00:00.000Z"),
            episode("between", "s3", userMessage=question, updatedAt="2022-01-01T00:00:00.000Z"),
            episode("far", "s1", userMessage=f"Who? {'Cats and dogs. ' * 40}", updatedAt="2098-01-01T00:00:00.000Z"),
        )  # fmt: skip
        assert await ada.push("episodes", *turns) == []
        results = (await look(ada, q=f"who plays the {WORD}", sessionId="s1"))["results"]
        assert [result["id"] for result in results][:3] == ["new", "between", "old"]
        assert results[0]["score"] == pytest.approx(1.0) and results[1]["score"] == pytest.approx(0.7)


@pytest.mark.parametrize("model", [False, True])
async def test_search_with_a_date_finds_the_turn_of_that_day(tmp_path: Path, model: bool) -> None:
    clock = "2025-05-08T12:00:00.000Z"
    async with serve(tmp_path, model=MODELS if model else False, clock=lambda: clock) as h:
        ada = await h.person()
        days = ("2025-05-06", "2025-05-07", "2025-06-07", "2024-05-07")
        assert await ada.push("sessions", *map(session, days)) == []
        for day in days:  # turns that differ only in their day
            row = episode(f"e{day}", day, userMessage="Who came?", createdAt=f"{day}T12:00:00.000Z")
            assert await ada.push("episodes", row) == []
        await h.drain_jobs(ada)  # so that the search uses index entries with vectors
        asked = {
            "who came on May 7, 2025?": "e2025-05-07",
            "who came on the 6th of May?": "e2025-05-06",
            "who came in June 2025?": "e2025-06-07",
            "who came in 2024?": "e2024-05-07",
            "who came yesterday?": "e2025-05-07",
            "who came last year?": "e2024-05-07",
        }
        for question, wanted in asked.items():
            results = (await look(ada, q=question, sessionId=days[0]))["results"]
            assert results[0]["id"] == wanted, question
            assert not any("day2" in result["text"] for result in results), (
                "the indexed date terms must not be shown"
            )


async def test_turn_is_found_by_meaning_and_preceding_turn(tmp_path: Path) -> None:
    async with serve(tmp_path, model=MODELS) as h:
        ada = await h.person()
        assert await ada.push("sessions", session("s1")) == []
        said = [
            ("Tell me about the castle of Edinburgh.", "It stands on a rock above the town."),
            ("And when was that?", "In the twelfth century, most likely."),
            ("How do I make a pancake?", "Flour, milk and two eggs."),
        ]
        for number, (asked, answered) in enumerate(said):
            row = episode(f"e{number}", "s1", userMessage=asked, aiResponse=answered)
            assert await ada.push("episodes", row) == []
        await h.drain_jobs(ada)
        results = (await look(ada, q="breakfast recipes", sessionId="s1"))["results"]
        assert results[0]["id"] == "e2" and results[0]["relevance"] > results[1]["relevance"]
        results = (await look(ada, q="fortress in Scotland", sessionId="s1"))["results"]
        assert [result["id"] for result in results] == ["e0", "e1", "e2"]
        assert "castle" not in results[1]["text"], "the text of the preceding turn must not be shown"
        near = await h.services.recall.nearest(ada.id, Pool(), "", "episodes", 1)
        assert near == []


async def test_new_memory_is_found_immediately_after_push_with_its_cosine(tmp_path: Path) -> None:
    async with serve(tmp_path, model=True) as h:
        ada = await h.person()
        assert await ada.push("projects", project("p1")) == []
        rows = (
            memory("tea", text="Ada likes tea"),
            memory("sea", text="Bob sails the sea"),
            memory("elsewhere", text="Ada likes tea", projectId="p1"),
        )
        assert await ada.push("memories", *rows) == []
        (best, second) = await h.services.recall.nearest(ada.id, Pool(), "Ada likes tea", "memories", 5)
        assert best[0] == "tea" and best[1] == pytest.approx(1.0, abs=1e-4)
        assert second[0] == "sea" and second[1] < best[1]


async def test_nearer_memories_outside_scope_do_not_displace_memories_in_scope(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vademecum.services.memory.recall.FUSION_DEPTH", 3)
    async with serve(tmp_path, model=True) as h:
        ada = await h.person()
        assert await ada.push("projects", project("p1")) == []
        rows = [memory(f"far{n}", text="Ada likes tea", projectId="p1") for n in range(6)]
        assert await ada.push("memories", *rows, memory("sea", text="Bob sails the sea")) == []
        near = await h.services.recall.nearest(ada.id, Pool(), "Ada likes tea", "memories", 3)
        assert [row_id for row_id, _ in near] == ["sea"]


async def test_deleted_folder_of_memory_index_is_rebuilt(tmp_path: Path) -> None:
    async with serve(tmp_path, model=True) as h:
        ada = await create_sessions(h)
        await h.drain_jobs(ada)
    (folder,) = tmp_path.glob("users/*/*/recall")
    shutil.rmtree(folder)
    async with serve(tmp_path, model=True) as h:
        ada.client = with_token(h, ada.client.headers["Authorization"].removeprefix("Bearer "))
        assert await seen(ada, sessionId="loose") == {"loose", "other"}
        await h.drain_jobs(ada)
        assert await h.services.recall.indexes.read(ada.id, lambda index: index.without_vectors()) == []
        assert folder.exists() and (await look(ada, sessionId="loose"))["complete"]


async def test_invalid_recall_query_is_rejected(tmp_path: Path) -> None:
    async with serve(tmp_path) as h:
        ada = await create_sessions(h)
        for params in [{"q": " "}, {"q": "x" * 10_001}, {"limit": 0}, {"limit": 101}]:
            asked = {"q": WORD, "sessionId": "loose", **params}
            for kind in ("episodes", "entities"):
                answer = await ada.call("GET", f"/v1/{kind}/search", params=asked)
                check_problem(answer, 400, "BAD_REQUEST")
        check_problem(await ada.call("GET", "/v1/episodes/search", params={"q": WORD}), 400, "BAD_REQUEST")
        assert len((await look(ada, project="*", limit=2))["results"]) == 2
