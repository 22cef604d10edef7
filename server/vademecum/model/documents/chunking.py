"""Split a document into chunks, with equal results in Python and JavaScript.

Chunks end at the best boundary: section, paragraph, sentence, line, word, or else within a word. The document's text is
the normalized texts of its parts, joined by a blank line. A chunk is an exact slice of this text. It starts and ends
with visible characters, stays within the parts of one page, and overlaps no other chunk.

Every code point costs points (`cost`): at least 12 per UTF-16 unit, and more where the model's tokenizer needs more
tokens. So `BUDGET` limits a chunk to 1,000 units and, for natural text, to 480 of the model's 512 tokens. The end of a
chunk is first set as far as the budget allows, and then moved back to the best boundary (`_best_end`). Each step looks
at a bounded window, so the time is linear for any text. Any change of these rules needs a new `CHUNKER`.
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
"""Maps each kind of boundary to the minimum cost of a chunk that ends there."""


class PartLike(Protocol):
    """A part of a document in reading order, with its page and section."""

    @property
    def text(self) -> str: ...
    @property
    def page(self) -> int | None: ...
    @property
    def section(self) -> str | None: ...


class Chunk(msgspec.Struct, frozen=True, omit_defaults=True):
    """A chunk of a document. `start`: its offset in the document's normalized text, in UTF-16 units."""

    index: int
    start: int
    text: str
    page: int | None = None
    section: str | None = None


def document_text(parts: Sequence[PartLike]) -> str:
    """Return the normalized text of a document, to which `Chunk.start` refers."""
    return JOIN.join(normalize(part.text) for part in parts)


def chunk(parts: Sequence[PartLike]) -> list[Chunk]:
    """Return the chunks of a document in order. A document without visible text has none."""
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
    """Return the document's text, rebuilt from its chunks in order.

    `last`: for a later part of a long document, the chunk before the first of `chunks`. The gaps between chunks follow
    from their `start` offsets.
    """
    text: list[str] = []
    for one in chunks:
        if last is not None:
            gap = one["start"] - last["start"] - utf16_length(last["text"])
            text.append(JOIN if gap >= len(JOIN) else " " * max(gap, 0))
        text.append(one["text"])
        last = one
    return "".join(text)


def utf16_length(text: str) -> int:
    """Return the length in UTF-16 units, as JavaScript counts it."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


def cost(code: int) -> int:
    """Return the points of a code point of normalized text.

    The points were fitted to real texts and BERT's vocabulary.
    """
    if 0xAC00 <= code <= 0xD7A3:
        return _HANGUL  # the tokenizer splits a syllable into letters, which are 1.4 tokens on average
    if code > 0x24F:
        latin = 0x300 <= code <= 0x36F or 0x1E00 <= code <= 0x1EFF or 0x2000 <= code <= 0x200A
        return _UNIT if latin else _TOKEN
    if 0x30 <= code <= 0x39:
        return 15
    punctuation = 0x21 <= code <= 0x2F or 0x3A <= code <= 0x40 or 0x5B <= code <= 0x60 or 0x7B <= code <= 0x7E
    return _TOKEN if punctuation else _UNIT


def points(text: str) -> int:
    """Return the points of a normalized text."""
    return sum(_costs(text))


class _Costs(dict[str, int]):
    def __missing__(self, character: str) -> int:
        points = cost(ord(character))
        if character <= "\uffff":  # the million characters above are not cached, to save memory
            self[character] = points
        return points


_COSTS = _Costs()
_LATIN_COSTS = bytes(cost(code) for code in range(0x100))


def _costs(text: str) -> Iterable[int]:
    """Return the points of each code point. For text in Latin-1 this needs no Python loop."""
    try:
        return text.encode("latin-1").translate(_LATIN_COSTS)
    except UnicodeEncodeError:
        return map(_COSTS.__getitem__, text)


def _assemble(parts: Sequence[PartLike]) -> tuple[str, list[int], list[str | None], list[int]]:
    """Return four values for a page: its joined text, the starts and sections of its parts, and the section ends."""
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
    """Return the position after the last visible character.

    `str.rstrip()` without an argument would remove other characters than JavaScript does.
    """
    return len(text.rstrip(_BLANKS))


_BLANKS = "".join(chr(code) for code in range(0x3001) if _GAP.match(chr(code)))


def _spans(text: str, breaks: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each chunk of `text`, in code points."""
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
    """Return the end of the chunk that starts at `start`."""
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
        # Slightly more than one chunk remains. Two chunks of similar size are better than a full chunk and a tiny one.
        fits = bisect_right(costs, BUDGET * 3 // 4)
    return _best_end(text, start, fits, costs)


def _best_end(text: str, start: int, fits: int, costs: Sequence[int]) -> int:
    """Return the last boundary of the best kind within the first `fits` code points of the chunk."""
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
    """Return the kind of a boundary, and the end of the text before it."""
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
    """Return the last position up to `furthest` that splits no flag and separates no character from marks or joiners.

    If the last `_BACK` code points have no such position, only marks stay with their characters.
    """
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
