"""Compute the numbers of clauses and lists, which Word generates and does not store as text.

A paragraph, or its style, names a `w:num`; that one an `w:abstractNum`, which says how each level is numbered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

from vademecum.engines.files.formats.ooxml.docx_properties import child, switch, value
from vademecum.engines.files.formats.ooxml.package import qn

_LEVELS = 9
_STYLES_MAX = 20  # that are based on each other, maybe in circles
_NUMBER_MAX = 100  # characters: it is written out before each paragraph
_LETTERS_MAX = 780  # the highest number that Word spells as a letter, thirty times
_PLACE = re.compile("%([1-9])")
_BLANKS = re.compile("[ \t\r\n]+")
_WHOLE = re.compile("[0-9]{1,10}")
_ROMAN = tuple(
    zip(
        (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1),
        ["m", "cm", "d", "cd", "c", "xc", "l", "xl", "x", "ix", "v", "iv", "i"],
        strict=True,
    )
)


@dataclass(frozen=True)
class _Level:
    """The numbering of a list level. `template`: %1 stands for the number of the first level, and so on. `restart`: only
    paragraphs of the first `restart` levels reset the count; None means all higher levels."""

    start: int
    spelling: str
    template: str
    separator: str
    is_legal: bool
    restart: int | None
    style: str

    def begins_anew(self, behind: int) -> bool:
        return self.restart is None or behind < self.restart


@dataclass(frozen=True)
class _List:
    """A `w:num`: the levels of its `w:abstractNum` with its overrides. `starts`: start overrides by level."""

    name: str
    abstract: str
    levels: dict[int, _Level]
    starts: dict[int, int]

    def first(self, level: int) -> int:
        return self.starts.get(level, self.levels[level].start)

    def level_of(self, style: str) -> int | None:
        return next((number for number, level in self.levels.items() if style and level.style == style), None)


@dataclass(frozen=True)
class _Named:
    """The numbering properties of a paragraph or style; "" if not set."""

    list: str
    level: str
    style: str = ""
    based_on: str = ""


_Place = tuple[_List, int]


class Numbering:
    """The lists of a document, from the XML roots of its numbering and styles."""

    def __init__(self, root: Any, styles: Any) -> None:
        named = (_of_style(style) for style in styles.iterchildren(qn("w:style")))
        self._styles = {style.style: style for style in named}
        abstracts = list(root.iterchildren(qn("w:abstractNum")))
        self._abstracts = {abstract.get(qn("w:abstractNumId"), ""): abstract for abstract in abstracts}
        self._linked = {value(abstract, "styleLink"): abstract for abstract in abstracts}
        self._nums = {num.get(qn("w:numId"), ""): num for num in root.iterchildren(qn("w:num"))}
        self._levels: dict[Any, dict[int, _Level]] = {}
        self._lists: dict[str, _List | None] = {}
        self._places: dict[_Named, _Place | None] = {}

    def place(self, paragraph: Any) -> _Place | None:
        """Return the list and level of a paragraph, or None."""
        properties = child(paragraph, "pPr")
        named = _Named(*_number(properties), based_on=value(properties, "pStyle"))
        if named not in self._places:
            self._places[named] = self._place_of(named)
        return self._places[named]

    def _place_of(self, named: _Named) -> _Place | None:
        told = [named, *self._above(named)]
        listed = self._list(next((one.list for one in told if one.list), ""))
        if listed is None:
            return None
        said = chain.from_iterable((listed.level_of(one.style), _whole(one.level)) for one in told)
        level = next((level for level in said if level is not None), 0)
        return (listed, level) if level in listed.levels else None

    def _above(self, named: _Named) -> Iterator[_Named]:
        for _ in range(_STYLES_MAX):
            style = self._styles.get(named.based_on)
            if style is None:
                return
            yield style
            named = style

    def _list(self, name: str) -> _List | None:
        if name not in self._lists:
            num = None if name == "0" else self._nums.get(name)  # 0 removes the number of the style
            self._lists[name] = None if num is None else self._list_of(name, num)
        return self._lists[name]

    def _list_of(self, name: str, num: Any) -> _List:
        abstract = value(num, "abstractNumId")
        overrides = dict(_by_level(num, "lvlOverride"))
        own = {number: child(override, "lvl") for number, override in overrides.items()}
        starts = {number: _whole(value(override, "startOverride")) for number, override in overrides.items()}
        levels = {number: _level(node) for number, node in own.items() if node is not None}
        return _List(
            name,
            abstract,
            self._levels_of(self._linked_from(abstract)) | levels,
            {number: start for number, start in starts.items() if start is not None},
        )

    def _linked_from(self, abstract: str) -> Any:
        found = self._abstracts.get(abstract)
        link = value(found, "numStyleLink")
        return self._linked.get(link, found) if link else found

    def _levels_of(self, abstract: Any) -> dict[int, _Level]:
        """Return the levels of an abstract numbering, parsed once."""
        if abstract not in self._levels:
            nodes = {} if abstract is None else dict(_by_level(abstract, "lvl"))
            self._levels[abstract] = {number: _level(node) for number, node in nodes.items()}
        return self._levels[abstract]


class Counting:
    """Counts the numbered paragraphs of one text flow. Lists of the same `w:abstractNum` share a count. Text boxes count
    separately."""

    def __init__(self, numbering: Numbering) -> None:
        self._numbering = numbering
        self._counts: dict[tuple[bool, str], dict[int, int]] = {}
        self._begun: set[tuple[bool, str, int]] = set()

    def number(self, paragraph: Any, is_said: bool, is_boxed: bool) -> str:
        """Return the number of the next paragraph, or "". `is_said`: the paragraph has text; without text, bullets are
        omitted."""
        place = self._numbering.place(paragraph)
        if place is None:
            return ""
        listed, level = place
        counts = self._counts.setdefault((is_boxed, listed.abstract), {})
        for number in sorted(n for n in listed.levels if n <= level):
            if number == level or number not in counts:  # one that is left out counts, too
                counts[number] = self._next(listed, number, counts.get(number), is_boxed)
        for deeper in [n for n in counts if n > level]:
            if deeper not in listed.levels or listed.levels[deeper].begins_anew(level):
                del counts[deeper]
        written = _written(listed, level, counts)
        about = listed.levels[level]
        if not written.replace(" ", "") or (about.spelling == "bullet" and not is_said):
            return ""
        return written + about.separator if is_said and not written.endswith(" ") else written

    def _next(self, listed: _List, level: int, last: int | None, is_boxed: bool) -> int:
        place = (is_boxed, listed.name, level)
        begins = level in listed.starts and place not in self._begun
        self._begun.add(place)
        return listed.first(level) if begins or last is None else last + 1


def _number(properties: Any) -> tuple[str, str]:
    about = child(properties, "numPr")
    return value(about, "numId"), value(about, "ilvl")


def _of_style(style: Any) -> _Named:
    return _Named(
        *_number(child(style, "pPr")),
        style=style.get(qn("w:styleId"), ""),
        based_on=value(style, "basedOn"),
    )


def _by_level(node: Any, name: str) -> Iterator[tuple[int, Any]]:
    for about in node.iterchildren(qn(f"w:{name}")):
        number = _whole(about.get(qn("w:ilvl"), ""))
        if number is not None and number < _LEVELS:
            yield number, about


def _level(node: Any) -> _Level:
    spelling = value(node, "numFmt")
    template = _BLANKS.sub(" ", value(node, "lvlText")[:_NUMBER_MAX])
    if spelling == "bullet":
        template = "•" if template or child(node, "lvlPicBulletId") is not None else ""
    return _Level(
        start=_whole(value(node, "start")) or 0,
        spelling=spelling,
        template="" if switch(child(node, "rPr"), "vanish") else template,
        separator="" if value(node, "suff") == "nothing" else " ",
        is_legal=switch(node, "isLgl") or False,
        restart=_whole(value(node, "lvlRestart")),
        style=value(node, "pStyle"),
    )


def _written(listed: _List, level: int, counts: dict[int, int]) -> str:
    def spelled(place: re.Match[str]) -> str:
        number = int(place[1]) - 1
        if number > level or number not in listed.levels:
            return ""
        spelling = listed.levels[number].spelling
        is_plain = listed.levels[level].is_legal and spelling != "decimalZero"
        return _spelled(counts[number], "decimal" if is_plain else spelling)

    return _PLACE.sub(spelled, listed.levels[level].template)[:_NUMBER_MAX]


def _spelled(number: int, spelling: str) -> str:
    if spelling in ("none", "bullet"):
        return ""
    if spelling == "decimalZero":
        return f"{number:02}"
    if spelling in ("lowerLetter", "upperLetter") and 0 < number <= _LETTERS_MAX:
        letter = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)
        return letter if spelling == "lowerLetter" else letter.upper()
    if spelling in ("lowerRoman", "upperRoman") and 0 < number < 4000:
        return _roman(number) if spelling == "lowerRoman" else _roman(number).upper()
    return str(number)


def _roman(number: int) -> str:
    written = ""
    for worth, letters in _ROMAN:
        written += letters * (number // worth)
        number %= worth
    return written


def _whole(written: str) -> int | None:
    return int(written) if _WHOLE.fullmatch(written) else None
