"""Embed texts with one onnxruntime session, one text per run, on as many threads as cores. Queries have priority.

Texts are not batched: padding was slower when measured, and the browser also runs one text at a time. So a vector does
not depend on other texts. The queue of passages and the queue of queries are both bounded. A call that does not fit into
its queue is rejected immediately and as a whole, with a retry time. A query that waits too long is rejected. The texts
of a cancelled call are removed from the queue.
"""

from __future__ import annotations

import asyncio
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray
from tokenizers import Tokenizer
from tokenizers.models import Unigram

from vademecum.engines.onnx import manifest as manifests
from vademecum.engines.onnx import pinned_models
from vademecum.engines.onnx.errors import EmbedderBusy, EmbedderClosed, ModelError
from vademecum.engines.onnx.manifest import GRAPH, TOKENIZER, FittedValues, Manifest
from vademecum.fair_queue import SERVER, FairQueue, current_user
from vademecum.model.text.normalization import prepare_for_tokenizer, prepare_for_unigram

Vectors = NDArray[np.float32]
CAPACITY = 1024  # maximum number of passages in the queue
QUERY_CAPACITY = 128  # maximum number of queries in the queue: one or two seconds of work
SHARE = 4  # one user may fill 1/SHARE of a queue
PASSAGES_NICE = 10  # added to the nice value of threads that embed passages
QUERY_TIMEOUT_S = 10.0  # maximum wait for the vector of a query
IDLE_POLL_S = 0.1  # how often a thread that keeps a core free for requests polls `is_idle`
_SECONDS_AT_FIRST = 0.1  # estimated time per text before any has been measured
UNFITTED = FittedValues(fitted_on="")  # for a model that was never fitted


class _Call:
    """The texts of one call, and the future on which the caller waits."""

    def __init__(self, texts: Sequence[str], dims: int, loop: asyncio.AbstractEventLoop) -> None:
        self.texts = texts
        self.vectors: Vectors = np.empty((len(texts), dims), dtype=np.float32)
        self.remaining = len(texts)
        self.over = False
        self.loop = loop
        self.future: asyncio.Future[Vectors] = loop.create_future()

    def settle(self, error: BaseException | None = None) -> None:
        """Resolve the future with the vectors or the error. Thread-safe; ignores a closed event loop."""
        self.over = True
        try:
            self.loop.call_soon_threadsafe(self._settle, error)
        except RuntimeError:
            return

    def _settle(self, error: BaseException | None) -> None:
        if self.future.done():
            return
        if error is None:
            self.future.set_result(self.vectors)
        else:
            self.future.set_exception(error)


_Job = tuple[_Call, int]


class _Lane:
    """A queue of texts, served round-robin by user. `capacity` is the maximum number of texts of all users together."""

    def __init__(self, capacity: int, threads: int, per_user: int) -> None:
        self.queue: FairQueue[_Job] = FairQueue(threads, per_user)
        self.capacity = capacity

    def has_room(self, user_id: str, count: int) -> bool:
        """Return whether `count` more texts of a user fit.

        A user with waiting texts may fill only 1/SHARE of the lane. A call larger than the lane fits only an empty
        lane.
        """
        waiting = self.queue.waiting(user_id)
        if user_id != SERVER and waiting and waiting + count > self.capacity // SHARE:
            return False
        return not len(self.queue) or len(self.queue) + count <= self.capacity


class Embedder:
    """An open embedding model. Create it from any thread, call it from a running event loop, close it once.

    Worker threads call `is_idle`. `is_idle` returns whether no request is waiting; only then do passages use all cores.
    The constructor raises ModelError if the model is missing or damaged.
    """

    def __init__(
        self,
        folder: Path,
        *,
        workers: int | None = None,
        capacity: int = CAPACITY,
        query_capacity: int = QUERY_CAPACITY,
        query_timeout_s: float = QUERY_TIMEOUT_S,
        is_idle: Callable[[], bool] = lambda: True,
    ) -> None:
        self._is_idle = is_idle
        self._manifest = manifests.verify(folder, deep=False)
        self._fitted = pinned_models.fitted_values(self._manifest) or UNFITTED
        self._session = _open_session(folder / GRAPH, self._manifest)
        self._tokenizer = _open_tokenizer(folder / TOKENIZER)
        is_unigram = isinstance(self._tokenizer.model, Unigram)
        self._prepare = prepare_for_unigram if is_unigram else prepare_for_tokenizer
        self._query_timeout_s = query_timeout_s
        self._wake = threading.Condition()
        self._closing = False
        self._seconds = _SECONDS_AT_FIRST
        self._workers = max(1, workers or _cores())
        self._queries = _Lane(query_capacity, self._workers + 1, self._workers)
        self._passages = _Lane(capacity, self._workers, self._workers)
        self._threads = [
            threading.Thread(target=self._work, args=(number,), name=f"embed-{number}", daemon=True)
            for number in range(self._workers + 1)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def manifest(self) -> Manifest:
        return self._manifest

    @property
    def model(self) -> str:
        """Return the manifest's hash, which is stored with each vector."""
        return self._manifest.hash

    @property
    def same_memory(self) -> float | None:
        """Return the minimum cosine of two memories with the same meaning; None if this model has no fitted threshold."""
        return self._fitted.same_memory

    @property
    def chunk_weight(self) -> float:
        """Return the weight of vector search relative to keyword search for passages of documents."""
        return self._fitted.chunk_weight

    @property
    def turn_weight(self) -> float:
        """Return the weight of vector search relative to keyword search for turns and other memories."""
        return self._fitted.turn_weight

    @property
    def is_multilingual(self) -> bool:
        """Return whether the model also knows languages in other scripts than Latin."""
        return "zh" in self._fitted.languages

    @property
    def dims(self) -> int:
        return self._manifest.dims

    @property
    def queue_length(self) -> int:
        """Return the number of texts in both queues."""
        return len(self._queries.queue) + len(self._passages.queue)

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens of a text without prefix, special tokens and truncation."""
        return len(self._encoded(text, special=False))

    def token_ids(self, text: str) -> list[int]:
        """Return the model's input ids, from [CLS] to [SEP], truncated to `max_tokens` with [SEP] kept."""
        ids = self._encoded(text, special=True)
        max_tokens = self._manifest.max_tokens
        return ids if len(ids) <= max_tokens else [*ids[: max_tokens - 1], ids[-1]]

    def _encoded(self, text: str, *, special: bool) -> list[int]:
        """Tokenize a text as a batch of one.

        `encode` would hold the GIL, so that a long text would block the event loop for half a second.
        """
        [encoding] = self._tokenizer.encode_batch_fast([self._prepare(text)], add_special_tokens=special)
        ids: list[int] = encoding.ids
        return ids

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Return one vector per text, n × dims, in order.

        Raises EmbedderBusy if the texts do not fit into the queue.
        """
        prefix = self._manifest.prefixes.passage
        return await self._submit([prefix + text for text in texts], self._passages)

    async def embed_query(self, text: str) -> Vectors:
        """Return the vector of a query. A query is computed before all waiting passages.

        Raises EmbedderBusy if the queue of queries is full, or after a wait of `query_timeout_s` seconds.
        """
        return await self._at_once(self._manifest.prefixes.query + text)

    async def embed_statement(self, text: str) -> Vectors:
        """Return the vector of a statement, for comparisons with the vectors of other statements.

        The statement is embedded as a passage, but with the priority of a query. Raises the same errors as
        `embed_query`.
        """
        return await self._at_once(self._manifest.prefixes.passage + text)

    async def _at_once(self, text: str) -> Vectors:
        try:
            async with asyncio.timeout(self._query_timeout_s):
                vectors = await self._submit([text], self._queries)
        except TimeoutError:
            raise self._busy(self._queries) from None
        return np.ascontiguousarray(vectors[0])

    def close(self, *, finish: bool = False) -> None:
        """Stop the threads.

        If `finish` is true, embed all queued texts first; otherwise their calls raise EmbedderClosed.
        """
        with self._wake:
            self._closing = True
            dropped = [] if finish else [*self._queries.queue.clear(), *self._passages.queue.clear()]
            self._wake.notify_all()
        for call in {id(call): call for call, _ in dropped}.values():
            call.settle(EmbedderClosed("The embedder is closing.", retry_after_s=5))
        for thread in self._threads:
            thread.join()

    async def aclose(self, *, finish: bool = False) -> None:
        """Close without blocking the event loop."""
        await asyncio.to_thread(self.close, finish=finish)

    async def _submit(self, texts: Sequence[str], lane: _Lane) -> Vectors:
        user_id = current_user.get()
        call = _Call(texts, self.dims, asyncio.get_running_loop())
        if not texts:
            return call.vectors
        with self._wake:
            if self._closing:
                raise EmbedderClosed("The embedder is closing.", retry_after_s=5)
            if not lane.has_room(user_id, len(texts)):
                raise self._busy(lane)
            for number in range(len(texts)):
                lane.queue.put(user_id, (call, number))
            self._wake.notify_all()
        try:
            return await call.future
        except asyncio.CancelledError:
            self._drop(user_id, call, lane)
            raise

    def _drop(self, user_id: str, call: _Call, lane: _Lane) -> None:
        with self._wake:
            call.over = True
            lane.queue.discard(user_id, lambda job: job[0] is call)

    def _busy(self, lane: _Lane) -> EmbedderBusy:
        """Return the error for a full lane. Its `retry_after_s` estimates when half of the lane's texts are embedded."""
        seconds = max(1, math.ceil(len(lane.queue) * self._seconds / self._workers / 2))
        plural = "" if seconds == 1 else "s"
        return EmbedderBusy(
            f"The model is busy. Nothing is lost; try again in {seconds} second{plural}.",
            retry_after_s=seconds,
        )

    def _work(self, number: int) -> None:
        """Run a worker thread. Thread 0 takes queries only, so that no query waits for a long passage."""
        if number > 0:
            _step_back()
        while (taken := self._next(number)) is not None:
            lane, user_id, (call, at) = taken
            try:
                if not call.over:
                    began = time.perf_counter()
                    vector = self._run(call.texts[at])
                    self._done(call, at, vector, time.perf_counter() - began)
            except Exception as error:
                call.settle(ModelError(f"A text could not be embedded: {error}"))
            finally:
                self._release(lane, user_id)

    def _next(self, number: int) -> tuple[_Lane, str, _Job] | None:
        with self._wake:
            while True:
                if (taken := self._queries.queue.take()) is not None:
                    return self._queries, *taken
                passages = number > 0 and bool(len(self._passages.queue))
                if passages and self._may_take(number) and (taken := self._passages.queue.take()) is not None:
                    return self._passages, *taken
                if self._closing and not (number == 1 and passages) and not len(self._queries.queue):
                    return None
                self._wake.wait(IDLE_POLL_S if passages else None)

    def _release(self, lane: _Lane, user_id: str) -> None:
        with self._wake:
            lane.queue.release(user_id)
            if len(lane.queue):  # another text of this user may be waiting for the released slot
                self._wake.notify_all()

    def _may_take(self, number: int) -> bool:
        """Return whether a thread may take a passage.

        While requests are waiting, the last of several threads may take none, so that a core is free for the requests.
        """
        return number == 1 or number < self._workers or self._is_idle()

    def _done(self, call: _Call, number: int, vector: Vectors, seconds: float) -> None:
        call.vectors[number] = vector
        with self._wake:
            self._seconds += 0.05 * (seconds - self._seconds)
            call.remaining -= 1
            last = call.remaining == 0
        if last:
            call.settle()

    def _run(self, text: str) -> Vectors:
        ids = np.array([self.token_ids(text)], dtype=np.int64)
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        vectors: Vectors = self._session.run([self._manifest.output], feed)[0]
        vector: Vectors = vectors[0]
        return vector


def _step_back() -> None:
    """Lower the priority of this thread, so that queries and the event loop get a core immediately.

    Only Linux has priorities per thread. On other systems, this method has no effect.
    """
    if sys.platform == "linux":
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, thread) + PASSAGES_NICE)


def _open_session(path: Path, manifest: Manifest) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    try:
        session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise ModelError(f"{path} cannot be loaded: {error}. Prepare the model again.") from error
    shape = session.get_outputs()[0].shape
    if shape[-1] != manifest.dims:
        raise ModelError(
            f"{path} returns vectors of {shape[-1]} numbers, but its manifest declares {manifest.dims}."
        )
    return session


def _open_tokenizer(path: Path) -> Tokenizer:
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:
        raise ModelError(f"{path} cannot be loaded: {error}. Prepare the model again.") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _cores() -> int:
    """Return the number of cores available to this process; a container may have fewer than the host."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1
