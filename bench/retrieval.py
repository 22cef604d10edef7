"""Measure retrieval quality: our ranking, chunking and model on sets of questions with known answers.

    python bench/retrieval.py --data DIR [--model FOLDER] [--sweep]

DIR contains `sets.py`, which is not part of this repository. Its `retrieval(name)` returns the sets `xquad` (find the
paragraph), `locomo` (find the turns of a conversation that answer the question) and `locomo_session` (find their
sessions). The table shows the results on half of the conversations and half of the articles. `--sweep` shows the results
of several weights on the other half. The weights that the product uses were fitted on other data (see
services/models/fit_model.py). Vectors are cached in the temporary folder by model and text, so that only the first run
is slow.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import importlib.util
import random
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from vademecum.engines.onnx.embedder import QUERY_CAPACITY, Embedder
from vademecum.model.documents.chunking import chunk
from vademecum.model.text import fusion
from vademecum.model.text.bm25 import Postings, bm25_scores, top_k_with_ties
from vademecum.model.text.tokenize import tokenize_query

ROOT = Path(__file__).resolve().parent.parent
SEED = 7
ARTICLE = 5  # number of consecutive paragraphs of XQuAD that form an article
BATCH = 256
KS = {"xquad": 1, "locomo": 10, "locomo_session": 5}
MODES = ("words", "meaning", "hybrid")


@dataclass(frozen=True)
class Text:
    """A part of a document, in the form that the chunker expects."""

    text: str
    page: int | None = None
    section: str | None = None


@dataclass(frozen=True)
class Asked:
    """A scope with its questions. `document` and `group` (the session) have one entry for each indexed row."""

    rows: list[str]
    document: np.ndarray
    group: np.ndarray | None
    names: list[str]
    questions: list[tuple[str, str]]
    fitting: set[str]


def load_sets(folder: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("sets", folder / "sets.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["sets"] = module
    spec.loader.exec_module(module)
    return module


def scopes(given: Any) -> list[Asked]:
    """Return one `Asked` per scope.

    LoCoMo turns are indexed whole and grouped by session. All other texts are chunked.
    """
    names = sorted(set(given.doc_scope.values())) or [None]
    halves = half([str(name) for name in names])
    asked = []
    for scope in names:
        documents = [id for id in given.corpus if given.doc_scope.get(id) == scope]
        questions = [(q, text) for q, text in given.queries.items() if given.scopes.get(q) == scope]
        turns = given.name == "locomo"
        pieces = [[given.corpus[id]] if turns else cut(given.corpus[id]) for id in documents]
        sessions = [id.rsplit(":", 1)[0] for id in documents]
        fitting = {q for q, _ in questions if str(scope) in halves} if scope else by_article(given, documents)
        asked.append(
            Asked(
                rows=[row for some in pieces for row in some],
                document=np.repeat(np.arange(len(documents)), [len(some) for some in pieces]),
                group=np.unique(sessions, return_inverse=True)[1] if turns else None,
                names=documents,
                questions=questions,
                fitting=fitting,
            )
        )
    return asked


def half(names: Sequence[str]) -> set[str]:
    return set(random.Random(SEED).sample(list(names), len(names) // 2))


def by_article(given: Any, documents: Sequence[str]) -> set[str]:
    """Return the ids of the questions about a random half of the articles."""
    article = {id: str(at // ARTICLE) for at, id in enumerate(documents)}
    chosen = half(list(dict.fromkeys(article.values())))
    return {q for q in given.queries if article[next(iter(given.qrels[q]))] in chosen}


def cut(text: str) -> list[str]:
    return [piece.text for piece in chunk([Text(text)])] or [text]


def embed(embedder: Embedder, texts: Sequence[str], *, queries: bool) -> dict[str, np.ndarray]:
    """Map each text to its vector, from the cache file of earlier runs where possible."""
    folder = Path(tempfile.gettempdir()) / "vademecum-retrieval"
    folder.mkdir(exist_ok=True)
    file = folder / f"{embedder.model[:16]}.npz"
    known: dict[str, np.ndarray] = {}
    if file.exists():
        with np.load(file) as saved:
            known = dict(zip(saved["keys"].tolist(), saved["vectors"], strict=True))
    kind = "query" if queries else "passages"
    key_of = {text: hashlib.sha256(f"{kind}\0{text}".encode()).hexdigest() for text in texts}
    missing = [text for text, key in key_of.items() if key not in known]
    for begin in range(0, len(missing), BATCH):
        some = missing[begin : begin + BATCH]
        print(f"{len(missing) - begin} texts to embed", file=sys.stderr, flush=True)
        made = asyncio.run(_embedded(embedder, some, queries))
        known.update({key_of[text]: vector for text, vector in zip(some, made, strict=True)})
    if missing:
        np.savez(file, keys=np.array(list(known)), vectors=np.stack(list(known.values())))
    return {text: known[key] for text, key in key_of.items()}


async def _embedded(embedder: Embedder, texts: Sequence[str], queries: bool) -> Iterable[np.ndarray]:
    if not queries:
        return await embedder.embed_passages(texts)
    # In parts, because the embedder rejects queries that its queue cannot hold.
    parts = [texts[begin : begin + QUERY_CAPACITY] for begin in range(0, len(texts), QUERY_CAPACITY)]
    return [vector for part in parts for vector in await asyncio.gather(*map(embedder.embed_query, part))]


Hits = list[tuple[int, float]]


def arms(asked: Asked, embedder: Embedder) -> dict[str, tuple[Hits, Hits]]:
    """Map each question to two lists, the hits of keyword search and those of vector search, the best hit first."""
    vectors = embed(embedder, asked.rows, queries=False)
    matrix = np.stack([vectors[row] for row in asked.rows])
    vectors = embed(embedder, [text for _, text in asked.questions], queries=True)
    postings, everything = Postings.of_texts(asked.rows), np.ones(len(asked.rows), np.bool_)
    found = {}
    for question, text in asked.questions:
        (words,) = bm25_scores([(postings, everything)], tokenize_query(text))
        meaning = (matrix @ vectors[text]).astype(np.float64)
        found[question] = (top(words, 0.0), top(meaning, -np.inf))
    return found


def top(scores: np.ndarray, floor: float) -> Hits:
    rows = top_k_with_ties(scores, fusion.FUSION_DEPTH, floor)
    return sorted(
        ((int(row), float(scores[row])) for row in rows), key=lambda hit: (-round(hit[1], 6), hit[0])
    )


def ranked(words: Hits, meaning: Hits, mode: str, weight: float, asked: Asked) -> list[int]:
    """Return the rows, best first. Turns are boosted by their neighbors, as the product does."""
    if mode == "hybrid":
        words, meaning = words[: fusion.FUSION_DEPTH], meaning[: fusion.FUSION_DEPTH]
        hits = fusion.fuse_hybrid(words, meaning, 2 * fusion.FUSION_DEPTH, weight)
    else:
        hits = fusion.rescale(words, zero=0.0) if mode == "words" else fusion.rescale(meaning)
    if asked.group is None:
        return [row for row, _ in hits]
    sessions = [np.flatnonzero(asked.group == group).tolist() for group in np.unique(asked.group)]
    boosted = fusion.boost_found_neighbors(dict(hits), sessions)
    return sorted(boosted, key=lambda row: -boosted[row])


def recalls(
    given: Any, found: Sequence[tuple[Asked, Any]], mode: str, weight: float, *, fitting: bool
) -> tuple[list[float], int]:
    """Return two values for one half: the recall of each question, and the number of results outside the scope."""
    values, leaks = [], 0
    for asked, arms_of in found:
        for question in (q for q, _ in asked.questions if (q in asked.fitting) == fitting):
            rows = ranked(*arms_of[question], mode, weight, asked)
            shown = list(dict.fromkeys(asked.names[asked.document[row]] for row in rows))[: KS[given.name]]
            right = given.qrels[question]
            values.append(len(right.keys() & set(shown)) / len(right))
            leaks += sum(given.doc_scope.get(id) != given.scopes.get(question) for id in shown)
    return values, leaks


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean of the values and the bounds of its 95 % bootstrap confidence interval."""
    drawn = np.random.default_rng(SEED).choice(np.array(values), (1000, len(values))).mean(axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(np.mean(values)), float(low), float(high)


def weight_of(name: str, embedder: Embedder) -> float:
    return embedder.turn_weight if name == "locomo" else embedder.chunk_weight


def table(given: Any, found: Sequence[tuple[Asked, Any]], weight: float) -> str:
    cells, leaks = [], 0
    for mode in MODES:
        values, leaked = recalls(given, found, mode, weight, fitting=False)
        leaks += leaked
        cells.append("{:.3f} ({:.3f}-{:.3f})".format(*interval(values)))
    return f"| {given.name}, recall@{KS[given.name]} | {' | '.join(cells)} | {leaks} |"


def sweep(given: Any, found: Sequence[tuple[Asked, Any]]) -> None:
    """Print the mean recall for several vector weights on the other half. The keyword weight is always 1."""
    for weight in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0):
        values, _ = recalls(given, found, "hybrid", weight, fitting=True)
        print(f"{given.name}: meaning {weight}: {np.mean(values):.4f}", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", type=Path, default=ROOT / ".cache" / "models" / "all-minilm-l6-v2")
    parser.add_argument("--sweep", action="store_true")
    options = parser.parse_args()
    sets, embedder = load_sets(options.data), Embedder(options.model)
    print(f"| {embedder.manifest.id} | words | meaning | hybrid | leaks |\n|---|---|---|---|---|", flush=True)
    for name in KS:
        given = sets.retrieval(name)
        found = [(asked, arms(asked, embedder)) for asked in scopes(given)]
        if options.sweep:
            sweep(given, found)
        print(table(given, found, weight_of(name, embedder)), flush=True)
    embedder.close()


if __name__ == "__main__":
    main()
