"""Compare search in one user's long memory with plain LanceDB, using the same vectors and the same filter.

The turns belong to projects. Questions are asked in one project, which has a tenth of all turns, and in all projects.
Our time covers the whole call: embedding the question, fusing keyword and vector search, reading each hit from the
records, and weighting by age. LanceDB's time also includes embedding the question with the same model. LanceDB is
measured twice: with vector search only, and with its default hybrid search. The vectors of the turns are
random, generated from a seed and clustered around a few topics, because embedding all turns would take half an hour.

hot: the index has been searched since the server started. cold: the first question after a start. In both cases, the
model is loaded and all files are in the page cache.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from client import request
from measure import median, percentile
from memories.house import MODEL, ROOT
from rows import SESSION_FIELDS, TIME, Row, sync_path
from searchers import data
from targets.base import must
from targets.ours import Ours
from targets.wire import push_body
from vademecum.app import open_services
from vademecum.engines.lance import Block, Chunk
from vademecum.engines.onnx.embedder import Embedder
from vademecum.model.memory.indexable_text import split_text
from vademecum.model.memory.scope import Everything, InProject, MemoryScope
from vademecum.model.schema.collections import Registry
from vademecum.services.runtime.composition import Services
from vademecum.settings import Settings

PROJECTS = 10
SESSIONS = 100
WORDS = 60  # number of words in a turn
BATCH = 100
PORTION = 1000  # number of rows per write to an index
HOT = 50  # number of hot questions per round
SCOPES: dict[str, MemoryScope] = {"one project of ten": InProject("project-3"), "everything": Everything()}
FILTERS = {"one project of ten": "project = 'project-3'", "everything": None}
PEERS = ("meaning", "hybrid")

Ask = Callable[[str, str], Awaitable[int]]  # maps a question and a scope's name to the number of hits


@dataclass(frozen=True)
class Turns:
    """The generated turns. Turn n belongs to session n % SESSIONS. Session s belongs to project s % PROJECTS."""

    texts: list[str]
    vectors: data.Vectors
    asked: list[str]

    @classmethod
    def make(cls, rows: int) -> Turns:
        library = data.make(rows, 1000, seed=rows)
        texts = [" ".join(text.split()[:WORDS]) for text in library.texts]
        asked = [" ".join(text.split()[:3]) for text in texts[:: max(1, rows // 1000)]]
        return cls(texts, library.vectors, asked)

    @staticmethod
    def name(number: int) -> str:
        return f"turn-{number:06d}"

    @staticmethod
    def project(number: int) -> str:
        return f"project-{number % SESSIONS % PROJECTS}"


def _row(row_id: str, /, **fields: Any) -> Row:
    return {"id": row_id, "createdAt": TIME, "updatedAt": TIME, "_deleted": False, **fields}


def load(folder: Path, turns: Turns) -> None:
    """Push the turns, as a device does, to a server without a model, so that they are stored but not indexed."""
    ours = Ours(ROOT)
    ours.start(folder, 1)
    try:
        asyncio.run(_push(ours, turns))
    finally:
        ours.stop()


async def _push(ours: Ours, turns: Turns) -> None:
    projects = [_row(f"project-{at}", name=f"Project {at}", documentIds=[]) for at in range(PROJECTS)]
    sessions = [
        _row(
            f"session-{at}", title="", mode="analysis", **SESSION_FIELDS, projectId=f"project-{at % PROJECTS}"
        )
        for at in range(SESSIONS)
    ]
    said = {"aiResponse": "", "citations": [], "status": "done"}
    episodes = [
        _row(turns.name(at), sessionId=f"session-{at % SESSIONS}", userMessage=text, **said)
        for at, text in enumerate(turns.texts)
    ]
    for collection, rows in {"projects": projects, "sessions": sessions, "episodes": episodes}.items():
        batches = [push_body(rows[at : at + BATCH]) for at in range(0, len(rows), BATCH)]
        path = f"{sync_path(collection)}/push"
        for answer in await must(
            ours.port, *(request("POST", path, ours.headers(0), body) for body in batches)
        ):
            assert answer.body == b"[]", answer.body[:500]


async def index(services: Services, user_id: str, turns: Turns) -> None:
    """Write the index with the generated vectors. Background jobs would compute vectors from the records."""
    async with services.users.open(user_id) as store:
        at = store.epoch, store.seq
    for begin in range(0, len(turns.texts), PORTION):
        blocks = [_block(turns, number) for number in range(begin, min(begin + PORTION, len(turns.texts)))]
        await services.recall.indexes.write(user_id, lambda one, some=blocks: one.apply(some, [], [], at))
        await services.recall.indexes.write(user_id, lambda one: one.optimise())


def _block(turns: Turns, number: int) -> Block:
    (piece,) = split_text(turns.texts[number])
    key = f"episodes/{turns.name(number)}"
    return Block(key, key, 0, [Chunk(0, None, None, piece.text)], turns.vectors[number : number + 1])


def build_lance(folder: Path, turns: Turns) -> None:
    import lancedb
    import pyarrow as pa

    rows = range(len(turns.texts))
    columns = {
        "id": pa.array([turns.name(row) for row in rows]),
        "project": pa.array([turns.project(row) for row in rows]),
        "text": pa.array(turns.texts),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(turns.vectors.ravel()), data.DIMS),
    }
    table = lancedb.connect(folder).create_table("turns", pa.table(columns))
    table.create_fts_index("text", stem=False, remove_stop_words=False)


class Lance:
    """LanceDB, used as its own guide shows."""

    def __init__(self, folder: Path, embedder: Embedder) -> None:
        self._folder = folder
        self._embedder = embedder
        self.open()

    def open(self) -> None:
        import lancedb

        self._table = lancedb.connect(self._folder).open_table("turns")

    async def meaning(self, question: str, scope: str) -> int:
        vector = await self._embedder.embed_query(question)
        return await asyncio.to_thread(self._read, self._table.search(vector).distance_type("cosine"), scope)

    async def hybrid(self, question: str, scope: str) -> int:
        vector = await self._embedder.embed_query(question)
        query = self._table.search(query_type="hybrid").vector(vector).text(question)
        return await asyncio.to_thread(self._read, query, scope)

    def _read(self, query: Any, scope: str) -> int:
        chosen = FILTERS[scope]
        if chosen is not None:
            query = query.where(chosen, prefilter=True)
        return len(query.limit(data.K).to_arrow())


@dataclass
class Figures:
    """The milliseconds of each question and the ratio ours ÷ peer of each round, by system, hot or cold, and scope."""

    times: dict[tuple[str, str, str], list[float]]
    ratios: dict[tuple[str, str, str], list[float]]
    rows: int


def measure(rows: int, rounds: int) -> Figures:
    folder = Path(tempfile.mkdtemp(prefix="vademecum-bench-recall-"))
    try:
        turns = Turns.make(rows)
        load(folder, turns)
        build_lance(folder / "lance", turns)
        return asyncio.run(_measure(folder, turns, rounds))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _measure(folder: Path, turns: Turns, rounds: int) -> Figures:
    figures = Figures(defaultdict(list), defaultdict(list), len(turns.texts))
    settings = Settings(data=folder / "data", models=MODEL.parent)
    user_id = next((folder / "data" / "users").glob("*/*")).name
    async with open_services(settings, Registry()) as services:
        await index(services, user_id, turns)
    questions = iter(turns.asked * 10)
    for number in range(rounds):
        async with open_services(settings, Registry()) as services:
            embedder = await services.inference.get()
            assert embedder is not None
            await embedder.embed_query("warm")
            lance = Lance(folder / "lance", embedder)
            asks = {"ours": _ours(services, user_id), "meaning": lance.meaning, "hybrid": lance.hybrid}
            for scope in SCOPES if number % 2 == 0 else reversed(SCOPES):
                await _round(figures, asks, lance, scope, questions, number)
    return figures


def _ours(services: Services, user_id: str) -> Ask:
    async def ask(question: str, scope: str) -> int:
        found = await services.recall.search(
            user_id, SCOPES[scope], question, frozenset({"episodes"}), data.K
        )
        return len(found)

    return ask


async def _round(
    figures: Figures, asks: dict[str, Ask], lance: Lance, scope: str, questions: Any, number: int
) -> None:
    """Run one round in a scope. Cold questions are the first since our server started or LanceDB was reopened."""
    first = scope == list(SCOPES)[number % 2]
    for kind in ("cold", "hot") if first else ("hot",):
        medians = {}
        for who in list(asks)[:: (-1) ** number]:
            if kind == "cold" and who != "ours":
                lance.open()
            some = [next(questions) for _ in range(1 if kind == "cold" else HOT)]
            times = await _times(asks[who], some, scope)
            figures.times[who, kind, scope] += times
            medians[who] = percentile(times, 0.5)
        for peer in PEERS:
            figures.ratios[peer, kind, scope].append(medians["ours"] / medians[peer])


async def _times(ask: Ask, questions: Sequence[str], scope: str) -> list[float]:
    times = []
    for question in questions:
        start = time.perf_counter()
        found = await ask(question, scope)
        times.append((time.perf_counter() - start) * 1000)
        assert found == data.K, f"{found} found"
    return times


def table(figures: Figures) -> str:
    heads = "hot, p50 ms | here ÷ it | cold, p50 ms | here ÷ it"
    lines = [f"| {figures.rows:,} turns | {heads} |", "|---|---:|---:|---:|---:|"]
    names = {"ours": "here", "meaning": "LanceDB, by meaning", "hybrid": "LanceDB, by both"}
    for scope in SCOPES:
        for who, name in names.items():
            cells = []
            for kind in ("hot", "cold"):
                cells.append(f"{percentile(figures.times[who, kind, scope], 0.5):.1f}")
                ratio = median(figures.ratios[who, kind, scope]) if who in PEERS else None
                cells.append("" if ratio is None else f"**{ratio:.2f}×**")
            lines.append(f"| {scope}: {name} | {' | '.join(cells)} |")
    return "\n".join(lines)
