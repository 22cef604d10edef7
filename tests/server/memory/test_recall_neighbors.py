"""A matching neighbor raises the score of a turn, unless the neighbor is deleted or out of scope."""

from pathlib import Path
from typing import Any

import pytest

from property.rows import dead, episode, memory, session
from server.in_process_server import Harness, Person, serve, stop_index
from server.memory.test_recall import WORD, look
from vademecum.model.memory.indexable_text import KINDS
from vademecum.model.memory.scope import Pool


async def three_that_fit(h: Harness) -> tuple[Person, dict[str, Any]]:
    """Create two adjacent matching turns, and one matching turn without neighbors in another session."""
    ada = await h.person()
    assert await ada.push("sessions", session("s1"), session("s2")) == []
    said = {"userMessage": f"The {WORD}.", "aiResponse": ""}
    alone, first, second = (
        episode("alone", "s2", **said),
        episode("first", "s1", **said),
        episode("second", "s1", **said),
    )
    assert await ada.push("episodes", alone, first, second) == []
    return ada, second


async def fits(person: Person) -> dict[str, float]:
    return {one["id"]: one["relevance"] for one in (await look(person, sessionId="s1"))["results"]}


async def test_adjacent_matching_turns_raise_each_others_relevance(tmp_path: Path) -> None:
    async with serve(tmp_path) as h:
        ada, _ = await three_that_fit(h)
        found = await fits(ada)
        assert found["first"] == found["second"] == pytest.approx(1.5 * found["alone"], rel=1e-3)


@pytest.mark.parametrize("gone", ["deleted", "edited"])
async def test_deleted_or_edited_neighbor_adds_no_relevance(tmp_path: Path, gone: str) -> None:
    async with serve(tmp_path, search_wait_s=0.05) as h:
        ada, second = await three_that_fit(h)
        await h.drain_jobs(ada)
        stop_index(h.services.recall.indexer)
        now = dead(second) if gone == "deleted" else {**second, "userMessage": "Cats and dogs."}
        assert await ada.push("episodes", now, assumed=second) == []
        found = await fits(ada)
        assert found.keys() == {"alone", "first"} and found["first"] == found["alone"]


async def test_neighbor_score_does_not_rank_turns_above_memories(tmp_path: Path) -> None:
    async with serve(tmp_path) as h:
        ada, _ = await three_that_fit(h)
        assert await ada.push("memories", memory("m1", text=f"The {WORD}.")) == []
        found = await h.services.recall.search(ada.id, Pool(), WORD, frozenset(KINDS), 10)
        fit = {one.id: one.relevance for one in found}
        assert fit["m1"] == fit["first"] == fit["second"] > fit["alone"]
