"""Compare storing and searching memories with mem0. Both use the same statements, questions, model and LLM endpoint.

Three operations are measured: storing a statement verbatim, storing a turn from which the language model extracts
memories, and searching for a question. Both systems run each operation in small batches, in alternating order. mem0 is
called in its own process, our server over HTTP. When storing a turn, mem0 responds after the language model has
replied. Our server responds before that and extracts the memory later; the time until the extraction is reported
separately.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from client import Connection, request
from measure import median, percentile
from memories.house import MODEL, ROOT, endpoint, with_jobs
from memories.scripted import ASKED
from rows import Maker
from targets.install import python_peer
from targets.ours import Ours

NEW, AGAIN = 160, 40  # number of different statements, and of those that are later repeated verbatim
QUESTIONS = 100
PORTION = 20
STATEMENT, TURN, QUESTION = "a statement is remembered", "a turn is kept", "a question is answered"

Ask = Callable[[Sequence[str]], Awaitable[list[float]]]  # calls a system once per text and returns seconds


class Mem0:
    """A mem0 process with its own folder."""

    def __init__(self, python: Path, folder: Path, address: str) -> None:
        folder.mkdir()
        command = [
            str(python),
            str(ROOT / "bench" / "peers" / "mem0_worker.py"),
            str(folder),
            address,
            str(MODEL),
        ]
        # Compute matrix products in one thread, because the server configures numpy so.
        env = {**os.environ, "PYTHONPATH": str(ROOT / "server"), "OPENBLAS_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
        )

    def order(self, **order: Any) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    async def remember(self, texts: Sequence[str]) -> list[float]:
        return self._seconds("add", texts, infer=False)

    async def read(self, texts: Sequence[str]) -> list[float]:
        return self._seconds("add", [ASKED + text for text in texts], infer=True)

    async def search(self, texts: Sequence[str]) -> list[float]:
        return self._seconds("search", texts)

    def _seconds(self, do: str, texts: Sequence[str], **more: Any) -> list[float]:
        seconds: list[float] = self.order(do=do, texts=texts, **more)["seconds"]
        return seconds

    def close(self) -> None:
        self._process.communicate()


class Here:
    """A user of our server, with the same operations as `Mem0`."""

    def __init__(self, ours: Ours, user: int, connection: Connection) -> None:
        self._ours = ours
        self._maker = Maker(user)
        self._connection = connection

    async def begin(self) -> None:
        await self._ours.prepare_sessions([self._maker])

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        sent = json.dumps(body).encode() if body is not None else b""
        head = self._ours.headers(self._maker.user)
        answer = await self._connection.send(request(method, path, head, sent))
        assert answer.ok, answer.body
        return json.loads(answer.body)

    async def remember(self, texts: Sequence[str]) -> list[float]:
        bodies = [{"text": text, "sessionId": self._maker.session_id} for text in texts]
        return await self._seconds("/v1/memories", bodies)

    async def read(self, texts: Sequence[str]) -> list[float]:
        said = {"sessionId": self._maker.session_id, "aiResponse": "I will."}
        return await self._seconds("/v1/episodes", [{**said, "userMessage": ASKED + text} for text in texts])

    async def search(self, texts: Sequence[str]) -> list[float]:
        bodies = [{"query": text, "project": None, "limit": 10} for text in texts]
        return await self._seconds("/v1/memories/search", bodies)

    async def _seconds(self, path: str, bodies: Sequence[Any]) -> list[float]:
        seconds = []
        for body in bodies:
            start = time.perf_counter()
            await self.call("POST", path, body)
            seconds.append(time.perf_counter() - start)
        return seconds

    async def settle(self) -> float:
        """Wait until the server has run all jobs of the language model. Return the wait in seconds."""
        start = time.perf_counter()
        while True:
            counts = (await self.call("GET", "/v1/jobs"))["counts"]
            assert counts["failed"] == 0, counts
            if counts["waiting"] + counts["running"] == 0:
                return time.perf_counter() - start
            await asyncio.sleep(0.02)

    async def stored(self) -> list[str]:
        """Return the texts of all memories that are not superseded."""
        page = await self.call("GET", "/v1/sync/memories/0/pull?limit=1000")
        rows = [row for row in page["documents"] if not row["_deleted"]]
        return [row["text"] for row in rows if not row.get("supersededBy")]


@dataclass
class Figures:
    """Measurements by operation: the milliseconds of each call, and the ratio ours ÷ mem0 of each pair of batches.

    `notes` are lines about the stored memories and the time until they are extracted.
    """

    here: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    mem0: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    ratios: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    notes: list[str] = field(default_factory=list)


async def alternate(figures: Figures, what: str, texts: Sequence[str], here: Ask, mem0: Ask) -> None:
    for number, begin in enumerate(range(0, len(texts), PORTION)):
        some = texts[begin : begin + PORTION]
        pair = [(figures.here, here), (figures.mem0, mem0)]
        medians = {}
        for place, ask in pair[:: (-1) ** number]:
            times = [1000 * one for one in await ask(some)]
            place[what] += times
            medians[id(place)] = percentile(times, 0.5)
        figures.ratios[what].append(medians[id(figures.here)] / medians[id(figures.mem0)])


def statements(folder: Path) -> tuple[list[str], list[str]]:
    """Return two lists from the first conversation: the statements to store, in order, and questions about them."""
    sys.path.insert(0, str(folder))
    sets = importlib.import_module("sets")
    name, facts = next(iter(sets.locomo_facts().items()))
    texts = list(dict.fromkeys(text for _, text, _ in facts))[:NEW]
    given = sets.retrieval("locomo")
    questions = [text for q, text in given.queries.items() if given.scopes[q] == name]
    return [*texts, *texts[:: NEW // AGAIN]], questions[:QUESTIONS]


def measure(data: Path) -> Figures:
    texts, questions = statements(data)
    python = python_peer(ROOT, "mem0.txt")
    with endpoint() as address, tempfile.TemporaryDirectory() as name:
        folder, ours = Path(name), with_jobs(address)
        peers = [Mem0(python, folder / f"mem0-{number}", address) for number in range(2)]
        try:
            ours.start(folder, 2)
            return asyncio.run(_measure(ours, peers, texts, questions))
        finally:
            ours.stop()
            for peer in peers:
                peer.close()


async def _measure(
    ours: Ours, peers: Sequence[Mem0], texts: Sequence[str], questions: Sequence[str]
) -> Figures:
    figures, connection = Figures(), await Connection.open(ours.port)
    kept, read = (Here(ours, user, connection) for user in range(2))
    for one in (kept, read):
        await one.begin()
    peers[0].order(do="search", texts=questions[:3])  # warm up mem0; the next line warms up our server
    await kept.search(questions[:3])
    await alternate(figures, STATEMENT, texts, kept.remember, peers[0].remember)
    await alternate(figures, QUESTION, questions, kept.search, peers[0].search)
    figures.notes.append(
        _stored("Statements", await kept.stored(), peers[0].order(do="stored")["texts"], texts)
    )
    whole: list[float] = []

    async def read_whole(some: Sequence[str]) -> list[float]:
        seconds = await read.read(some)
        whole.append((sum(seconds) + await read.settle()) / len(some))
        return seconds

    await alternate(figures, TURN, texts, read_whole, peers[1].read)
    figures.notes.append(
        f"A turn here is read and remembered {1000 * (median(whole) or 0):.0f} ms after it was sent."
    )
    figures.notes.append(_stored("Turns", await read.stored(), peers[1].order(do="stored")["texts"], texts))
    connection.close()
    return figures


def _stored(what: str, here: Sequence[str], mem0: Sequence[str], said: Sequence[str]) -> str:
    """Return a line on the stored memories: their number, duplicates, and statements without a verbatim memory."""
    sides = [
        f"{len(rows)} memories, {len(rows) - len(set(rows))} of them twice, {len(set(said) - set(rows))} not as said"
        for rows in (here, mem0)
    ]
    return f"{what}: {len(said)} said, {len(set(said))} different. Here {sides[0]}; mem0 {sides[1]}."


def table(figures: Figures) -> str:
    lines = ["| p50 / p99, ms a call | here | mem0 | here ÷ it |", "|---|---:|---:|---:|"]
    for what in (STATEMENT, TURN, QUESTION):
        cells = [
            f"{percentile(times[what], 0.5):.1f} / {percentile(times[what], 0.99):.1f}"
            for times in (figures.here, figures.mem0)
        ]
        lines.append(f"| {what} | {' | '.join(cells)} | **{median(figures.ratios[what]):.2f}×** |")
    return "\n".join([*lines, "", *figures.notes])
