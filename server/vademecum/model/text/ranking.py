"""Ranking: words folded to terms, BM25 over postings, and the fusing of scored lists.

Rule: pure and repeatable. The same texts and the same query give the same order, here and in the browser, which
mirrors this file; nothing in a query is syntax. The constants were fitted and measured by bench/retrieval.py.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise, zip_longest
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from vademecum.model.text.normalization import bounded
from vademecum.model.text.unicode14 import MARKS, blank_unknown, change_known, of_short, one_of, stretches

Key = TypeVar("Key", bound=Hashable)

# BM25's usual constants: how soon repeats stop counting, and how much a long chunk's length is held against it.
K1 = 1.2
B = 0.75
# What the best match in meaning counts for beside the best by words, 1: of documents' chunks, and of turns of talk.
MEANING = 1.0
MEANING_OF_TURNS = 0.4
# How many hits of each arm are fused.
DEPTH = 100
NAMED_MIN = 0.6  # of the best score: below it, what a word may name does not go first
# What a row takes of the scores of the rows one and two places away.
SHARES = (0.5, 0.25)
# A longer "word" is a blob (base64, the tail of a URL); its beginning is enough to find it again.
LONGEST_TERM = 64
# Scores are compared after rounding to this many digits, so that a last bit, which depends on the order of
# additions inside a matrix product, never decides an order.
DIGITS = 6

# One term of one chunk: a 64-bit hash of the term, so that no vocabulary has to be kept, and its occurrences.
TERM = np.dtype([("term", "<u8"), ("count", "<u2")])

# Dropped: accents that may go without making another word (the diacritics of Latin, Greek and Cyrillic, Hebrew
# points, Arabic vowel signs and tatweel) and what is invisible inside words: soft hyphen, joiners, fillers, variation
# selectors, signs of direction. The marks of other scripts stay: kana's voicing and the vowel signs of India are letters.
ACCENTS = (
    "300-36f 591-5bd 5bf 5c1-5c2 5c4-5c5 5c7 610-61a 640 64b-65f 670 1ab0-1ace 1dc0-1dff 20d0-20f0 fe20-fe2f"
)
INVISIBLE = (
    "ad 61c 115f-1160 17b4-17b5 180b-180f 200b-200f 202a-202e 2060-2064 2066-206f 3164 fe00-fe0f feff ffa0 "
    "1bca0-1bca3 1d173-1d17a e0001 e0020-e007f e0100-e01ef"
)
_DROPPED = re.compile(f"{one_of(f'{ACCENTS} {INVISIBLE}')}+")
# What Unicode does not take apart but people type as something else. (Not str.casefold: browsers lack it.)
_SPELT = str.maketrans(
    {"ß": "ss", "æ": "ae", "œ": "oe", "þ": "th"} | dict(zip("ςøđðłħıىیک", "σoddlhiييك", strict=True))
)
_IS_SPELT = re.compile(f"[{''.join(map(chr, _SPELT))}]")
# Scripts written without spaces, and Hangul, whose particles cling to the words: Thai, Lao, Myanmar, Khmer, kana,
# bopomofo, Han. Their runs are cut into pairs of characters.
_DENSE = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005\u3007\u3040-\u31bf\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)

# Words that make a question and say nothing of what is asked. English, as most of the questions we can measure; in
# another language they drop little, and a question of nothing else keeps them.
STOP_WORDS = frozenset(
    re.findall(
        "[a-z]+",
        "a an and are as at be been but by did do does for from had has have how i in is it its of on or s that the "
        "their they this to was were what when where which who whom whose why will with would",
    )
)
_STEMMED = re.compile("[a-z]{4,}")


# A mark belongs to a word, but never begins one.
_WORD = f"[^\\W_]+(?:{one_of(MARKS)}+[^\\W_]*)*"
# What makes one name of the words on both sides: co-worker, PASS_MAX_DAYS, resolv.conf, 1.12, 1,250.
_SIGN = "(?:[-._\u2010]|(?<=[0-9]),(?=[0-9]))"
_ASCII_NAME = re.compile(f"[a-z0-9]+(?:{_SIGN}[a-z0-9]+)*")
_NAME = re.compile(f"{_WORD}(?:{_SIGN}{_WORD})*")
_SIGNS = re.compile("[-._\u2010,]")
# Without its signs a name is what others write in one word (coworker, 1250), but 1.12 is not 112.
_SILENT = re.compile("(?<![0-9])[-._\u2010]|[-._\u2010](?![0-9])|,")
_HAS_DENSE = re.compile(f"[{_DENSE}]")
_RUN = re.compile(f"([{_DENSE}]+)|[^{_DENSE}]+")


def fold(text: str) -> str:
    """Case, accents, widths and typographic variants folded away."""
    if text.isascii():
        return text.lower()
    pieces = stretches(text)
    pieces[::2] = map(str.lower, pieces[::2])
    pieces[1::2] = map(_fold_stretch, pieces[1::2])
    return "".join(pieces)


@of_short
def _fold_stretch(text: str) -> str:
    return change_known(bounded(text), _fold_known)


def _fold_known(text: str) -> str:
    plain = _DROPPED.sub("", unicodedata.normalize("NFKD", text)).lower()
    # Recomposed, or Hangul would stay in pieces; dropped again, for lower() may bring a mark back. Bounded again, for
    # what was dropped may have stood between two runs of marks.
    plain = _DROPPED.sub("", plain)
    spelt = plain.translate(_SPELT) if _IS_SPELT.search(plain) else plain
    return unicodedata.normalize("NFKC", bounded(spelt))


def terms(text: str) -> list[str]:
    """The terms a chunk is found by, in order. Dense runs give their characters and their pairs of characters."""
    return [term for name in _names(text) for term in _terms_of(name)]


def query_terms(text: str) -> list[str]:
    """The distinct terms of a question, in order, without stop words if anything else is asked. Single dense
    characters only where nothing stands beside them: they are in nearly every chunk of such a language."""
    runs = [run for name in _names(text) for run in _runs(name)]
    telling = [run for run in runs if run[0] not in STOP_WORDS] or runs
    found = (term for run, dense in telling for term in (_pairs(run) or [run] if dense else [stem(run)]))
    return list(dict.fromkeys(found))


def stem(word: str) -> str:
    """An English word without its common endings: plural, -ing, -ed, -ly, a last e; a last y as i. Crude, but the
    same for question and text, so that a wrong cut costs little in other languages too. Others stay as they are."""
    if not _STEMMED.fullmatch(word):
        return word
    word = _without_ending(_singular(word))
    if word.endswith("ly") and len(word) > 5:
        word = word[:-2]
    if word.endswith("e") and len(word) > 3:
        word = word[:-1]
    return word[:-1] + "i" if word.endswith("y") and len(word) > 3 else word


def _singular(word: str) -> str:
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith("sses"):
        return word[:-2]
    return word if not word.endswith("s") or word.endswith(("ss", "us", "is")) else word[:-1]


def _without_ending(word: str) -> str:
    """Without -ing or -ed, if a word is left; a consonant doubled for it (planned) is single again."""
    ending = next((some for some in ("ing", "ed") if word.endswith(some)), "")
    left = word.removesuffix(ending)
    if not ending or len(left) < 3 or not any(letter in "aeiouy" for letter in left):
        return word
    doubled = len(left) > 3 and left[-1] == left[-2] and left[-1] not in "lsz"
    return left[:-1] if doubled else left


def _names(text: str) -> list[str]:
    """The words of a text, folded; what makes one name stays in one piece."""
    folded = fold(text)
    return _ASCII_NAME.findall(folded) if folded.isascii() else _NAME.findall(blank_unknown(folded))


def _runs(name: str) -> Iterator[tuple[str, bool]]:
    """The words of a name, and whether they are dense; behind them the name: each of its words is found in other places,
    too."""
    words = _SIGNS.split(name)
    if _HAS_DENSE.search(name):
        for run in (run for word in words for run in _RUN.finditer(word)):
            yield (run[0], True) if run[1] else (run[0][:LONGEST_TERM], False)
        return
    yield from ((word[:LONGEST_TERM], False) for word in words)
    if len(words) > 1 and not STOP_WORDS.issuperset(words):
        yield _SILENT.sub("", name)[:LONGEST_TERM], False


def _terms_of(name: str) -> Sequence[str]:
    # Of those the next one is another one, and each has many terms.
    if not name.isascii() and _HAS_DENSE.search(name):
        return [term for run, dense in _runs(name) for term in (_dense_terms(run) if dense else [stem(run)])]
    return _stems_of(name)


@of_short
def _stems_of(name: str) -> tuple[str, ...]:
    return tuple(stem(run) for run, _ in _runs(name))


def _pairs(run: str) -> list[str]:
    return [a + b for a, b in pairwise(run)]


def _dense_terms(run: str) -> list[str]:
    return [*run, *_pairs(run)]


@lru_cache(maxsize=1 << 15)
def term_key(term: str) -> int:
    """A term's 64-bit name. Two terms of one library share it about never (1 in 10^8 for 500,000 terms)."""
    return int.from_bytes(blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def count_terms(text: str) -> NDArray[Any]:
    """A chunk's terms with their counts, as an array of TERM."""
    counts = Counter(terms(text))
    entries = np.empty(len(counts), TERM)
    entries["term"] = np.fromiter(map(term_key, counts), np.uint64, len(counts))
    entries["count"] = np.minimum(np.fromiter(counts.values(), np.int64, len(counts)), 0xFFFF)
    return entries


@dataclass(frozen=True, slots=True)
class Postings:
    """Which rows hold which term: the rows of `keys[i]` are `rows[starts[i]:starts[i + 1]]`."""

    keys: NDArray[np.uint64]
    starts: NDArray[np.int64]
    rows: NDArray[np.int32]
    counts: NDArray[np.uint16]
    lengths: NDArray[np.float64]

    @classmethod
    def build(
        cls, entries: NDArray[Any], row_of: NDArray[np.int32], lengths: NDArray[np.float64]
    ) -> "Postings":
        """From TERM entries, the row each belongs to, and each row's length in terms."""
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
        """From plain texts, one a row."""
        counted = [count_terms(text) for text in texts]
        entries = np.concatenate(counted) if counted else np.empty(0, dtype=TERM)
        row_of = np.repeat(np.arange(len(texts), dtype=np.int32), [len(some) for some in counted])
        return cls.build(entries, row_of, row_lengths(entries, row_of, len(texts)))

    def find(self, key: int) -> tuple[NDArray[np.int32], NDArray[np.uint16]]:
        """The rows that hold a term, and how often each does."""
        at = int(np.searchsorted(self.keys, np.uint64(key)))
        if at == len(self.keys) or int(self.keys[at]) != key:
            return self.rows[:0], self.counts[:0]
        span = slice(int(self.starts[at]), int(self.starts[at + 1]))
        return self.rows[span], self.counts[span]

    def entries(self) -> tuple[NDArray[Any], NDArray[np.int32]]:
        """Back to what `build` takes, so that postings can be joined."""
        entries = np.empty(len(self.rows), dtype=TERM)
        entries["term"] = np.repeat(self.keys, np.diff(self.starts))
        entries["count"] = self.counts
        return entries, self.rows

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in (self.keys, self.starts, self.rows, self.counts, self.lengths))


def _sort_order(keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the stable order that sorts the keys.

    Two radix passes over the upper 32 bits take a third of the time of a comparison sort: NumPy uses a radix sort for
    16-bit numbers only. Keys are hashes, so they rarely agree in these bits alone.
    """
    order = np.argsort((keys >> np.uint64(32)).astype(np.uint16), kind="stable")
    order = order[np.argsort((keys >> np.uint64(48)).astype(np.uint16)[order], kind="stable")]
    found = keys[order]
    return order if bool((found[1:] >= found[:-1]).all()) else np.argsort(keys, kind="stable")


def row_lengths(entries: NDArray[Any], row_of: NDArray[np.int32], rows: int) -> NDArray[np.float64]:
    """How many terms each row has, repeats counted."""
    return np.bincount(row_of, weights=entries["count"], minlength=rows).astype(np.float64)


def bm25(
    parts: Sequence[tuple[Postings, NDArray[np.bool_]]], wanted: Sequence[str]
) -> list[NDArray[np.float64]]:
    """BM25 of the wanted terms for every row of every part. Only the rows that a part's mask lets through are
    scored, and only they count for how rare a term and how long a chunk is: another scope, another statistic."""
    rows = sum(int(mask.sum()) for _, mask in parts)
    scores = [np.zeros(len(mask)) for _, mask in parts]
    if not rows:
        return scores
    average = sum(float(postings.lengths[mask].sum()) for postings, mask in parts) / rows or 1.0
    for term in wanted:
        found = []
        for postings, mask in parts:
            at, occurrences = postings.find(term_key(term))
            within = mask[at]
            found.append((at[within], occurrences[within].astype(np.float64)))
        holding = sum(len(at) for at, _ in found)
        rarity = np.log1p((rows - holding + 0.5) / (holding + 0.5))
        for (postings, _), score, (at, counts) in zip(parts, scores, found, strict=True):
            damping = K1 * (1 - B + B * postings.lengths[at] / average)
            score[at] += rarity * counts * (K1 + 1) / (counts + damping)
    return scores


def best(scores: NDArray[Any], k: int, floor: float = -np.inf) -> NDArray[np.int64]:
    """The positions of the k highest scores above the floor and of all that tie with the last of them; unsorted,
    for only the caller knows what breaks a tie."""
    above: NDArray[np.int64] = np.flatnonzero(scores > floor)
    if len(above) <= k:
        return above
    rounded = np.round(scores[above].astype(np.float64), DIGITS)
    last = np.partition(rounded, len(rounded) - k)[len(rounded) - k]
    kept: NDArray[np.int64] = above[rounded >= last]
    return kept


def lift(scores: NDArray[np.float64], group: NDArray[Any]) -> NDArray[np.float64]:
    """Each row's score with a share of its neighbours': rows in order, neighbours only within one group. For turns of
    a conversation, where an answer seldom repeats the words of what it answers; chunks of documents are long enough
    to speak for themselves, and lifting them favoured long documents."""
    lifted = scores.copy()
    shared = np.where(np.isfinite(scores), scores, 0.0)
    for away, share in enumerate(SHARES, start=1):
        together = share * (group[away:] == group[:-away])
        lifted[away:] += together * shared[:-away]
        lifted[:-away] += together * shared[away:]
    return lifted


def lift_found(scores: Mapping[Key, float], groups: Iterable[Sequence[Key]]) -> dict[Key, float]:
    """`lift` for rows of which only some were found, by `scores`; `groups`: all rows, in order. What was not found lends
    nothing and stays out. The best keeps its score, for rows that have no neighbours are ranked beside these."""
    lifted: dict[Key, float] = {}
    for group in groups:
        own = np.array([scores.get(key, 0.0) for key in group])
        raised = lift(own, np.zeros(len(group)))
        lifted |= {key: float(score) for key, score in zip(group, raised, strict=True) if key in scores}
    highest = max(lifted.values(), default=0.0)
    scale = max(scores.values(), default=0.0) / highest if highest > 0 else 1.0
    return {key: score * scale for key, score in lifted.items()}


def goes_first(key: Key, hits: Sequence[tuple[Key, float]]) -> bool:
    """Whether what a word may name fits the question about as well as the best of all that was found."""
    return dict(hits).get(key, 0.0) >= NAMED_MIN * max((score for _, score in hits), default=0.0)


def by_turns(first: Iterable[Key], second: Iterable[Key]) -> list[Key]:
    """Both lists in one, each once: the best of either in turn, and the first begins."""
    pairs = zip_longest(first, second)
    return list(dict.fromkeys(key for pair in pairs for key in pair if key is not None))


def relative(hits: Sequence[tuple[Key, float]], zero: float | None = None) -> list[tuple[Key, float]]:
    """Scores rescaled so that the best is 1 and `zero`, or else the lowest of them, is 0. A cosine has no zero of its
    own (E5's lie in 0.7..1), BM25 has."""
    scores = [score for _, score in hits]
    lowest = min(scores, default=0.0) if zero is None else zero
    span = max(scores, default=0.0) - lowest
    return [(key, (score - lowest) / span if span > 0 else 1.0) for key, score in hits]


def fuse(
    lists: Sequence[Sequence[tuple[Key, float]]], weights: Sequence[float], k: int
) -> list[tuple[Key, float]]:
    """Relative score fusion: the k keys with the highest weighted mean of their scores, 0 where a list lacks them.
    Equal scores keep the order in which the keys are first met, list by list."""
    total = sum(weights) or 1.0
    scores: dict[Key, float] = {}
    for hits, weight in zip(lists, weights, strict=True):
        if weight <= 0:
            continue
        for key, score in hits:
            scores[key] = scores.get(key, 0.0) + weight * score / total
    ordered = sorted(scores.items(), key=lambda item: -round(item[1], 12))
    return ordered[: max(k, 0)]


def hybrid(
    words: Sequence[tuple[Key, float]], meaning: Sequence[tuple[Key, float]], k: int, weight: float = MEANING
) -> list[tuple[Key, float]]:
    """The k best of what the words fit and what is near in meaning: BM25 and cosines, best first, `DEPTH` of each."""
    lists = [relative(words, zero=0.0), relative(meaning)]
    return fuse(lists, [1.0, weight], k)


def same_text(text: str) -> str:
    """Equal for texts that differ only in case, accents, widths and blanks: such chunks say the same."""
    return " ".join(fold(text).split())
