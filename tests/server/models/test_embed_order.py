"""The order of embedding: small documents come first, and no user waits for all documents of another user."""

from __future__ import annotations

import asyncio

from property.rows import block, document
from property.sync_wire import send
from server.in_process_server import serve
from vademecum.engines.onnx.embedder import Embedder
from vademecum.services.models.embed_blocks import BLOCKS_PER_TURN, MAX_ATTEMPTS, Block, order_blocks
from wait_until import soon

LARGE = 5 * BLOCKS_PER_TURN  # number of blocks of a large document


async def write(person, name, count):
    row = document(person.id, name, status="pending", chunkCount=count, activeSessions=["s1"])
    assert await send(person, "documents", (row, None)) == []
    rows = [block(name, n, text=f"{name} {n}", embedding=None, dims=0) for n in range(count)]
    assert await send(person, "vectorEmbeddings", *((row, None) for row in rows)) == []


def record_embeddings(monkeypatch):
    """Return a list to which each embedding of a block appends the document's name."""
    names = []
    passages = Embedder.embed_passages

    async def noted(embedder, texts):
        names.append(texts[0].split()[0])
        await asyncio.sleep(0.02)
        return await passages(embedder, texts)

    monkeypatch.setattr(Embedder, "embed_passages", noted)
    return names


def test_small_documents_are_embedded_first_and_failed_blocks_last():
    large, small = [Block("large.0", 1), Block("large.1", 2)], Block("small.0", 3)
    failed, skipped = Block("failed.0", 4), Block("skipped.0", 5)
    failures = {failed: 1, skipped: MAX_ATTEMPTS}
    assert order_blocks([*large, small, failed, skipped], failures) == [small, *large, failed]


def test_block_edited_after_failed_attempts_is_embedded_again():
    edited = Block("edited.0", 2)
    assert order_blocks([edited], {Block("edited.0", 1): MAX_ATTEMPTS}) == [edited]


async def test_embedding_large_document_yields_to_later_small_document(tmp_path, single_model, monkeypatch):
    names = record_embeddings(monkeypatch)
    async with serve(tmp_path, model=single_model) as h:
        ada = await h.person()
        await write(ada, "large", LARGE)
        await soon(lambda: names)
        await write(ada, "small", 1)
        before = len(names)
        await soon(lambda: "small" in names)
        assert names.index("small") <= before + BLOCKS_PER_TURN
        await h.drain_jobs(ada)
        assert sorted(names) == ["large"] * LARGE + ["small"], "each block is embedded once"
        assert {row["status"] for row in (await ada.live("documents")).values()} == {"ready"}


async def test_small_document_becomes_ready_while_large_document_is_embedded(
    tmp_path, single_model, monkeypatch
):
    names = record_embeddings(monkeypatch)
    both_here, seen = asyncio.Event(), asyncio.Event()
    noted = Embedder.embed_passages

    async def held(embedder, texts):
        vectors = await noted(embedder, texts)
        await both_here.wait()
        if names.count("large") == LARGE:
            await seen.wait()
        return vectors

    monkeypatch.setattr(Embedder, "embed_passages", held)
    async with serve(tmp_path, model=single_model) as h:
        ada = await h.person()
        await write(ada, "large", LARGE)
        await write(ada, "small", 1)

        async def only_the_small_one_is_ready():
            return await statuses(ada) == {"small": "ready", "large": "pending"}

        both_here.set()
        await soon(only_the_small_one_is_ready)
        seen.set()
        await h.drain_jobs(ada)
        assert set((await statuses(ada)).values()) == {"ready"} and len(names) == LARGE + 1


async def statuses(person):
    return {name: row["status"] for name, row in (await person.live("documents")).items()}


async def test_large_documents_do_not_starve_other_users(tmp_path, single_model, monkeypatch):
    names = record_embeddings(monkeypatch)
    async with serve(tmp_path, model=single_model) as h:
        ada, bob, eve = [await h.person() for _ in range(3)]
        await write(ada, "ada", LARGE)
        await write(bob, "bob", LARGE)
        await soon(lambda: {"ada", "bob"} <= set(names))
        await write(eve, "eve", 1)
        before = len(names)
        await soon(lambda: "eve" in names)
        assert names.index("eve") <= before + 2 * BLOCKS_PER_TURN
        for person in (ada, bob, eve):
            await h.drain_jobs(person)
        assert len(names) == 2 * LARGE + 1


async def test_search_reports_number_of_documents_waiting_for_vectors(tmp_path, single_model, monkeypatch):
    may_continue = asyncio.Event()
    passages = Embedder.embed_passages

    async def held(embedder, texts):
        if texts[0].startswith("large 1"):
            await may_continue.wait()
        return await passages(embedder, texts)

    monkeypatch.setattr(Embedder, "embed_passages", held)
    async with serve(tmp_path, model=single_model) as h:
        ada = await h.person()
        assert (await ada.search("small"))["scope"]["pending"] == 0, (
            "no document must be pending without documents"
        )
        await write(ada, "small", 1)
        await h.drain_jobs(ada)
        await write(ada, "large", 2)
        await soon(lambda: h.services.background_jobs.jobs["embed"].is_pending(ada.id))
        scope = (await ada.search("small"))["scope"]
        assert (scope["documentIds"], scope["mode"], scope["pending"]) == (
            ["large", "small"],
            "hybrid",
            1,
        )
        assert (await ada.search("small", "s2"))["scope"]["pending"] == 0, (
            "documents of another session must not count as pending"
        )
        may_continue.set()
        await h.drain_jobs(ada)
        assert (await ada.search("small"))["scope"]["pending"] == 0


async def test_no_document_waits_for_vectors_without_a_model(tmp_path):
    async with serve(tmp_path) as h:
        ada = await h.person()
        await write(ada, "small", 1)
        await h.drain_jobs(ada)
        scope = (await ada.search("small"))["scope"]
        assert (scope["documentIds"], scope["mode"], scope["pending"]) == (["small"], "words", 0)
