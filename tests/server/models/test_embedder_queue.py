"""An overloaded model: queries precede documents, queues are bounded, and requests of disconnected clients leave them.

The tests use real HTTP and a slow model: its six layers of random weights need a tenth of a second for a long text.
"""

import asyncio
import os
import threading
from contextlib import asynccontextmanager

import httpx
import msgspec
import numpy as np
import pytest

from property.rows import block, document
from property.sync_wire import send
from server.in_process_server import Person, check_problem, serve
from server.listening_server import listen_on_port
from unit.engines.onnx import numpy_bert
from vademecum.engines.onnx import download
from vademecum.services.models.active_model import write_choice
from vademecum.services.models.embed_blocks import MAX_ATTEMPTS
from vademecum.settings import Settings
from wait_until import soon

SOAK = bool(os.environ.get("SOAK"))
# With SOAK, as many tokens as the model accepts. Half as many tokens take a third of the time.
LONG = "x " * (500 if SOAK else 250)
SLOW = {
    "hidden_size": 384,
    "num_hidden_layers": 6,
    "num_attention_heads": 12,
    "intermediate_size": 1536,
    "max_position_embeddings": 512,
}


@pytest.fixture(scope="module")
def slow_model(tmp_path_factory):
    """Return a models folder with one slow model."""
    source, models = tmp_path_factory.mktemp("slow-source"), tmp_path_factory.mktemp("slow-models")
    known = msgspec.structs.replace(numpy_bert.write_source(source, "slow", **SLOW), max_tokens=512)
    download.prepare_from_folder(known, source, models)
    return models


@asynccontextmanager
async def at_work(tmp_path, models):
    """Run a server on a real socket. Yield the server, its embedder, and a person whose requests use the socket."""
    write_choice(Settings(data=tmp_path), "slow")
    async with serve(tmp_path, model=models) as h:
        embedder = await h.services.inference.get()
        embedder._query_timeout_s = 600  # so long that queries time out only in the test of the timeout
        local = await h.person()
        async with listen_on_port(h.app) as url, httpx.AsyncClient(base_url=url, timeout=120) as client:
            client.headers["Authorization"] = local.client.headers["Authorization"]
            yield h, embedder, Person(local.id, client)


async def write_document(person, blocks, row_id="d", chunks=16, text=LONG):
    """Push a document of `blocks` blocks that session s1 borrows."""
    count = blocks * chunks
    row = document(person.id, row_id, activeSessions=["s1"], status="pending", chunkCount=count)
    assert await send(person, "documents", (row, None)) == []
    for number in range(blocks):
        pieces = [
            {"index": number * chunks + i, "start": 0, "text": f"{number} {i} {text}", "tokens": 1}
            for i in range(chunks)
        ]
        bare = block(row_id, number, chunks=pieces, embedding=None, dims=0)
        assert await send(person, "vectorEmbeddings", (bare, None)) == []


def ask(person, question, path="/v1/search"):
    return person.call("POST", path, json={"query": question, "sessionId": "s1"})


def asking(person, count, path="/v1/search"):
    return [asyncio.create_task(ask(person, f"{number} {LONG}", path)) for number in range(count)]


async def test_queries_are_answered_during_large_document_embedding(tmp_path, slow_model):
    async with at_work(tmp_path, slow_model) as (h, embedder, ada):
        await write_document(ada, 6)
        await soon(lambda: embedder.queue_length > 8)
        for number in range(20):
            answer = await ask(ada, f"{number} x")
            assert answer.status_code == 200, answer.text
            assert answer.json()["scope"]["mode"] == "hybrid"
        assert embedder.queue_length > 0
        assert (await ada.live("documents"))["d"]["status"] == "pending", (
            "the queries must not have waited until the document was embedded"
        )
        h.services.background_jobs.jobs["embed"].cancel(ada.id)


async def test_query_beyond_queue_limit_gets_retry_after(tmp_path, slow_model):
    async with at_work(tmp_path, slow_model) as (h, embedder, ada):
        await write_document(ada, 1, chunks=1, text="x")
        await h.drain_jobs(ada)
        embedder._queries.capacity = 2
        tasks = asking(ada, 16)
        await soon(lambda: any(task.done() for task in tasks))
        assert (await ada.call("GET", "/health")).status_code == 200
        assert not all(task.done() for task in tasks), "the health route must not wait for the queries"
        answers = await asyncio.gather(*tasks)
        no = [answer for answer in answers if answer.status_code != 200]
        assert 0 < len(no) < 16
        for answer in no:
            seconds = int(answer.headers["Retry-After"])
            assert seconds >= 1
            assert f"try again in {seconds} second" in check_problem(answer, 503, "EMBEDDER_BUSY")["detail"]
        assert (await ask(ada, "x")).status_code == 200


async def test_query_that_times_out_is_rejected_and_leaves_the_queue(tmp_path, slow_model):
    async with at_work(tmp_path, slow_model) as (h, embedder, ada):
        await write_document(ada, 1, chunks=1, text="x")
        await h.drain_jobs(ada)
        embedder._query_timeout_s = 0.02
        for answer in await asyncio.gather(*asking(ada, 8)):
            check_problem(answer, 503, "EMBEDDER_BUSY")
            assert int(answer.headers["Retry-After"]) >= 1
        assert embedder.queue_length == 0
        embedder._query_timeout_s = 600
        assert (await ask(ada, "x")).status_code == 200


@pytest.mark.parametrize("path", ["/v1/search", "/v1/context"])
async def test_query_of_disconnected_client_leaves_the_queue(tmp_path, slow_model, path):
    async with at_work(tmp_path, slow_model) as (h, embedder, ada):
        await write_document(ada, 1, chunks=1, text="x")
        await h.drain_jobs(ada)
        ran = []
        real = embedder._run
        embedder._run = lambda text: ran.append(text) or real(text)
        tasks = asking(ada, 40, path)
        await soon(lambda: embedder.queue_length > 25)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await soon(lambda: embedder.queue_length == 0)
        assert len(ran) < 30, "queries of disconnected clients must not be embedded"
        assert (await ask(ada, "x")).status_code == 200


async def test_index_stays_open_until_reads_of_a_cancelled_search_end(tmp_path, monkeypatch):
    monkeypatch.setattr("vademecum.services.search.indexing.OPEN_MAX", 0)
    async with serve(tmp_path) as h:
        ada = await h.person()
        begun, may_continue = threading.Event(), threading.Event()

        def read(index):
            begun.set()
            assert may_continue.wait(30)
            return index.vector_search(np.zeros(2, np.float32), ["d"], 1)

        given_up = asyncio.create_task(h.services.indexes.read(ada.id, read))
        await asyncio.to_thread(begun.wait, 30)
        given_up.cancel()
        await asyncio.gather(given_up, return_exceptions=True)
        assert ada.id in h.services.indexes._open, "the index must stay open while it is read"
        may_continue.set()
        await soon(lambda: ada.id not in h.services.indexes._open)


async def test_full_queue_does_not_count_as_block_failure(tmp_path, slow_model, monkeypatch):
    monkeypatch.setattr("vademecum.services.runtime.job_queue.RETRY_S", (0.0,))
    async with at_work(tmp_path, slow_model) as (h, embedder, ada):
        embedder._passages.capacity = 1
        may_continue, refusals = threading.Event(), []
        run_one, busy = embedder._run, embedder._busy
        embedder._run = lambda text: may_continue.wait(60) and run_one(text)
        embedder._busy = lambda lane: refusals.append(lane) or busy(lane)
        others = asyncio.create_task(embedder.embed_passages(["x"] * 24))
        await soon(lambda: embedder.queue_length > 1)
        await write_document(ada, 1, chunks=2, text="x")
        await soon(lambda: len(refusals) >= MAX_ATTEMPTS)
        may_continue.set()
        await others
        await h.drain_jobs(ada)
        assert (await ada.live("documents"))["d"]["status"] == "ready"


async def test_requests_that_need_the_model_time_out_while_it_is_loading(tmp_path, slow_model, monkeypatch):
    monkeypatch.setattr("vademecum.services.search.document_search.OPEN_TIMEOUT_S", 0.01)
    monkeypatch.setattr("vademecum.services.models.active_model.OPEN_TIMEOUT_S", 0.01)
    monkeypatch.setattr("vademecum.http.routes.models.OPEN_TIMEOUT_S", 0.01)
    async with at_work(tmp_path, slow_model) as (h, _, ada):
        opened = h.services.inference._opening
        h.services.inference._opening = asyncio.create_task(asyncio.sleep(600))
        answers = [await ask(ada, "x"), await ada.upload("notes.txt", "Some words.", None)]
        for answer in (*answers, await asyncio.wait_for(ada.call("GET", "/v1/models"), 60)):
            assert "still being opened" in check_problem(answer, 503, "BUSY")["detail"]
            assert int(answer.headers["Retry-After"]) >= 1
        h.services.inference._opening.cancel()
        h.services.inference._opening = opened
        assert await ada.live("documents") == {}
        assert (await ada.upload("notes.txt", "Some words.", None)).status_code == 201
