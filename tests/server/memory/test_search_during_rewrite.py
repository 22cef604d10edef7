"""Memory searches must not keep an account's file open, because a rewrite of the file would then deadlock with them."""

import asyncio

import pytest

from property.rows import memory, project, session
from server.in_process_server import serve
from server.memory.extracting_server import REPLY, push_turns, serve_with_jobs, wait_until_finished
from server.scripted_llm import Rule
from vademecum.engines.duckdb import user_stores
from vademecum.engines.onnx.embedder import Embedder
from vademecum.services.search.hybrid_search import HybridSearch

SAID = "Ada likes green tea."


def rewrite_before_queries(monkeypatch, h, name):
    """Start a rewrite of the account's file before each query of the memory index. Return the rewrite tasks.

    The rewrite starts at once instead of waiting until the account is idle.
    """
    monkeypatch.setattr(user_stores, "IDLE_WAIT_S", 0)
    real, rewrites = getattr(HybridSearch, name), []

    async def asked(seeker, user_id, *more):
        rewrites.append(asyncio.create_task(h.services.users.rewrite(user_id)))
        await asyncio.wait(rewrites[-1:], timeout=0.5)
        return await real(seeker, user_id, *more)

    monkeypatch.setattr(HybridSearch, name, asked)
    return rewrites


async def known(h):
    ada = await h.person()
    assert await ada.push("sessions", session("s1")) == []
    assert await ada.push("memories", memory("m1", text=SAID)) == []
    await h.drain_jobs(ada)
    return ada


async def test_rewrite_can_start_during_memory_search(tmp_path, monkeypatch):
    async with serve(tmp_path, model=True) as h:
        ada = await known(h)
        rewrites = rewrite_before_queries(monkeypatch, h, "search_hybrid")
        asked = {"query": "green tea", "sessionId": "s1"}
        async with asyncio.timeout(60):
            found = await ada.call("POST", "/v1/memories/search", json=asked)
            assert rewrites and await asyncio.gather(*rewrites) == [None]
        assert [hit["memory"]["id"] for hit in found.json()["results"]] == ["m1"]


async def test_rewrite_can_start_during_lookup_of_repeated_memories(tmp_path, monkeypatch):
    async with serve(tmp_path, model=True) as h:
        ada = await known(h)
        monkeypatch.setattr(Embedder, "same_memory", -1.0)
        rewrites = rewrite_before_queries(monkeypatch, h, "nearest_texts")
        said = {"text": "Ada likes green tea, always.", "sessionId": "s1"}
        async with asyncio.timeout(60):
            assert (await ada.call("POST", "/v1/memories", json=said)).status_code == 201
            assert rewrites and await asyncio.gather(*rewrites) == [None]


async def test_rewrite_can_start_during_lookup_of_known_entities(tmp_path, monkeypatch):
    async with serve_with_jobs(tmp_path, Rule(say=[REPLY]), model=True) as (h, _):
        ada = await h.person()
        monkeypatch.setattr(Embedder, "same_memory", -1.0)
        rewrites = rewrite_before_queries(monkeypatch, h, "nearest_texts")
        await ada.push("projects", project("p1"))
        assert await ada.push("memories", memory("m1", text=SAID, projectId="p1")) == []
        async with asyncio.timeout(60):
            await push_turns(ada)
            await wait_until_finished(ada)
            assert rewrites and not any(await asyncio.gather(*rewrites))
        assert {row["text"] for row in (await ada.live("memories")).values()} >= {
            "Ada Brook runs the Old Mill."
        }


async def test_second_open_of_an_account_in_the_same_task_fails_immediately(tmp_path):
    async with serve(tmp_path) as h:
        ada, bob = await h.person(), await h.person()
        async with h.services.users.open(ada.id) as store:
            with pytest.raises(RuntimeError, match="opened the file of a user twice"):
                async with h.services.users.open(ada.id):
                    raise AssertionError
            with pytest.raises(RuntimeError, match="opened the file of a user twice"):
                async with h.services.users.detached(ada.id):
                    raise AssertionError
            async with h.services.users.open(bob.id):  # the same task may open another account
                await asyncio.create_task(ada.push("sessions", session("s1")))
            assert store.pins == 1
        assert set(await ada.live("sessions")) == {"s1"}
