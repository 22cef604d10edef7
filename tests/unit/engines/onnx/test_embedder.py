"""The embedder computes correct vectors, runs queries first, bounds its queue, and drops the work of cancelled calls."""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unit.engines.onnx import numpy_bert
from vademecum.engines.onnx.bert_graph import read_config, read_weights
from vademecum.engines.onnx.embedder import IDLE_POLL_S, Embedder
from vademecum.engines.onnx.errors import EmbedderBusy, EmbedderClosed, ModelError
from vademecum.engines.onnx.manifest import load
from vademecum.engines.onnx.pinned_models import PinnedModel
from vademecum.fair_queue import current_user


@contextmanager
def opened(folder: Path, **options: Any) -> Iterator[Embedder]:
    embedder = Embedder(folder, **options)
    try:
        yield embedder
    finally:
        embedder.close()


class Gate:
    """Block every model run until `open` is set, and record the texts that are run."""

    def __init__(self, embedder: Embedder, monkeypatch: pytest.MonkeyPatch) -> None:
        self.open = threading.Event()
        self.begun = threading.Semaphore(0)
        self.ran: list[str] = []
        real = embedder._run

        def run(text: str) -> np.ndarray:
            self.ran.append(text)
            self.begun.release()
            assert self.open.wait(10)
            return real(text)

        monkeypatch.setattr(embedder, "_run", run)


@pytest.fixture
def embedder(tiny_model: Path) -> Iterator[Embedder]:
    with opened(tiny_model, workers=2) as found:
        yield found


def test_vectors_equal_the_reference(
    embedder: Embedder, tiny: tuple[PinnedModel, Path], tiny_model: Path
) -> None:
    shape = read_config(tiny[1] / "config.json")
    weights = read_weights(tiny[1] / "model.safetensors")
    texts = ["one passage", "", "x", "naïve ΣΟΦΟΣ 𠀀𠀁 😀", "long " * 500]

    async def main() -> None:
        vectors = await embedder.embed_passages(texts)
        assert vectors.shape == (5, embedder.dims)
        assert vectors.dtype == np.float32
        for text, vector in zip(texts, vectors, strict=True):
            assert (
                vector @ numpy_bert.forward(shape, weights, embedder.token_ids("passage: " + text)) > 0.9999
            )
        query = await embedder.embed_query("one passage")
        assert query.shape == (embedder.dims,)
        assert query @ numpy_bert.forward(shape, weights, embedder.token_ids("query: one passage")) > 0.9999
        assert (await embedder.embed_passages([])).shape == (0, embedder.dims)

    asyncio.run(main())
    assert embedder.model == load(tiny_model).hash == embedder.manifest.hash


def test_vector_does_not_depend_on_other_texts(embedder: Embedder) -> None:
    async def main() -> None:
        texts = [f"text number {number} " * (number % 7) for number in range(40)]
        together = await embedder.embed_passages(texts)
        for text, vector in zip(texts, together, strict=True):
            assert ((await embedder.embed_passages([text]))[0] == vector).all()
        tasks = [asyncio.create_task(embedder.embed_passages([text])) for text in texts]
        assert (np.concatenate(await asyncio.gather(*tasks)) == together).all()

    asyncio.run(main())


def test_truncated_text_keeps_its_end_token(embedder: Embedder) -> None:
    most = embedder.manifest.max_tokens
    short, exact, long = (embedder.token_ids("x " * count) for count in (3, most - 2, 5000))
    assert (len(short), len(exact), len(long)) == (5, most, most)
    assert {ids[0] for ids in (short, exact, long)} == {2}
    assert {ids[-1] for ids in (short, exact, long)} == {3}
    assert exact == long
    assert embedder.count_tokens("x " * 5000) == 5000
    assert embedder.count_tokens("") == 0
    assert 0 not in embedder.token_ids("a"), "the padding of the tokenizer file is not disabled"


@pytest.mark.parametrize("work", ["count_tokens", "token_ids"])
def test_tokenizing_a_long_text_does_not_block_threads(embedder: Embedder, work: str) -> None:
    thread = threading.Thread(target=getattr(embedder, work), args=("x " * 400_000,))
    thread.start()
    turns = 0
    while thread.is_alive():
        time.sleep(0.001)
        turns += 1
    assert turns > 50, "tokenizing blocked this thread"


def test_queries_run_before_passages(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(embedder: Embedder) -> None:
        gate = Gate(embedder, monkeypatch)
        passages = asyncio.create_task(embedder.embed_passages([f"p{number}" for number in range(20)]))
        await asyncio.to_thread(gate.begun.acquire)
        queries = [asyncio.create_task(embedder.embed_query(f"q{number}")) for number in range(3)]
        await asyncio.to_thread(gate.begun.acquire)
        gate.open.set()
        await asyncio.gather(passages, *queries)
        first = [text.split(": ")[1] for text in gate.ran[:4]]
        assert first[:2] == ["p0", "q0"], "a query must not wait for the running passage"
        assert {"q1", "q2"} <= {text.split(": ")[1] for text in gate.ran[:5]}

    with opened(tiny_model, workers=1) as embedder:
        asyncio.run(main(embedder))


async def queries_of(embedder: Embedder, user: str, count: int) -> list[asyncio.Task[Any]]:
    current_user.set(user)
    tasks = [asyncio.create_task(embedder.embed_query(f"{user}{number}")) for number in range(count)]
    await asyncio.sleep(0)
    return tasks


def test_one_user_does_not_occupy_all_threads(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(embedder: Embedder) -> None:
        gate = Gate(embedder, monkeypatch)
        busy = await asyncio.create_task(queries_of(embedder, "busy", 5))
        await asyncio.to_thread(gate.begun.acquire)
        other = await asyncio.create_task(queries_of(embedder, "other", 2))
        await asyncio.to_thread(gate.begun.acquire)
        ran = [text.split(": ")[1] for text in gate.ran]
        assert ran == ["busy0", "other0"]
        gate.open.set()
        await asyncio.gather(*busy, *other)

    with opened(tiny_model, workers=1) as embedder:
        asyncio.run(main(embedder))


def test_one_user_may_fill_a_quarter_of_the_queue(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(embedder: Embedder) -> None:
        gate = Gate(embedder, monkeypatch)
        busy = await asyncio.create_task(queries_of(embedder, "busy", 9))
        await asyncio.to_thread(gate.begun.acquire)
        other = await asyncio.create_task(queries_of(embedder, "other", 1))
        gate.open.set()
        answers = await asyncio.gather(*busy, *other, return_exceptions=True)
        refused = [isinstance(answer, EmbedderBusy) for answer in answers]
        assert any(refused) and not refused[0] and not refused[-1]

    with opened(tiny_model, workers=1, query_capacity=16) as embedder:
        asyncio.run(main(embedder))


def test_passage_threads_have_lower_priority(
    tiny_model: Path,
) -> None:
    with opened(tiny_model, workers=2) as embedder:
        asyncio.run(embedder.embed_passages(["all threads have begun"] * 50))
        nice = {t.name: os.getpriority(os.PRIO_PROCESS, t.native_id or 0) for t in embedder._threads}
    own = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    assert nice["embed-0"] == own < min(nice["embed-1"], nice["embed-2"])


def test_full_queue_refuses_a_call_at_once(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(embedder: Embedder) -> None:
        gate = Gate(embedder, monkeypatch)
        running = asyncio.create_task(embedder.embed_passages(["runs"]))
        await asyncio.to_thread(gate.begun.acquire)
        waiting = asyncio.create_task(embedder.embed_passages(["w"] * 6))
        await asyncio.sleep(0.01)
        with pytest.raises(EmbedderBusy) as error:
            await embedder.embed_passages(["no"] * 3)
        assert error.value.retry_after_s is not None
        assert error.value.retry_after_s >= 1
        assert embedder.queue_length == 6
        also = asyncio.create_task(embedder.embed_passages(["fits"] * 2))
        question = asyncio.create_task(
            embedder.embed_query("a full queue of passages does not refuse a question")
        )
        await asyncio.sleep(0.01)
        gate.open.set()
        await asyncio.gather(running, waiting, also, question)
        assert "passage: no" not in gate.ran
        assert len(await embedder.embed_passages(["more than the capacity, alone"] * 20)) == 20

    with opened(tiny_model, workers=1, capacity=8) as embedder:
        asyncio.run(main(embedder))


def test_cancelled_call_leaves_the_queue(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(embedder: Embedder) -> None:
        gate = Gate(embedder, monkeypatch)
        running = asyncio.create_task(embedder.embed_passages(["runs"]))
        await asyncio.to_thread(gate.begun.acquire)
        gone = asyncio.create_task(embedder.embed_passages(["gone"] * 50))
        stays = asyncio.create_task(embedder.embed_passages(["stays"] * 2))
        await asyncio.sleep(0.01)
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone
        assert embedder.queue_length == 2
        gate.open.set()
        await asyncio.gather(running, stays)
        assert "passage: gone" not in gate.ran

    with opened(tiny_model, workers=1) as embedder:
        asyncio.run(main(embedder))


def test_embedder_works_after_cancelling_a_running_call(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main(embedder: Embedder) -> None:
        gate = Gate(embedder, monkeypatch)
        running = asyncio.create_task(embedder.embed_passages(["runs"]))
        await asyncio.to_thread(gate.begun.acquire)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(running, 0.01)
        gate.open.set()
        assert (await embedder.embed_passages(["next"])).shape == (1, embedder.dims)

    with opened(tiny_model, workers=1) as embedder:
        asyncio.run(main(embedder))


def test_failing_text_fails_only_its_caller(embedder: Embedder, monkeypatch: pytest.MonkeyPatch) -> None:
    real = embedder._run

    def run(text: str) -> np.ndarray:
        if "bad" in text:
            raise ValueError("no such thing")
        return real(text)

    monkeypatch.setattr(embedder, "_run", run)

    async def main() -> None:
        results = await asyncio.gather(
            embedder.embed_passages(["good", "bad", "good"]),
            embedder.embed_passages(["good"]),
            return_exceptions=True,
        )
        assert isinstance(results[0], ModelError)
        assert isinstance(results[1], np.ndarray)
        assert (await embedder.embed_query("still there")).shape == (embedder.dims,)

    asyncio.run(main())


def test_one_passage_thread_rests_unless_server_is_idle(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of two passage threads pauses while the server is busy, works while it is idle, and delays no close."""
    alone = threading.Event()

    async def main() -> None:
        embedder = Embedder(tiny_model, workers=2, is_idle=alone.is_set)
        gate = Gate(embedder, monkeypatch)
        waiting = asyncio.create_task(embedder.embed_passages(["waits"] * 5))
        await asyncio.to_thread(gate.begun.acquire)
        await asyncio.sleep(3 * IDLE_POLL_S)
        assert len(gate.ran) == 1
        alone.set()
        await asyncio.to_thread(gate.begun.acquire)
        assert len(gate.ran) == 2
        alone.clear()
        closing = asyncio.create_task(embedder.aclose(finish=True))
        gate.open.set()
        assert (await waiting).shape == (5, embedder.dims)
        await closing

    asyncio.run(main())


def test_passage_thread_does_not_rest_if_it_is_the_only_one(tiny_model: Path) -> None:
    with opened(tiny_model, workers=1, is_idle=lambda: False) as embedder:
        assert asyncio.run(embedder.embed_passages(["waits"] * 3)).shape == (3, embedder.dims)


def test_close_drops_waiting_work(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        embedder = Embedder(tiny_model, workers=1)
        gate = Gate(embedder, monkeypatch)
        running = asyncio.create_task(embedder.embed_passages(["runs"]))
        await asyncio.to_thread(gate.begun.acquire)
        waiting = asyncio.create_task(embedder.embed_passages(["waits"] * 5))
        await asyncio.sleep(0.01)
        closing = asyncio.create_task(embedder.aclose())
        with pytest.raises(EmbedderClosed):
            await waiting
        gate.open.set()
        await asyncio.gather(running, closing)
        assert gate.ran == ["passage: runs"]
        with pytest.raises(EmbedderClosed):
            await embedder.embed_query("too late")
        embedder.close()

    asyncio.run(main())


def embedding() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("embed-")}


def test_close_with_finish_completes_waiting_work(tiny_model: Path) -> None:
    others = set(threading.enumerate())  # a server of another test may have its own embedder in this process

    async def main() -> None:
        embedder = Embedder(tiny_model, workers=2)
        assert len(embedding() - others) == 3
        waiting = asyncio.create_task(embedder.embed_passages(["waits"] * 50))
        await asyncio.sleep(0)
        await embedder.aclose(finish=True)
        assert (await waiting).shape == (50, embedder.dims)

    asyncio.run(main())
    assert not embedding() - others


def test_embedder_works_after_its_event_loop_closed(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tiny_model, workers=1) as embedder:
        gate = Gate(embedder, monkeypatch)

        async def leave() -> None:
            task = asyncio.create_task(embedder.embed_passages(["left behind"] * 3))
            await asyncio.to_thread(gate.begun.acquire)
            task.cancel()

        asyncio.run(leave())
        gate.open.set()
        assert asyncio.run(embedder.embed_query("a new loop")).shape == (embedder.dims,)


def test_missing_or_damaged_model_is_reported(tiny_model: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="There is no model"):
        Embedder(tmp_path)
    copy = Path(shutil.copytree(tiny_model, tmp_path / "model"))
    size = (copy / "model.onnx").stat().st_size
    (copy / "model.onnx").write_bytes(bytes(size))
    with pytest.raises(ModelError, match="cannot be loaded"):
        Embedder(copy)


def test_all_minilm_ranks_related_texts_higher(minilm: Path) -> None:
    async def main(embedder: Embedder) -> None:
        texts = [
            "The tenant pays the rent monthly.",
            "Photosynthesis happens in leaves.",
            "How plants make sugar",
        ]
        vectors = await embedder.embed_passages(texts)
        assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
        assert int(np.argmax(vectors @ await embedder.embed_query("When is the rent due?"))) == 0
        assert vectors[1] @ vectors[2] > vectors[0] @ vectors[2]
        assert embedder.token_ids("Hello world") == [101, 7592, 2088, 102]
        assert embedder.manifest.max_tokens == len(embedder.token_ids("word " * 600)) == 512

    with opened(minilm) as embedder:
        asyncio.run(main(embedder))
