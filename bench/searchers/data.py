"""Generate one user's library from a seed: chunks of 100 documents with vectors near the topics of their document.

Real embeddings form clusters, and the chunks of a document are near each other. Uniformly random vectors would make
approximate indexes look worse, and filters easier, than they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

DIMS = 384
DOCUMENTS = 100
TOPICS = 200
TOPICS_OF_A_DOCUMENT = 5
NOISE = 0.8
VOCABULARY = 20_000
WORDS = 120
K = 10
TIE = 1e-6  # cosines with a smaller difference are ties, because float32 is not more precise

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Library:
    """A generated library. Row r is chunk `r % per_document` of document `r // per_document`."""

    vectors: Vectors
    texts: list[str]
    questions: Vectors
    asked: list[str]

    @property
    def per_document(self) -> int:
        return len(self.vectors) // DOCUMENTS

    def save(self, folder: Path) -> None:
        np.save(folder / "vectors.npy", self.vectors)
        np.save(folder / "questions.npy", self.questions)
        (folder / "texts.txt").write_text("\n".join(self.texts))
        (folder / "asked.txt").write_text("\n".join(self.asked))

    @classmethod
    def load(cls, folder: Path) -> Library:
        texts = (folder / "texts.txt").read_text().split("\n")
        asked = (folder / "asked.txt").read_text().split("\n")
        return cls(np.load(folder / "vectors.npy"), texts, np.load(folder / "questions.npy"), asked)


def make(rows: int, questions: int, seed: int) -> Library:
    """Generate a library. A question has the vector of a chunk with some noise, and three words of the chunk."""
    rng = np.random.default_rng(seed)
    per_document = rows // DOCUMENTS
    topics = _directions(rng, TOPICS)
    own = rng.integers(0, TOPICS, (DOCUMENTS, TOPICS_OF_A_DOCUMENT))
    document = np.repeat(np.arange(DOCUMENTS), per_document)
    topic = own[document, rng.integers(0, TOPICS_OF_A_DOCUMENT, rows)]
    vectors = _unit(topics[topic] + NOISE * _directions(rng, rows))
    words = _words(rng, rows)
    from_rows = rng.choice(rows, questions, replace=False)
    near = _unit(vectors[from_rows] + 0.5 * _directions(rng, questions))
    asked = [" ".join(rng.choice(words[row], 3)) for row in from_rows]
    return Library(vectors, [" ".join(some) for some in words], near, asked)


def scope(active: int, seed: int) -> list[int]:
    """Return `active` randomly chosen documents."""
    return sorted(np.random.default_rng(seed).choice(DOCUMENTS, active, replace=False).tolist())


@dataclass(frozen=True)
class Truth:
    """The cosines of every question with every row in float64. Rows outside the scope have minus infinity."""

    scores: NDArray[np.float64]

    @classmethod
    def of(cls, library: Library, documents: Sequence[int]) -> Truth:
        scores = library.questions.astype(np.float64) @ library.vectors.T.astype(np.float64)
        scope = np.repeat(np.isin(np.arange(DOCUMENTS), documents), library.per_document)
        return cls(np.where(scope, scores, -np.inf))

    def recall(self, found: Sequence[Sequence[int]]) -> float:
        """Return the recall of the K best rows, over all questions. Rows that tie with the K-th best are correct."""
        right = 0
        for scores, rows in zip(self.scores, found, strict=False):
            last = np.partition(scores, -K)[-K]
            right += int((scores[list(set(rows))] >= last - TIE).sum())
        return right / (K * len(found))


def _directions(rng: np.random.Generator, count: int) -> Vectors:
    return _unit(rng.standard_normal((count, DIMS), dtype=np.float32))


def _unit(vectors: Vectors) -> Vectors:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


def _words(rng: np.random.Generator, rows: int) -> list[list[str]]:
    """Generate the words of each row. A few words are frequent and most are rare, as in natural language."""
    names = [f"word{number}" for number in range(VOCABULARY)]
    drawn = rng.zipf(1.3, (rows, WORDS)) % VOCABULARY
    return [[names[at] for at in row] for row in drawn.tolist()]
