"""The memory index is derived: the server rebuilds it from the records if it is stale, damaged or of another model."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from property.rows import dead, episode, memory, session
from server.in_process_server import Harness, Person, reconnect, serve, stop_index
from server.memory.test_recall import WORD, create_sessions, look, recalled, seen
from server.models.model_change_server import opened, use
from vademecum.engines.duckdb.user_store import DuckDBUserStore
from vademecum.engines.lance import Block, VectorIndex
from vademecum.engines.onnx.embedder import Embedder
from vademecum.errors import Busy
from vademecum.model.memory.scope import Pool
from vademecum.services.memory import memory_index
from wait_until import soon


async def lacking(h: Harness, person: Person) -> list[str]:
    return await h.services.recall.indexes.read(person.id, VectorIndex.without_vectors)


async def cosines(h: Harness, person: Person, text: str, kind: Any = "episodes") -> dict[str, float]:
    return dict(await h.services.recall.nearest(person.id, Pool(), text, kind, 100))


async def talked(h: Harness, count: int, start: int = 0) -> Person:
    ada = await h.person()
    assert await ada.push("sessions", session("s1")) == []
    turns = [episode(f"e{n}", "s1", userMessage=f"{WORD} number {n}") for n in range(start, start + count)]
    assert await ada.push("episodes", *turns) == []
    return ada


def block_embedding(monkeypatch: pytest.MonkeyPatch, after: int) -> asyncio.Event:
    """Let the model embed `after` texts, and block the embedding of further texts until the returned event is set."""
    passages, taken, may_continue = Embedder.embed_passages, [0], asyncio.Event()

    async def gated(embedder: Embedder, texts: list[str]) -> Any:
        taken[0] += len(texts)
        if taken[0] > after:
            await may_continue.wait()
        return await passages(embedder, texts)

    monkeypatch.setattr(Embedder, "embed_passages", gated)
    return may_continue


async def test_memory_search_by_words_works_during_embedding(
    tmp_path: Path, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_continue = block_embedding(monkeypatch, 2)
    async with opened(tmp_path, installed) as h:
        ada = await talked(h, 5)
        found = await look(ada, sessionId="s1")
        assert len(found["results"]) == 5 and not found["complete"]
        may_continue.set()
        await h.drain_jobs(ada)
        assert await lacking(h, ada) == [] and (await look(ada, sessionId="s1"))["complete"]


async def test_server_restart_repeats_at_most_one_embedding_batch(
    tmp_path: Path, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_index, "ROWS_PER_TURN", 2)
    with monkeypatch.context() as patched:
        block_embedding(patched, 5)
        async with opened(tmp_path, installed) as h:
            ada = await talked(h, 9)
            async with asyncio.timeout(60):
                while len(await lacking(h, ada)) != 5:
                    await asyncio.sleep(0.02)
    made: list[str] = []
    passages = Embedder.embed_passages

    async def counted(embedder: Embedder, texts: list[str]) -> Any:
        made.extend(texts)
        return await passages(embedder, texts)

    monkeypatch.setattr(Embedder, "embed_passages", counted)
    async with opened(tmp_path, installed) as h:
        ada = reconnect(h, ada)
        await h.drain_jobs(ada)
        assert await lacking(h, ada) == [] and len(made) == 5


async def test_model_change_rebuilds_memory_index_while_word_search_works(
    tmp_path: Path, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path, installed) as h:
        ada = await talked(h, 5)
        await h.drain_jobs(ada)
        old = await cosines(h, ada, f"{WORD} number 3")
        may_continue = block_embedding(monkeypatch, 0)
        await use(h, "new")
        found = await look(ada, sessionId="s1")
        assert len(found["results"]) == 5 and not found["complete"]
        assert len(await lacking(h, ada)) == 5, "vectors of the previous model must be removed"
        may_continue.set()
        await h.drain_jobs(ada)
        new = await cosines(h, ada, f"{WORD} number 3")
        assert old.keys() == new.keys() and old != new
        embedder = await h.services.inference.get()
        assert embedder is not None and embedder.manifest.id == "new"
        model = await h.services.recall.indexes.read(ada.id, lambda index: index.model)
        assert model == embedder.model


async def test_model_change_rebuilds_memory_indexes_without_queries(tmp_path: Path, installed: Path) -> None:
    async with opened(tmp_path, installed) as h:
        ada = await talked(h, 3)
        await h.drain_jobs(ada)
        await use(h, "new")
        embedder = await h.services.inference.get()
        assert embedder is not None
        await soon(lambda: not h.services.background_jobs.jobs["recall"].is_pending(ada.id))
        await h.drain_jobs(ada)
        checkpoint = await h.services.recall.indexes.read(
            ada.id, lambda index: (index.model, index.checkpoint[1])
        )
        assert checkpoint[0] == embedder.model and checkpoint[1] > 0


async def test_damaged_memory_index_is_rebuilt_during_the_query(tmp_path: Path) -> None:
    async with serve(tmp_path) as h:
        ada = await create_sessions(h)
        await h.drain_jobs(ada)
    for data in tmp_path.glob("users/*/*/recall/*.lance/data/*"):
        data.write_bytes(b"damaged")
    async with serve(tmp_path) as h:
        assert await seen(reconnect(h, ada), sessionId="loose") == {"loose", "other"}


@pytest.mark.parametrize("change", [{"_deleted": True}, {"text": "else"}])
async def test_vector_is_discarded_if_its_row_changed_during_embedding(
    tmp_path: Path, installed: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    may_continue = block_embedding(monkeypatch, 0)
    async with opened(tmp_path, installed) as h:
        ada = await h.person()
        row = memory("m1", text=f"{WORD} one")
        assert await ada.push("memories", row) == []
        job = h.services.background_jobs.jobs["recall_vectors"]
        job.run_now(ada.id)
        await soon(lambda: bool(h.services.inference._running))
        stop_index(h.services.recall.indexer)
        # Let the embedding finish although its row is deleted or edited.
        monkeypatch.setattr(h.services.inference, "cancel", lambda *_: None)
        assert await ada.push("memories", {**row, **change}, assumed=row) == []
        amended: list[list[Block]] = []

        async def noted(user_id: str, model: str, choose: Callable[[DuckDBUserStore], list[Block]]) -> None:
            async with h.services.users.open(user_id) as store:
                amended.append(choose(store))

        monkeypatch.setattr(h.services.recall.indexer, "update_vectors", noted)
        may_continue.set()
        await soon(lambda: bool(amended))
        assert amended[0] == []


async def test_deleting_a_turn_reembeds_its_successor_without_it(tmp_path: Path, installed: Path) -> None:
    """The successor's vector may contain the last words of the deleted turn."""
    async with opened(tmp_path, installed) as h:
        ada = await h.person()
        assert await ada.push("sessions", session("s1"), session("s2")) == []
        for number, said in enumerate(("a secret of the roof", "and the boiler", "and the letter")):
            for name in ("s1", "s2"):
                row = episode(f"{name}-{number}", name, userMessage=said)
                if (name, number) != ("s2", 0):
                    assert await ada.push("episodes", row) == []
        await h.drain_jobs(ada)
        before = await cosines(h, ada, "the boiler")
        assert before["s1-1"] != before["s2-1"], "one was embedded with the secret"
        assert await ada.push("episodes", dead(episode("s1-0", "s1"))) == []
        await h.drain_jobs(ada)
        after = await cosines(h, ada, "the boiler")
        assert after["s1-1"] == after["s2-1"] and after["s1-2"] == before["s1-2"]


async def test_editing_a_turn_reembeds_its_successor(tmp_path: Path, installed: Path) -> None:
    async with opened(tmp_path, installed) as h:
        ada = await h.person()
        assert await ada.push("sessions", session("s1"), session("s2")) == []
        first = episode("first", "s1", userMessage="a secret of the roof")
        said = {"userMessage": "and the boiler"}
        turns = first, episode("second", "s1", **said), episode("alone", "s2", **said)
        assert await ada.push("episodes", *turns) == []
        await h.drain_jobs(ada)
        before = await cosines(h, ada, "the boiler")
        assert before["second"] != before["alone"], "one was embedded with the secret"
        edited = {**first, "userMessage": "nothing"}
        assert await ada.push("episodes", edited, assumed=first) == []
        await h.drain_jobs(ada)
        after = await cosines(h, ada, "the boiler")
        assert after["second"] == after["alone"], "the second turn must be embedded without the edited turn"


async def test_deleting_a_turn_reembeds_only_its_successor(
    tmp_path: Path, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path, installed) as h:
        ada = await talked(h, 9)
        await h.drain_jobs(ada)
        made: list[str] = []
        passages = Embedder.embed_passages

        async def counted(embedder: Embedder, texts: list[str]) -> Any:
            made.extend(texts)
            return await passages(embedder, texts)

        monkeypatch.setattr(Embedder, "embed_passages", counted)
        assert await ada.push("episodes", dead(episode("e3", "s1"))) == []
        await h.drain_jobs(ada)
        (text,) = made
        assert "number 4" in text and "number 2" in text and "number 3" not in text
        assert await lacking(h, ada) == []


async def test_unfinished_turn_schedules_no_indexing(tmp_path: Path) -> None:
    async with serve(tmp_path) as h:
        ada = await talked(h, 1)
        await h.drain_jobs(ada)
        row = episode("e9", "s1", status="streaming")
        assert await ada.push("episodes", row) == []
        job = h.services.background_jobs.jobs["recall"]
        assert not job.is_pending(ada.id)
        assert await ada.push("episodes", {**row, "status": "done"}, assumed=row) == []
        assert job.is_pending(ada.id)


async def test_memory_deduplication_waits_only_for_vectors_of_memories(
    tmp_path: Path, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path, installed, search_wait_s=600) as h:
        ada = await talked(h, 1)
        assert await ada.push("memories", memory("tea", text="Ada likes tea")) == []
        assert await cosines(h, ada, "Ada likes tea", "memories") == {"tea": pytest.approx(1.0, abs=1e-3)}
        await h.drain_jobs(ada)
        may_continue = block_embedding(monkeypatch, 0)
        assert await ada.push("episodes", episode("e9", "s1", userMessage="Later")) == []
        async with asyncio.timeout(60):
            assert set(await cosines(h, ada, "Ada likes tea", "memories")) == {"tea"}
        assert h.services.background_jobs.jobs["recall_vectors"].is_pending(ada.id)
        assert await ada.push("memories", memory("sea", text="Bob sails the sea")) == []
        waits = asyncio.create_task(cosines(h, ada, "Ada likes tea", "memories"))
        async with asyncio.timeout(60):
            while "memories/sea" not in await lacking(h, ada):
                await asyncio.sleep(0.01)
        assert not waits.done()
        may_continue.set()
        assert set(await waits) == {"tea", "sea"}


async def test_memory_search_gets_retry_after_from_overloaded_model(
    tmp_path: Path, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path, installed) as h:
        ada = await talked(h, 1)
        await h.drain_jobs(ada)

        async def full(*_: Any) -> Any:
            raise Busy("Too much.", retry_after_s=7)

        monkeypatch.setattr(Embedder, "embed_query", full)
        answer = await ada.call("GET", "/v1/episodes/search", params={"q": WORD, "sessionId": "s1"})
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "7")
        assert set(await recalled(h, ada, Pool(), " ")) == set()
