"""Compute BM25 scores over postings: score rows by the terms that they share with a query.

The browser mirrors the formula (`web/src/core/text/bm25.ts`; shared cases: tests/conformance/ranking.json).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vademecum.model.text.tokenize import tokenize

# The usual constants of BM25: `K1` for the saturation of repeated terms, `B` for the normalization by length.
K1 = 1.2
B = 0.75
# Scores are rounded to this many digits before they are compared. The last bits of a score depend on the order of
# additions in a matrix product and must not decide the ranking.
SCORE_DIGITS = 6

# A term of a chunk: its 64-bit hash, which avoids a stored vocabulary, and its number of occurrences.
TERM_DTYPE = np.dtype([("term", "<u8"), ("count", "<u2")])


@lru_cache(maxsize=1 << 15)
def hash_term(term: str) -> int:
    """Return the 64-bit key of a term. A collision within 500,000 terms has a probability of 1 in 10^8."""
    return int.from_bytes(blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def count_terms(text: str) -> NDArray[Any]:
    """Return the terms of a text with their counts, as an array of TERM_DTYPE."""
    counts = Counter(tokenize(text))
    entries = np.empty(len(counts), TERM_DTYPE)
    entries["term"] = np.fromiter(map(hash_term, counts), np.uint64, len(counts))
    entries["count"] = np.minimum(np.fromiter(counts.values(), np.int64, len(counts)), 0xFFFF)
    return entries


@dataclass(frozen=True, slots=True)
class Postings:
    """An inverted index: the rows that contain the term `keys[i]` are `rows[starts[i]:starts[i + 1]]`."""

    keys: NDArray[np.uint64]
    starts: NDArray[np.int64]
    rows: NDArray[np.int32]
    counts: NDArray[np.uint16]
    lengths: NDArray[np.float64]

    @classmethod
    def build(
        cls, entries: NDArray[Any], row_of: NDArray[np.int32], lengths: NDArray[np.float64]
    ) -> "Postings":
        """Build postings from TERM_DTYPE entries, the row of each entry, and each row's length in terms."""
        keys = np.ascontiguousarray(entries["term"])
        order = _sort_order(keys)
        sorted_keys = keys[order]
        starts = np.flatnonzero(np.append(True, sorted_keys[1:] != sorted_keys[:-1])[: len(entries)])
        return cls(
            keys=sorted_keys[starts],
            starts=np.append(starts, len(entries)).astype(np.int64),
            rows=row_of[order].astype(np.int32),
            counts=np.ascontiguousarray(entries["count"])[order],
            lengths=lengths,
        )

    @classmethod
    def of_texts(cls, texts: Sequence[str]) -> "Postings":
        """Build postings from texts, one per row."""
        counted = [count_terms(text) for text in texts]
        entries = np.concatenate(counted) if counted else np.empty(0, dtype=TERM_DTYPE)
        row_of = np.repeat(np.arange(len(texts), dtype=np.int32), [len(terms) for terms in counted])
        return cls.build(entries, row_of, row_lengths(entries, row_of, len(texts)))

    def find(self, key: int) -> tuple[NDArray[np.int32], NDArray[np.uint16]]:
        """Return two arrays: the rows that contain a term, and how often each row contains it."""
        at = int(np.searchsorted(self.keys, np.uint64(key)))
        if at == len(self.keys) or int(self.keys[at]) != key:
            return self.rows[:0], self.counts[:0]
        span = slice(int(self.starts[at]), int(self.starts[at + 1]))
        return self.rows[span], self.counts[span]

    def entries(self) -> tuple[NDArray[Any], NDArray[np.int32]]:
        """Return the postings as arguments for `build`: entries, and the row of each entry. Used to merge postings."""
        entries = np.empty(len(self.rows), dtype=TERM_DTYPE)
        entries["term"] = np.repeat(self.keys, np.diff(self.starts))
        entries["count"] = self.counts
        return entries, self.rows

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in (self.keys, self.starts, self.rows, self.counts, self.lengths))


def _sort_order(keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the stable order that sorts the keys.

    Two radix passes over the upper 32 bits take a third of the time of a comparison sort. NumPy uses a radix sort only
    for 16-bit numbers. The keys are hashes, so two different keys rarely have the same upper 32 bits.
    """
    order = np.argsort((keys >> np.uint64(32)).astype(np.uint16), kind="stable")
    order = order[np.argsort((keys >> np.uint64(48)).astype(np.uint16)[order], kind="stable")]
    sorted_keys = keys[order]
    is_sorted = bool((sorted_keys[1:] >= sorted_keys[:-1]).all())
    return order if is_sorted else np.argsort(keys, kind="stable")


def row_lengths(entries: NDArray[Any], row_of: NDArray[np.int32], rows: int) -> NDArray[np.float64]:
    """Return the number of terms of each row, counting repeats."""
    return np.bincount(row_of, weights=entries["count"], minlength=rows).astype(np.float64)


def bm25_scores(
    parts: Sequence[tuple[Postings, NDArray[np.bool_]]], query_terms: Sequence[str]
) -> list[NDArray[np.float64]]:
    """Return the BM25 score of each row of each part.

    Each part consists of postings and a mask. Rows outside the mask score 0, and the statistics exclude them, so that
    documents outside the scope of a search do not influence its ranking.
    """
    rows = sum(int(mask.sum()) for _, mask in parts)
    scores = [np.zeros(len(mask)) for _, mask in parts]
    if not rows:
        return scores
    average = sum(float(postings.lengths[mask].sum()) for postings, mask in parts) / rows or 1.0
    for term in query_terms:
        matches = []
        for postings, mask in parts:
            matching, occurrences = postings.find(hash_term(term))
            visible = mask[matching]
            matches.append((matching[visible], occurrences[visible].astype(np.float64)))
        frequency = sum(len(matching) for matching, _ in matches)
        idf = np.log1p((rows - frequency + 0.5) / (frequency + 0.5))
        for (postings, _), score, (matching, counts) in zip(parts, scores, matches, strict=True):
            damping = K1 * (1 - B + B * postings.lengths[matching] / average)
            score[matching] += idf * counts * (K1 + 1) / (counts + damping)
    return scores


def top_k_with_ties(scores: NDArray[Any], k: int, floor: float = -np.inf) -> NDArray[np.int64]:
    """Return the positions of the k highest scores above the floor, and of all scores that tie with the lowest of them.

    The positions are unsorted. The caller breaks ties.
    """
    above: NDArray[np.int64] = np.flatnonzero(scores > floor)
    if len(above) <= k:
        return above
    rounded = np.round(scores[above].astype(np.float64), SCORE_DIGITS)
    threshold = np.partition(rounded, len(rounded) - k)[len(rounded) - k]
    top: NDArray[np.int64] = above[rounded >= threshold]
    return top
