"""Events about embedding progress on the streams, and documents that are deleted while they are embedded."""

from __future__ import annotations

import asyncio
import json
import threading
import time

from property.rows import block, document
from property.sync_wire import send
from server.in_process_server import serve
from server.listening_server import listen, listen_on_port
from vademecum.engines.onnx.embedder import Embedder
from vademecum.services.models.embed_progress import EmbedProgress
from wait_until import soon

BLOCKS = 8


def blocks(name: str, chunks: int = 1) -> list[tuple[dict, None]]:
    """Return BLOCKS blocks without vectors, each with this number of chunks."""
    rows = []
    for number in range(BLOCKS):
        first = number * chunks
        texts = [
            {"index": n, "start": n, "text": f"{n} of {name}", "tokens": 2}
            for n in range(first, first + chunks)
        ]
        rows.append((block(name, number, embedding=None, dims=0, chunks=texts), None))
    return rows


def progress_events(text: str) -> list[dict]:
    """Return the data of all `progress` events."""
    events = [event.split("\n") for event in text.split("\n\n")]
    return [json.loads(lines[1][6:]) for lines in events if lines[0] == "event: progress"]


async def test_stream_reports_embedding_progress_at_limited_rate(tmp_path, single_model, monkeypatch):
    passages = Embedder.embed_passages

    async def slow(embedder, texts):
        await asyncio.sleep(0.2)
        return await passages(embedder, texts)

    monkeypatch.setattr(Embedder, "embed_passages", slow)
    async with serve(tmp_path, model=single_model) as h, listen_on_port(h.app) as url:
        ada, bob = await h.person(), await h.person()
        async with (
            listen(url, ada, "/v1/sync/documents/1/pullStream") as plain,
            listen(url, ada, "/v1/sync/stream") as named,
            listen(url, ada, "/v1/sync/facts/0/pullStream") as other,
            listen(url, bob, "/v1/sync/stream") as foreign,
        ):
            began = time.monotonic()
            row = document(ada.id, "d", status="pending", chunkCount=BLOCKS)
            assert await send(ada, "documents", (row, None)) == []
            assert await send(ada, "vectorEmbeddings", *blocks("d")) == []
            await h.drain_jobs(ada)
            seconds = time.monotonic() - began
            await plain.wait_until(lambda: '"ready"' in plain.text)
            await named.wait_until(lambda: '"ready"' in named.text)
            for stream in (plain, named):
                events = progress_events(stream.text)
                assert 2 <= len(events) <= seconds / 0.5 + 1
                assert {(event["documentId"], event["of"]) for event in events} == {("d", BLOCKS)}
                done = [event["done"] for event in events]
                assert done == sorted(set(done)) and 1 <= done[0] <= done[-1] <= BLOCKS
            assert "progress" not in other.text + foreign.text


async def test_deleted_document_leaves_the_embedder_queue_immediately(tmp_path, single_model, monkeypatch):
    running, may_continue = threading.Event(), threading.Event()
    work = Embedder._run

    def stuck(embedder, text):
        if "of d" in text:
            running.set()
            may_continue.wait(20)
        return work(embedder, text)

    monkeypatch.setattr(Embedder, "_run", stuck)
    async with serve(tmp_path, model=single_model) as h:
        ada = await h.person()
        row = document(ada.id, "d", status="pending", chunkCount=16 * BLOCKS)
        assert await send(ada, "documents", (row, None)) == []
        assert await send(ada, "vectorEmbeddings", *blocks("d", 16)) == []
        await asyncio.to_thread(running.wait, 20)
        embedder = await h.services.inference.get()
        assert embedder.queue_length, "the test needs texts in the queue"
        assert (await ada.call("DELETE", "/v1/documents/d")).status_code == 200
        try:
            await soon(
                lambda: (
                    not (embedder.queue_length or h.services.background_jobs.jobs["embed"].is_pending(ada.id))
                )
            )
        finally:
            may_continue.set()


async def test_account_deletion_forgets_embedding_progress(tmp_path, single_model, monkeypatch):
    tellers = set()
    tell, passages = EmbedProgress.publish, Embedder.embed_passages
    may_continue = asyncio.Event()

    async def held(embedder, texts):
        if tellers:  # hold all blocks after the first progress event
            await may_continue.wait()
        return await passages(embedder, texts)

    def noted(teller, *more):
        tellers.add(teller)
        tell(teller, *more)

    monkeypatch.setattr(Embedder, "embed_passages", held)
    monkeypatch.setattr(EmbedProgress, "publish", noted)
    async with serve(tmp_path, model=single_model) as h, listen_on_port(h.app) as url:
        ada = await h.person()
        async with listen(url, ada, "/v1/sync/stream") as stream:
            row = document(ada.id, "d", status="pending", chunkCount=BLOCKS)
            assert await send(ada, "documents", (row, None)) == []
            assert await send(ada, "vectorEmbeddings", *blocks("d")) == []
            await stream.wait_until(lambda: progress_events(stream.text))
            (teller,) = tellers
            assert ada.id in teller._published
            leaving = asyncio.create_task(ada.call("DELETE", "/v1/me", json={"confirm": "leave for good"}))
            async with asyncio.timeout(60):
                while ada.id in teller._published:
                    may_continue.set()
                    await asyncio.sleep(0.01)
            await leaving
