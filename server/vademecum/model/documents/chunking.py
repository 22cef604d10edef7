"""Cut a document into chunks, the same in Python and JavaScript: section → paragraph → sentence → line → word → hard.

The rule. The document's text is its parts' normalised texts joined by a blank line; a chunk is an exact slice of
it that starts and ends with something visible, never reaches into a part of another page, and overlaps no other.
Every code point costs points (`cost`): at least 12 a UTF-16 unit, more where the model's tokenizer spends more
tokens, so `BUDGET` bounds both: 1,000 units and, for natural text, 480 tokens of the model's 512.
From where a chunk starts, the furthest end within the budget is found and moved back to the best boundary
(`_best_end`). No step looks further than a window, so time is linear whatever the text. Any change is a new `CHUNKER`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, groupby
from typing import Any, Protocol

import msgspec

from vademecum.model.text.normalization import normalize
from vademecum.model.text.unicode14 import MARKS, regex_for_ranges

CHUNKER = 1
SIZE = 1000
BUDGET = 12 * SIZE
JOIN = "\n\n"

_UNIT, _TOKEN, _HANGUL = 12, 25, 50
_BLANK = "\t\n \xa0\u1680\u2000-\u200a\u202f\u205f\u3000"
_CLOSERS = "\"'\u00bb\u2019\u201d\u203a\u300b\u300d\u300f\uff09)\\]"
_GAP = re.compile(f"[{_BLANK}]+")
_GAP_OR_STOP = re.compile(f"[{_BLANK}]+|[\u3002\uff01\uff1f\uff61]+[{_CLOSERS}]*")
_SENTENCE_END = re.compile(f"[.!?\u2026\u061f\u06d4\u0964\u0965\u0589\u1362][{_CLOSERS}]{{0,3}}$")
_MARK = re.compile(regex_for_ranges(MARKS))
_GLUED_BEFORE = re.compile(regex_for_ranges(f"{MARKS} 200c-200d 1160-11ff 1f3fb-1f3ff e0020-e007f"))
_FLAGS = re.compile("(?<![\U0001f1e6-\U0001f1ff])[\U0001f1e6-\U0001f1ff]*\\Z")
_BACK = 128

_PARAGRAPH, _SENTENCE, _LINE, _WORD = range(4)
_LEAST = {_PARAGRAPH: BUDGET // 4, _SENTENCE: BUDGET // 2, _LINE: BUDGET // 2, _WORD: BUDGET // 4}
"""A boundary of a kind counts only if the chunk it ends costs at least this."""


class PartLike(Protocol):
    """A stretch of a document, in reading order, that knows where it stood."""

    @property
    def text(self) -> str: ...
    @property
    def page(self) -> int | None: ...
    @property
    def section(self) -> str | None: ...


class Chunk(msgspec.Struct, frozen=True, omit_defaults=True):
    """One piece of a document. `start` counts UTF-16 units of the document's normalised text."""

    index: int
    start: int
    text: str
    page: int | None = None
    section: str | None = None


def document_text(parts: Sequence[PartLike]) -> str:
    """The text that `start` counts in."""
    return JOIN.join(normalize(part.text) for part in parts)


def chunk(parts: Sequence[PartLike]) -> list[Chunk]:
    """The chunks of a document, in order. A document of blanks has none."""
    chunks: list[Chunk] = []
    base = 0
    for page, group in groupby(parts, key=lambda part: part.page):
        text, starts, sections, breaks = _assemble(list(group))
        done = 0
        at = base
        for first, last in _spans(text, breaks):
            at += utf16_length(text[done:first])
            section = sections[bisect_right(starts, first) - 1]
            piece = text[first:last]
            chunks.append(Chunk(len(chunks), at, piece, page, section))
            at += utf16_length(piece)
            done = last
        base = at + utf16_length(text[done:]) + len(JOIN)
    return chunks


def join(chunks: Iterable[Mapping[str, Any]], last: Mapping[str, Any] | None = None) -> str:
    """The document's text again, from its chunks in order; of a long one a stretch, which begins after the chunk `last`.

    Between two of them is what their `start`s leave open."""
    text: list[str] = []
    for one in chunks:
        if last is not None:
            gap = one["start"] - last["start"] - utf16_length(last["text"])
            text.append(JOIN if gap >= len(JOIN) else " " * max(gap, 0))
        text.append(one["text"])
        last = one
    return "".join(text)


def utf16_length(text: str) -> int:
    """Length as JavaScript counts it."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


def cost(code: int) -> int:
    """Points of one code point of normalised text. Weighed on what BERT's vocabulary makes of real texts."""
    if 0xAC00 <= code <= 0xD7A3:
        return _HANGUL  # the tokenizer takes a syllable apart into letters: 1.4 tokens on average
    if code > 0x24F:
        latin = 0x300 <= code <= 0x36F or 0x1E00 <= code <= 0x1EFF or 0x2000 <= code <= 0x200A
        return _UNIT if latin else _TOKEN
    if 0x30 <= code <= 0x39:
        return 15
    punctuation = 0x21 <= code <= 0x2F or 0x3A <= code <= 0x40 or 0x5B <= code <= 0x60 or 0x7B <= code <= 0x7E
    return _TOKEN if punctuation else _UNIT


def points(text: str) -> int:
    """What all of a normalised text costs."""
    return sum(_costs(text))


class _Costs(dict[str, int]):
    def __missing__(self, character: str) -> int:
        points = cost(ord(character))
        if character <= "\uffff":  # the rest is a million characters long and stays out of memory
            self[character] = points
        return points


_COSTS = _Costs()
_LATIN_COSTS = bytes(cost(code) for code in range(0x100))


def _costs(text: str) -> Iterable[int]:
    """Points of each code point; those of most texts without looking at one after the other."""
    try:
        return text.encode("latin-1").translate(_LATIN_COSTS)
    except UnicodeEncodeError:
        return map(_COSTS.__getitem__, text)


def _assemble(parts: Sequence[PartLike]) -> tuple[str, list[int], list[str | None], list[int]]:
    """Text of parts of one page; where each starts, its section; and the ends of text before another section."""
    texts = [normalize(part.text) for part in parts]
    starts: list[int] = []
    breaks: list[int] = []
    at = solid = 0
    for number, (part, text) in enumerate(zip(parts, texts, strict=True)):
        if number and part.section != parts[number - 1].section:
            breaks.append(solid)
        starts.append(at)
        visible = _visible_end(text)
        solid = at + visible if visible else solid
        at += len(text) + len(JOIN)
    return JOIN.join(texts), starts, [part.section for part in parts], breaks


def _visible_end(text: str) -> int:
    """Where trailing blanks begin. (`str.rstrip()` knows other blanks than JavaScript.)"""
    return len(text.rstrip(_BLANKS))


_BLANKS = "".join(chr(code) for code in range(0x3001) if _GAP.match(chr(code)))


def _spans(text: str, breaks: Sequence[int]) -> Iterator[tuple[int, int]]:
    """First and past-the-last code point of every chunk of `text`."""
    end = _visible_end(text)
    start = _after_gap(text, 0)
    while start < end:
        stop = _end_of_chunk(text, start, end, breaks)
        yield start, start + _visible_end(text[start:stop])
        start = _after_gap(text, stop)


def _after_gap(text: str, at: int) -> int:
    gap = _GAP.match(text, at)
    return gap.end() if gap else at


def _end_of_chunk(text: str, start: int, end: int, breaks: Sequence[int]) -> int:
    """Where the chunk that starts at `start` ends."""
    ahead = BUDGET * 5 // 4
    costs = list(accumulate(_costs(text[start : min(end, start + ahead // _UNIT + 1)])))
    fits = bisect_right(costs, BUDGET)
    for number in range(bisect_right(breaks, start), len(breaks)):
        at = breaks[number]
        if at - start > fits:
            break
        if costs[at - start - 1] * 4 >= BUDGET:
            return at
    if start + fits == end:
        return end
    if start + len(costs) == end and costs[-1] <= ahead:
        # A little more than one chunk is left: two fair ones rather than a full one and a crumb.
        fits = bisect_right(costs, BUDGET * 3 // 4)
    return _best_end(text, start, fits, costs)


def _best_end(text: str, start: int, fits: int, costs: Sequence[int]) -> int:
    """The last boundary of the best kind there is among the first `fits` code points."""
    found: dict[int, int] = {}
    for match in reversed(list(_GAP_OR_STOP.finditer(text, start, start + fits + 1))):
        kind, at = _boundary(text, match)
        if at - start > fits or costs[at - start - 1] < _LEAST[kind] or _GLUED_BEFORE.match(text, at):
            continue
        if kind == _PARAGRAPH:
            return at
        found.setdefault(kind, at)
    return found[min(found)] if found else _hard_end(text, start, start + fits)


def _boundary(text: str, match: re.Match[str]) -> tuple[int, int]:
    """The kind of a boundary, and where the text before it ends."""
    at = match.start()
    if text[at] not in _BLANKS:
        return _SENTENCE, match.end()
    lines = text.count("\n", at, _after_gap(text, match.end()))
    if lines > 1:
        return _PARAGRAPH, at
    if _SENTENCE_END.search(text[max(0, at - 4) : at]):
        return _SENTENCE, at
    return (_LINE if lines else _WORD), at


def _hard_end(text: str, start: int, furthest: int) -> int:
    """The last place in front of `furthest` that parts no character from its marks, joiners or second half."""
    for at in range(furthest, max(start, furthest - _BACK), -1):
        if (
            not _GLUED_BEFORE.match(text, at)
            and text[at - 1] != "\u200d"
            and not _parts_a_flag(text, start, at)
        ):
            return at
    return next(at for at in range(furthest, start, -1) if not _MARK.match(text, at))


def _parts_a_flag(text: str, start: int, at: int) -> bool:
    if not "\U0001f1e6" <= text[at] <= "\U0001f1ff":
        return False
    run = _FLAGS.search(text[start:at])
    return run is not None and len(run[0]) % 2 == 1
