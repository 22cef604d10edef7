"""Fit the values that search and deduplication need for a model, on data that the package carries (`fit_data/`).

Cosines are distributed differently in each model, so a weight or threshold fitted to one model does not suit another.
The data was written for this purpose, in English, German, Spanish, French and Chinese: pairs of statements,
passages with questions, and turns of conversations with questions. The results are checked on data that is not used here
(bench/retrieval.py, bench/supersede.py, tests/unit/model/memory/held_out_pairs.json).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import resources
from math import log2
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from vademecum.engines.onnx.manifest import FittedValues, LanguageNdcg
from vademecum.model.memory.deduplication import may_be_duplicate
from vademecum.model.memory.indexable_text import split_text
from vademecum.model.text.bm25 import Postings, bm25_scores, top_k_with_ties
from vademecum.model.text.fusion import FUSION_DEPTH, boost_found_neighbors, fuse_hybrid
from vademecum.model.text.normalization import normalize
from vademecum.model.text.tokenize import tokenize_query

if TYPE_CHECKING:
    from vademecum.engines.onnx.embedder import Embedder

DATA_VERSION = 1
WEIGHTS = (0.0, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0)
RANKED = 10  # nDCG@10
BATCH = 8  # in texts; a larger batch of questions could time out on a slow machine
Progress = Callable[[int, int], None]
Hits = list[tuple[int, float]]
Vectors = NDArray[np.float32]


class Pair(msgspec.Struct, frozen=True):
    """Two statements. `kind` is "same" if they say the same; all other kinds must not be merged."""

    lang: str
    kind: str
    old: str
    new: str


class Question(msgspec.Struct, frozen=True):
    q: str
    gold: list[str]


class _Passage(msgspec.Struct, frozen=True):
    id: str
    text: str


class _Passages(msgspec.Struct, frozen=True):
    passages: list[_Passage]
    questions: list[Question]


class _Turn(msgspec.Struct, frozen=True):
    id: str
    user: str
    assistant: str


class _Session(msgspec.Struct, frozen=True):
    id: str
    turns: list[_Turn]


class _Turns(msgspec.Struct, frozen=True):
    sessions: list[_Session]
    questions: list[Question]


class RetrievalSet(msgspec.Struct, frozen=True):
    """Rows to search and questions. `embedded`: the text that is embedded for each row. `groups`: the session of each row."""

    ids: list[str]
    rows: list[str]
    embedded: list[str]
    questions: list[Question]
    groups: list[str] | None = None


def load_pairs() -> list[Pair]:
    """Return the pairs of statements."""
    return msgspec.json.decode(_read("pairs.json"), type=list[Pair])


def load_passages() -> dict[str, RetrievalSet]:
    """Return the passages and questions by language."""
    given = msgspec.json.decode(_read("passages.json"), type=dict[str, _Passages])
    sets = {}
    for language, one in given.items():
        texts = [normalize(passage.text) for passage in one.passages]
        sets[language] = RetrievalSet([passage.id for passage in one.passages], texts, texts, one.questions)
    return sets


def load_turns() -> RetrievalSet:
    """Return the turns of the conversations, split and embedded as the memory index does."""
    given = msgspec.json.decode(_read("turns.json"), type=_Turns)
    ids, rows, embedded, groups = [], [], [], []
    for session in given.sessions:
        previous = ""
        for turn in session.turns:
            text = normalize(f"{turn.user}\n\n{turn.assistant}")
            for piece in split_text(text, previous):
                ids.append(turn.id)
                rows.append(piece.text)
                embedded.append(piece.embedded)
                groups.append(session.id)
            previous = text
    return RetrievalSet(ids, rows, embedded, given.questions, groups)


def _read(name: str) -> bytes:
    return (resources.files(__package__) / "fit_data" / name).read_bytes()


async def fit(embedder: Embedder, progress: Progress | None = None) -> FittedValues:
    """Fit the values of a model.

    Fitting takes about as long as embedding 2,700 short texts. `progress(done, total)` counts texts.
    """
    pairs, passages, turns = load_pairs(), load_passages(), load_turns()
    haystack = _with_distractors(passages["en"], turns, pairs)
    vectors = _Vectors(embedder, progress)
    await vectors.embed(
        passages=[
            *(text for pair in pairs for text in (pair.old, pair.new)),
            *haystack.embedded,
            *(text for one in passages.values() for text in one.embedded),
        ],
        questions=[q.q for one in (*passages.values(), turns) for q in one.questions],
    )
    scores = {language: _scores(one, vectors) for language, one in passages.items()}
    chunk_set = msgspec.structs.replace(haystack, questions=passages["en"].questions, groups=None)
    chunk_scores = _scores(chunk_set, vectors)
    turn_scores = _scores(msgspec.structs.replace(haystack, questions=turns.questions), vectors)
    scored = [(vectors.cosine(pair.old, pair.new), pair) for pair in pairs]
    threshold = fit_threshold(scored)
    return FittedValues(
        fitted_on=f"fit data {DATA_VERSION}: {len(pairs)} pairs, {len(haystack.rows)} rows, "
        f"{sum(len(one.questions) for one in (*passages.values(), turns))} questions",
        same_memory=threshold,
        chunk_weight=chunk_scores.best_weight(),
        turn_weight=turn_scores.best_weight(),
        languages=tuple(language for language, one in scores.items() if one.meaning >= 1.05 * one.words),
        chunk_ndcg=chunk_scores.at(chunk_scores.best_weight()),
        turn_ndcg=turn_scores.at(turn_scores.best_weight()),
        chunk_ndcg_words=chunk_scores.at(0),
        turn_ndcg_words=turn_scores.at(0),
        same_found=_share_found(
            [(cosine, pair) for cosine, pair in scored if pair.kind == "same"], threshold
        ),
        others_found=_share_found(
            [(cosine, pair) for cosine, pair in scored if pair.kind != "same"], threshold
        ),
        language_ndcg=tuple(
            LanguageNdcg(language, one.words, one.meaning) for language, one in scores.items()
        ),
    )


def fit_threshold(scored: Sequence[tuple[float, Pair]]) -> float | None:
    """Return the lowest cosine, in steps of 0.01, at which no pair of another meaning is merged.

    Two thirds of the English pairs of another meaning lie below it even without the guards of `deduplication`, because
    no list of guards is complete. Return None if there is no such cosine below 1: the model does not separate repetitions
    from contradictions.
    """
    others = [(cosine, pair) for cosine, pair in scored if pair.kind != "same"]
    floor = float(np.quantile([cosine for cosine, pair in others if pair.lang == "en"], 2 / 3))
    for hundredths in range(int(np.ceil(floor * 100)), 100):
        if not merged_pairs(others, hundredths / 100):
            return hundredths / 100
    return None


def _share_found(scored: Iterable[tuple[float, Pair]], threshold: float | None) -> float:
    """Return the share of the English pairs whose cosine reaches the threshold."""
    cosines = [cosine for cosine, pair in scored if pair.lang == "en"]
    return 0.0 if threshold is None else round(sum(c >= threshold for c in cosines) / len(cosines), 3)


def merged_pairs(scored: Iterable[tuple[float, Pair]], threshold: float) -> list[Pair]:
    """Return the pairs that deduplication would merge at this threshold."""
    return [pair for cosine, pair in scored if cosine >= threshold and may_be_duplicate(pair.new, pair.old)]


class _Scores(msgspec.Struct, frozen=True):
    """The mean nDCG@10 of a set: of keyword search, of vector search, and of hybrid search by weight."""

    words: float
    meaning: float
    by_weight: Mapping[float, float]

    def best_weight(self) -> float:
        """Return the lowest weight whose score is within 2 % of the best, because words fail less often in large sets."""
        best = max(self.by_weight.values())
        return min(weight for weight, score in self.by_weight.items() if score >= 0.98 * best)

    def at(self, weight: float) -> float:
        """Return the score of a weight, rounded."""
        return round(self.by_weight[weight], 3)


class _Vectors:
    """The vectors of all texts, each embedded once."""

    def __init__(self, embedder: Embedder, progress: Progress | None) -> None:
        self._embedder = embedder
        self._progress = progress
        self._passages: dict[str, Vectors] = {}
        self._questions: dict[str, Vectors] = {}

    async def embed(self, passages: Iterable[str], questions: Iterable[str]) -> None:
        """Embed passages and questions in small batches, so that other work of the embedder is not delayed."""
        pending = list(dict.fromkeys(passages)), list(dict.fromkeys(questions))
        total = sum(map(len, pending))
        for start in range(0, len(pending[0]), BATCH):
            batch = pending[0][start : start + BATCH]
            self._passages |= zip(batch, await self._embedder.embed_passages(batch), strict=True)
            self._report(total)
        for start in range(0, len(pending[1]), BATCH):
            batch = pending[1][start : start + BATCH]
            found = await asyncio.gather(*map(self._embedder.embed_query, batch))
            self._questions |= zip(batch, found, strict=True)
            self._report(total)

    def _report(self, total: int) -> None:
        if self._progress is not None:
            self._progress(len(self._passages) + len(self._questions), total)

    def cosine(self, one: str, other: str) -> float:
        return float(self._passages[one] @ self._passages[other])

    def matrix(self, texts: Iterable[str]) -> Vectors:
        return np.stack([self._passages[text] for text in texts])

    def question(self, text: str) -> Vectors:
        return self._questions[text]


def _with_distractors(passages: RetrievalSet, turns: RetrievalSet, pairs: Iterable[Pair]) -> RetrievalSet:
    """Return one set of all English rows.

    In a small set, search by meaning alone would look better than in a real account.
    """
    statements = list(dict.fromkeys(normalize(t) for p in pairs if p.lang == "en" for t in (p.old, p.new)))
    ids = [*passages.ids, *turns.ids, *(f"statement {n}" for n in range(len(statements)))]
    assert turns.groups is not None
    groups = [*passages.ids, *turns.groups, *ids[len(passages.ids) + len(turns.ids) :]]
    embedded = [*passages.embedded, *turns.embedded, *statements]
    return RetrievalSet(ids, [*passages.rows, *turns.rows, *statements], embedded, [], groups)


def _scores(one: RetrievalSet, vectors: _Vectors) -> _Scores:
    matrix = vectors.matrix(one.embedded)
    postings, every_row = Postings.of_texts(one.rows), np.ones(len(one.rows), np.bool_)
    sessions = _rows_by_group(one.groups) if one.groups is not None else []
    words, meaning = [], []
    by_weight: dict[float, list[float]] = {weight: [] for weight in WEIGHTS}
    for question in one.questions:
        (word_scores,) = bm25_scores([(postings, every_row)], tokenize_query(question.q))
        vector_scores = (matrix @ vectors.question(question.q)).astype(np.float64)
        found = _best(word_scores, 0.0), _best(vector_scores, -np.inf)
        gold = set(question.gold)
        words.append(_ndcg([one.ids[row] for row, _ in found[0]], gold))
        meaning.append(_ndcg([one.ids[row] for row, _ in found[1]], gold))
        for weight, results in by_weight.items():
            fused = dict(fuse_hybrid(*found, FUSION_DEPTH, weight))
            boosted = boost_found_neighbors(fused, sessions) if sessions else fused
            ranked = sorted(boosted, key=lambda row: -boosted[row])
            results.append(_ndcg([one.ids[row] for row in ranked], gold))
    means = {weight: float(np.mean(results)) for weight, results in by_weight.items()}
    return _Scores(round(float(np.mean(words)), 3), round(float(np.mean(meaning)), 3), means)


def _rows_by_group(groups: Sequence[str]) -> list[list[int]]:
    rows: dict[str, list[int]] = {}
    for row, group in enumerate(groups):
        rows.setdefault(group, []).append(row)
    return list(rows.values())


def _best(scores: NDArray[np.float64], floor: float) -> Hits:
    """Return the best rows above the floor with their scores, best first."""
    rows = top_k_with_ties(scores, FUSION_DEPTH, floor)
    return sorted(((int(r), float(scores[r])) for r in rows), key=lambda hit: (-round(hit[1], 6), hit[0]))


def _ndcg(found: Iterable[str], gold: set[str]) -> float:
    """Return nDCG@10 with binary relevance (Jarvelin and Kekalainen 2002). A repeated id does not count again."""
    ranked = list(dict.fromkeys(found))[:RANKED]
    gain = sum(1 / log2(rank + 2) for rank, id in enumerate(ranked) if id in gold)
    return gain / sum(1 / log2(rank + 2) for rank in range(min(RANKED, len(gold))))
