"""Combine ranked lists: hybrid search, the boost of neighboring turns, and interleaving.

The browser mirrors this file except for the boost, because it searches memory by words only
(`web/src/core/text/fusion.ts`; shared cases: tests/conformance/ranking.json). The weights of vector search are fitted for
each model (`services/models/fit_model.py`); the other constants were fitted with bench/retrieval.py.
"""

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import zip_longest
from math import isfinite
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)

# The weights of vector search relative to keyword search for a model without fitted weights: for passages of documents
# and for turns of conversations.
VECTOR_WEIGHT = 1.0
TURN_VECTOR_WEIGHT = 0.4
# The number of hits from each list that are fused.
FUSION_DEPTH = 100
NEAR_BEST = 0.6  # the minimum share of the best score for a hit that counts as near the best
# The shares that a row receives of the scores of neighbors one position and two positions away.
NEIGHBOR_SHARES = (0.5, 0.25)
# A text with more UTF-8 bytes per character is mainly in another script than Latin. Vietnamese has 1.3, Russian 1.8.
MAX_BYTES_PER_CHARACTER = 1.5
# Subtracted from the cosines of passages in such scripts, so that these passages follow all others.
FOREIGN_PENALTY = 3.0
# The maximum number of word pieces per word or punctuation mark in English. English text, including invoices and code,
# has fewer pieces with an English model; text in other languages has more.
MAX_PIECES_PER_WORD = 1.3
FOREIGN_SHARE = 0.4  # the share of the weight of vector search in such a language
LANGUAGE_SAMPLE = 10  # the number of passages whose language is compared with that of the question
# Ranges of punctuation marks, and of control characters and blanks. Classes such as `\w` differ in the browser.
_MARKS = r"!-/:-@\[-`{-~\u00ab\u00bb\u2010-\u2027\u2030-\u205e"
_BLANKS = r"\x00-\x20\x7f-\xa0\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff"
_WORD_OR_MARK = re.compile(f"[{_MARKS}]|[^{_BLANKS}{_MARKS}]+")


def is_foreign_script(text: str) -> bool:
    """Return whether a text is mainly in another script than Latin, for which an English model's vector is meaningless."""
    return len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES_PER_CHARACTER * len(text)


def language_share(text: str, tokens: int) -> float:
    """Return the share of its weight that an English model's vector of a text deserves: 1, `FOREIGN_SHARE` or 0.

    The share is 0 in a foreign script, and `FOREIGN_SHARE` if the model splits the text into more than
    `MAX_PIECES_PER_WORD` word pieces (`tokens`) per word and punctuation mark.
    """
    if is_foreign_script(text):
        return 0.0
    words = len(_WORD_OR_MARK.findall(text))
    return 1.0 if tokens <= MAX_PIECES_PER_WORD * words else FOREIGN_SHARE


def common_share(question: float, passages: Sequence[float]) -> float:
    """Return the share of the vector weight for a question and the passages that are compared with it (at least one).

    The share is below 1 only if both the question and most passages deserve less: for a Spanish question about English
    documents, the vectors are better than the words, which hardly match.
    """
    return max(question, sorted(passages)[len(passages) // 2])


def boost_neighbors(scores: Sequence[float], groups: Sequence[Hashable]) -> list[float]:
    """Add to each row's score a share of its neighbors' scores. Rows are in order; neighbors are in the same group.

    Use it for turns of a conversation, which seldom repeat the words of the previous turn. Do not boost chunks of
    documents, because that would favor long documents. A score of -inf stays and contributes nothing.
    """
    boosted = list(scores)
    lent = [score if isfinite(score) else 0.0 for score in scores]
    for distance, share in enumerate(NEIGHBOR_SHARES, start=1):
        for later in range(distance, len(boosted)):
            earlier = later - distance
            if groups[later] == groups[earlier]:
                boosted[later] += share * lent[earlier]
                boosted[earlier] += share * lent[later]
    return boosted


def boost_found_neighbors(scores: Mapping[Key, float], groups: Iterable[Sequence[Key]]) -> dict[Key, float]:
    """Boost the scores of rows by their neighbors' scores, as `boost_neighbors` does. `groups`: all rows, in order.

    Rows without a score contribute nothing and do not appear in the result. The result is scaled so that the best score
    keeps its value, because the boosted rows are ranked together with rows that have no neighbors.
    """
    boosted: dict[Key, float] = {}
    for group in groups:
        raised = boost_neighbors([scores.get(key, 0.0) for key in group], [0] * len(group))
        boosted |= {key: score for key, score in zip(group, raised, strict=True) if key in scores}
    highest = max(boosted.values(), default=0.0)
    scale = max(scores.values(), default=0.0) / highest if highest > 0 else 1.0
    return {key: score * scale for key, score in boosted.items()}


def is_near_best(key: Key, hits: Sequence[tuple[Key, float]]) -> bool:
    """Return whether the score of `key` is at least the share `NEAR_BEST` of the best score."""
    return dict(hits).get(key, 0.0) >= NEAR_BEST * max((score for _, score in hits), default=0.0)


def interleave(first: Iterable[Key], second: Iterable[Key]) -> list[Key]:
    """Return the keys of both lists alternately, without duplicates, starting with `first`."""
    pairs = zip_longest(first, second)
    return list(dict.fromkeys(key for pair in pairs for key in pair if key is not None))


def rescale(hits: Sequence[tuple[Key, float]], zero: float | None = None) -> list[tuple[Key, float]]:
    """Rescale scores so that the best is 1 and `zero`, by default the lowest score, is 0.

    BM25 has a natural zero. Cosines have no natural zero: those of E5 lie between 0.7 and 1.
    """
    scores = [score for _, score in hits]
    lowest = min(scores, default=0.0) if zero is None else zero
    span = max(scores, default=0.0) - lowest
    return [(key, (score - lowest) / span if span > 0 else 1.0) for key, score in hits]


def fuse(
    lists: Sequence[Sequence[tuple[Key, float]]], weights: Sequence[float], k: int
) -> list[tuple[Key, float]]:
    """Return the k keys with the highest weighted mean score, counting 0 where a list lacks a key.

    Equal scores keep the order in which the keys first occur, list by list.
    """
    total = sum(weights) or 1.0
    scores: dict[Key, float] = {}
    for hits, weight in zip(lists, weights, strict=True):
        if weight <= 0:
            continue
        for key, score in hits:
            scores[key] = scores.get(key, 0.0) + weight * score / total
    ordered = sorted(scores.items(), key=lambda item: -round(item[1], 12))
    return ordered[: max(k, 0)]


def fuse_hybrid(
    keyword_hits: Sequence[tuple[Key, float]],
    vector_hits: Sequence[tuple[Key, float]],
    k: int,
    vector_weight: float = VECTOR_WEIGHT,
) -> list[tuple[Key, float]]:
    """Return the k best hits of two lists: keyword hits (BM25) and vector hits (cosines), each best first.

    Each list should contain the best `FUSION_DEPTH` hits. A vector hit below -1 carries `FOREIGN_PENALTY` and
    contributes 0 to the score.
    """
    near = [(key, score) for key, score in vector_hits if score >= -1]
    foreign = [(key, 0.0) for key, score in vector_hits if score < -1]
    lists = [rescale(keyword_hits, zero=0.0), rescale(near) + foreign]
    return fuse(lists, [1.0, vector_weight], k)
