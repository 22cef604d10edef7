"""Background embedding of blocks, and the limits on open indexes and attached files."""

import json

import numpy as np
import pytest

from property.rows import block, document, fact
from property.sync_wire import send
from server.in_process_server import reconnect, serve
from vademecum.engines.onnx.embedder import Embedder
from vademecum.model.schema import vector_codec
from vademecum.services.search import indexing
from wait_until import soon


async def test_block_that_fails_to_embed_does_not_stop_other_blocks(tmp_path, monkeypatch):
    """The test uses the real model and makes it fail for one text."""
    whole = Embedder.embed_passages

    async def fragile(self, texts):
        if any("poison" in text for text in texts):
            raise RuntimeError("the runtime gave up")
        return await whole(self, texts)

    monkeypatch.setattr(Embedder, "embed_passages", fragile)
    monkeypatch.setattr("vademecum.services.runtime.job_queue.RETRY_S", (0.0,))
    async with serve(tmp_path, model=True) as h:
        ada = await h.person()
        for name, texts in {"bad": ["fine", "poison"], "good": ["fine too"]}.items():
            row = document(ada.id, name, status="pending", chunkCount=len(texts))
            assert await send(ada, "documents", (row, None)) == []
            blocks = [block(name, n, text=t, embedding=None, dims=0) for n, t in enumerate(texts)]
            assert await send(ada, "vectorEmbeddings", *((b, None) for b in blocks)) == []
        await h.drain_jobs(ada)
        documents = await ada.live("documents")
        assert documents["good"]["status"] == "ready"
        assert (documents["bad"]["status"], documents["bad"]["statusDetail"]) == ("failed", "not_embedded")
        blocks = await ada.live("vectorEmbeddings")
        assert [bool(blocks[i]["embedding"]) for i in ("bad.0", "bad.1", "good.0")] == [True, False, True]


async def test_document_becomes_ready_when_blocks_with_vectors_arrive(tmp_path):
    async with serve(tmp_path, model=True) as h:
        ada = await h.person()
        embedder = await h.services.inference.get()
        row = document(ada.id, "d", status="pending", chunkCount=1)
        assert await send(ada, "documents", (row, None)) == []
        await h.drain_jobs(ada)
        ones = vector_codec.encode(np.ones((1, embedder.dims)))
        whole = block("d", 0, embedding=ones, dims=embedder.dims, model=embedder.model)
        assert await send(ada, "vectorEmbeddings", (whole, None)) == []
        await h.drain_jobs(ada)
        assert (await ada.live("documents"))["d"]["status"] == "ready"


async def test_block_with_null_embedding_is_embedded_despite_json_whitespace(tmp_path):
    async with serve(tmp_path, model=True) as h:
        ada = await h.person()
        embedder = await h.services.inference.get()
        row = document(ada.id, "d", status="ready", chunkCount=1)
        assert await send(ada, "documents", (row, None)) == []
        bare = block("d", 0, embedding=None, dims=0, model=embedder.model)
        spaced = json.dumps([{"newDocumentState": bare}])
        assert '"embedding": null' in spaced
        answer = await ada.call("POST", "/v1/sync/vectorEmbeddings/1/push", content=spaced)
        assert answer.json() == []
        await h.drain_jobs(ada)
        assert (await ada.live("vectorEmbeddings"))["d.0"]["embedding"]


async def test_failed_block_is_embedded_again_after_edit(tmp_path, monkeypatch):
    whole = Embedder.embed_passages

    async def fragile(self, texts):
        if "poison" in texts:
            raise RuntimeError("the runtime gave up")
        return await whole(self, texts)

    monkeypatch.setattr(Embedder, "embed_passages", fragile)
    monkeypatch.setattr("vademecum.services.runtime.job_queue.RETRY_S", (0.0,))
    async with serve(tmp_path, model=True) as h:
        ada = await h.person()
        row = document(ada.id, "d", status="pending", chunkCount=1)
        bad = block("d", 0, text="poison", embedding=None, dims=0)
        assert await send(ada, "documents", (row, None)) == []
        assert await send(ada, "vectorEmbeddings", (bad, None)) == []
        await h.drain_jobs(ada)
        assert (await ada.live("vectorEmbeddings"))["d.0"]["embedding"] is None
        good = block("d", 0, text="a cure", embedding=None, dims=0)
        assert await send(ada, "vectorEmbeddings", (good, bad)) == []
        await h.drain_jobs(ada)
        assert (await ada.live("vectorEmbeddings"))["d.0"]["embedding"]


async def test_vectors_stored_by_the_server_schedule_no_embedding(tmp_path):
    async with serve(tmp_path, model=True) as h:
        ada = await h.person()
        asked = []
        job = h.services.background_jobs.jobs["embed"]
        schedule = job.schedule
        job.schedule = lambda *given: (asked.append(given), schedule(*given))[1]
        await ada.upload("a.txt", "The landlord repairs the roof.")
        await h.drain_jobs(ada)
        assert (await ada.live("documents")).popitem()[1]["status"] == "ready"
        assert len(asked) == 1


async def test_searches_work_for_more_users_than_open_indexes(tmp_path, monkeypatch):
    monkeypatch.setattr(indexing, "OPEN_MAX", 6)
    async with serve(tmp_path, attached_max=3) as h:
        people = [await h.person() for _ in range(10)]
        for number, person in enumerate(people):
            assert (
                await person.upload("a.txt", f"The number of this person is n{number}x.")
            ).status_code == 201
        for number, person in enumerate(people):
            found = await person.search(f"n{number}x", mode="words")
            assert len(found["results"]) == 1
        assert len(h.services.indexes._open) <= 6 and len(h.services.users.attached_stores()) <= 4


async def test_attaching_a_large_account_detaches_several_small_accounts(tmp_path):
    async with serve(tmp_path, attached_rows_max=10) as h:
        users = h.services.users
        few = [await h.person() for _ in range(3)]
        for person in few:
            assert await person.push("facts", *(fact(f"f{n}") for n in range(3))) == []
        assert {store.user_id for store in users.attached_stores()} == {person.id for person in few}
        many = await h.person()
        assert await many.push("facts", *(fact(f"f{n}") for n in range(8))) == []
        assert {store.user_id for store in users.attached_stores()} == {many.id}
        for person in few:
            assert len(await person.pull("facts")) == 3


async def test_file_of_single_account_over_row_limit_stays_open_between_requests(tmp_path):
    async with serve(tmp_path, attached_rows_max=1) as h:
        ada = await h.person()
        assert await ada.push("facts", *(fact(f"f{n}") for n in range(3))) == []
        (store,) = h.services.users.attached_stores()
        assert len(await ada.pull("facts")) == 3
        assert h.services.users.attached_stores() == [store]


async def test_model_installed_later_embeds_existing_blocks(tmp_path):
    async with serve(tmp_path) as h:
        ada = await h.person()
        await ada.upload("a.txt", "The landlord repairs the roof.")
        await h.drain_jobs(ada)
        assert [b["embedding"] for b in await ada.pull("vectorEmbeddings")] == [None]
    async with serve(tmp_path, model=True) as h:
        reconnect(h, ada)
        await soon(lambda: h.services.background_jobs.jobs["embed"].is_pending(ada.id))
        await h.drain_jobs(ada)
        assert all(b["embedding"] for b in (await ada.live("vectorEmbeddings")).values())
        found = await ada.search("who mends the top of the house?", mode="meaning")
        assert found["results"] and found["scope"]["mode"] == "meaning"


@pytest.mark.parametrize(
    ("numbers", "says"),
    [
        ([np.nan], "not finite"),
        ([-np.inf], "not finite"),
        ([0.0], "all zeros"),
        ([1e20], "too large"),
        ([1e-30], "too large or too small"),
        ([0.1] * 10, "`dims` is 10"),
    ],
    ids=["nan", "infinite", "zero", "huge", "tiny", "other dimensions"],
)
async def test_vectors_that_cannot_be_searched_are_rejected(tmp_path, numbers, says):
    async with serve(tmp_path, model=True) as h:
        ada = await h.person()
        embedder = await h.services.inference.get()
        assert await send(ada, "documents", (document(ada.id, "d", chunkCount=1), None)) == []
        dims = len(numbers) if len(numbers) > 1 else embedder.dims
        matrix = np.resize(numbers, (1, dims))
        bad = block("d", 0, embedding=vector_codec.encode(matrix), dims=dims, model=embedder.model)
        [answer] = await send(ada, "vectorEmbeddings", (bad, None))
        assert answer["syncError"]["code"] == "INVALID" and says in answer["syncError"]["message"]
        is_finite = bool(np.isfinite(matrix).all())
        answers = await send(ada, "vectorEmbeddings", ({**bad, "model": "another"}, None))
        assert (answers == []) is is_finite, (
            "vectors of another model must be rejected only if they are not finite"
        )
