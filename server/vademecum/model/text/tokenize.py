"""Fold text and split it into search terms.

The same text gives the same terms here and in the browser (`web/src/core/text/tokenize.ts`; shared cases:
tests/conformance/ranking.json). Nothing in a query is syntax. A change of the rules needs a new index layout.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import pairwise

from vademecum.model.text.normalization import limit_mark_runs
from vademecum.model.text.unicode14 import (
    MARKS,
    blank_unassigned,
    cache_short_texts,
    map_assigned,
    regex_for_ranges,
    split_ascii,
)

# The maximum length of a term. Longer "words" are base64 or parts of URLs; 64 characters are enough to find them.
MAX_TERM_LENGTH = 64

# Folding drops accents that can be omitted without making another word (diacritics of Latin, Greek and Cyrillic, Hebrew
# points, Arabic vowel signs and tatweel) and invisible characters (soft hyphen, joiners, fillers, variation selectors,
# direction marks). The marks of other scripts stay, because kana voicing marks and Indic vowel signs are letters.
ACCENTS = (
    "300-36f 591-5bd 5bf 5c1-5c2 5c4-5c5 5c7 610-61a 640 64b-65f 670 1ab0-1ace 1dc0-1dff 20d0-20f0 fe20-fe2f"
)
INVISIBLE = (
    "ad 61c 115f-1160 17b4-17b5 180b-180f 200b-200f 202a-202e 2060-2064 2066-206f 3164 fe00-fe0f feff ffa0 "
    "1bca0-1bca3 1d173-1d17a e0001 e0020-e007f e0100-e01ef"
)
_DROPPED = re.compile(f"{regex_for_ranges(f'{ACCENTS} {INVISIBLE}')}+")
# Letters that Unicode does not decompose but that people type differently. (Not str.casefold: browsers lack it.)
_RESPELLED = str.maketrans(
    {"ß": "ss", "æ": "ae", "œ": "oe", "þ": "th"} | dict(zip("ςøđðłħıىیک", "σoddlhiييك", strict=True))
)
_HAS_RESPELLED = re.compile(f"[{''.join(map(chr, _RESPELLED))}]")
# Scripts without spaces, and Hangul, whose particles attach to words: Thai, Lao, Myanmar, Khmer, kana, bopomofo, Han.
# Their runs are indexed as bigrams.
_DENSE = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005\u3007\u3040-\u31bf\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)

# English function words of questions. These words are dropped from a query unless the query has no other words.
STOP_WORDS = frozenset(
    re.findall(
        "[a-z]+",
        "a an and are as at be been but by did do does for from had has have how i in is it its of on or s that the "
        "their they this to was were what when where which who whom whose why will with would",
    )
)
_STEMMABLE = re.compile("[a-z]{4,}")

# A mark continues a word but never starts one.
_WORD = f"[^\\W_]+(?:{regex_for_ranges(MARKS)}+[^\\W_]*)*"
# Characters that join words to a compound: co-worker, PASS_MAX_DAYS, resolv.conf, 1.12, 1,250.
_JOINER = "(?:[-._\u2010]|(?<=[0-9]),(?=[0-9]))"
_ASCII_COMPOUND = re.compile(f"[a-z0-9]+(?:{_JOINER}[a-z0-9]+)*")
_COMPOUND = re.compile(f"{_WORD}(?:{_JOINER}{_WORD})*")
_JOINERS = re.compile("[-._\u2010,]")
# Without these joiners a compound equals its spelling as one word (coworker, 1250), but 1.12 does not become 112.
_DROPPABLE_JOINER = re.compile("(?<![0-9])[-._\u2010]|[-._\u2010](?![0-9])|,")
_HAS_DENSE = re.compile(f"[{_DENSE}]")
_RUN = re.compile(f"([{_DENSE}]+)|[^{_DENSE}]+")


def fold(text: str) -> str:
    """Return the text without differences of case, accents, widths and typographic variants."""
    if text.isascii():
        return text.lower()
    pieces = split_ascii(text)
    pieces[::2] = map(str.lower, pieces[::2])
    pieces[1::2] = map(_fold_piece, pieces[1::2])
    return "".join(pieces)


@cache_short_texts
def _fold_piece(text: str) -> str:
    return map_assigned(limit_mark_runs(text), _fold_assigned)


def _fold_assigned(text: str) -> str:
    plain = _DROPPED.sub("", unicodedata.normalize("NFKD", text)).lower()
    plain = _DROPPED.sub("", plain)  # lower() may add a mark
    plain = plain.translate(_RESPELLED) if _HAS_RESPELLED.search(plain) else plain
    # Limit the runs of marks again, because a dropped character may have separated two runs. Compose, because NFKD
    # splits Hangul.
    return unicodedata.normalize("NFKC", limit_mark_runs(plain))


def duplicate_key(text: str) -> str:
    """Return a key that is equal for texts that differ only in case, accents, widths and whitespace."""
    return " ".join(fold(text).split())


def tokenize(text: str) -> list[str]:
    """Return the terms of a text in order.

    Runs of scripts without spaces (dense runs) yield their characters and their bigrams.
    """
    return [term for compound in _compounds(text) for term in _compound_terms(compound)]


def tokenize_query(text: str) -> list[str]:
    """Return the distinct terms of a query in order, without stop words unless it has no other words.

    A single dense character is a term only if it stands alone, since nearly every chunk in such a language contains it.
    """
    runs = [run for compound in _compounds(text) for run in _runs(compound)]
    distinctive = [run for run in runs if run[0] not in STOP_WORDS] or runs
    terms = (
        term
        for run, is_dense in distinctive
        for term in (_bigrams(run) or [run] if is_dense else [stem(run)])
    )
    return list(dict.fromkeys(terms))


def stem(word: str) -> str:
    """Return an English word without its common endings: plural, -ing, -ed, -ly, a final e; a final y becomes i.

    The rule is crude, but queries and texts are stemmed alike, so a wrong cut in another language does little harm.
    """
    if not _STEMMABLE.fullmatch(word):
        return word
    word = _strip_suffix(_singular(word))
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


def _strip_suffix(word: str) -> str:
    """Remove -ing or -ed if a word remains, and undouble a final consonant (planned → plan)."""
    suffix = next((suffix for suffix in ("ing", "ed") if word.endswith(suffix)), "")
    base = word.removesuffix(suffix)
    if not suffix or len(base) < 3 or not any(letter in "aeiouy" for letter in base):
        return word
    is_doubled = len(base) > 3 and base[-1] == base[-2] and base[-1] not in "lsz"
    return base[:-1] if is_doubled else base


def _compounds(text: str) -> list[str]:
    """Return the folded words of a text.

    Words joined by a hyphen, dot or underscore (co-worker, resolv.conf) count as one.
    """
    folded = fold(text)
    return (
        _ASCII_COMPOUND.findall(folded) if folded.isascii() else _COMPOUND.findall(blank_unassigned(folded))
    )


def _runs(compound: str) -> Iterator[tuple[str, bool]]:
    """Yield the words of a compound and whether each is dense, then the compound as one word.

    The compound itself ranks texts that contain it above texts that contain only its words.
    """
    words = _JOINERS.split(compound)
    if _HAS_DENSE.search(compound):
        for run in (run for word in words for run in _RUN.finditer(word)):
            yield (run[0], True) if run[1] else (run[0][:MAX_TERM_LENGTH], False)
        return
    yield from ((word[:MAX_TERM_LENGTH], False) for word in words)
    if len(words) > 1 and not STOP_WORDS.issuperset(words):
        yield _DROPPABLE_JOINER.sub("", compound)[:MAX_TERM_LENGTH], False


def _compound_terms(compound: str) -> Sequence[str]:
    if compound.isascii() or not _HAS_DENSE.search(compound):
        return _compound_stems(compound)
    # Do not cache these terms: dense compounds seldom repeat, and each has many terms.
    return [
        term
        for run, is_dense in _runs(compound)
        for term in ([*run, *_bigrams(run)] if is_dense else [stem(run)])
    ]


@cache_short_texts
def _compound_stems(compound: str) -> tuple[str, ...]:
    return tuple(stem(run) for run, _ in _runs(compound))


def _bigrams(run: str) -> list[str]:
    return [a + b for a, b in pairwise(run)]
