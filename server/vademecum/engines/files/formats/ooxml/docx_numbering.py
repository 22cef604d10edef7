"""Compute the numbers of clauses and lists, which Word generates and does not store as text.

A paragraph, or its style, refers to a `w:num`, which refers to a `w:abstractNum` with the numbering of each level.
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
_STYLES_MAX = 20  # maximum length of a chain of inherited styles, which may be circular
_NUMBER_MAX = 100  # maximum length of a number in characters
_LETTERS_MAX = 780  # the highest number that Word writes in letters: thirty times "z"
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
    """The numbering of a list level. In `template`, %1 stands for the number of the first level, and so on.

    Only paragraphs of the first `restart` levels reset the count; None means all higher levels.
    """

    start: int
    spelling: str
    template: str
    separator: str
    is_legal: bool
    restart: int | None
    style: str

    def restarts_after(self, level: int) -> bool:
        return self.restart is None or level < self.restart


@dataclass(frozen=True)
class _List:
    """A `w:num`: the levels of its `w:abstractNum` with its overrides. `starts` maps levels to overridden starts."""

    name: str
    abstract: str
    levels: dict[int, _Level]
    starts: dict[int, int]

    def first(self, level: int) -> int:
        return self.starts.get(level, self.levels[level].start)

    def level_of(self, style: str) -> int | None:
        return next((number for number, level in self.levels.items() if style and level.style == style), None)


@dataclass(frozen=True)
class _NumberingProperties:
    """The numbering properties of a paragraph or style. A property that is not set is ""."""

    list: str
    level: str
    style: str = ""
    based_on: str = ""


_Place = tuple[_List, int]


class Numbering:
    """The lists of a document, from the XML roots of its numbering and styles."""

    def __init__(self, root: Any, styles: Any) -> None:
        own = (_read_style(style) for style in styles.iterchildren(qn("w:style")))
        self._styles = {style.style: style for style in own}
        abstracts = list(root.iterchildren(qn("w:abstractNum")))
        self._abstracts = {abstract.get(qn("w:abstractNumId"), ""): abstract for abstract in abstracts}
        self._linked = {value(abstract, "styleLink"): abstract for abstract in abstracts}
        self._nums = {num.get(qn("w:numId"), ""): num for num in root.iterchildren(qn("w:num"))}
        self._levels: dict[Any, dict[int, _Level]] = {}
        self._lists: dict[str, _List | None] = {}
        self._places: dict[_NumberingProperties, _Place | None] = {}

    def place(self, paragraph: Any) -> _Place | None:
        """Return the list and level of a paragraph, or None."""
        properties = child(paragraph, "pPr")
        own = _NumberingProperties(*_read_number(properties), based_on=value(properties, "pStyle"))
        if own not in self._places:
            self._places[own] = self._find_place(own)
        return self._places[own]

    def _find_place(self, own: _NumberingProperties) -> _Place | None:
        inherited = [own, *self._ancestors(own)]
        numbered_list = self._get_list(next((one.list for one in inherited if one.list), ""))
        if numbered_list is None:
            return None
        levels = chain.from_iterable(
            (numbered_list.level_of(one.style), _parse_int(one.level)) for one in inherited
        )
        level = next((level for level in levels if level is not None), 0)
        return (numbered_list, level) if level in numbered_list.levels else None

    def _ancestors(self, own: _NumberingProperties) -> Iterator[_NumberingProperties]:
        for _ in range(_STYLES_MAX):
            style = self._styles.get(own.based_on)
            if style is None:
                return
            yield style
            own = style

    def _get_list(self, name: str) -> _List | None:
        if name not in self._lists:
            num = None if name == "0" else self._nums.get(name)  # 0 means no number, despite the style
            self._lists[name] = None if num is None else self._read_list(name, num)
        return self._lists[name]

    def _read_list(self, name: str, num: Any) -> _List:
        abstract = value(num, "abstractNumId")
        overrides = dict(_by_level(num, "lvlOverride"))
        own = {number: child(override, "lvl") for number, override in overrides.items()}
        starts = {
            number: _parse_int(value(override, "startOverride")) for number, override in overrides.items()
        }
        levels = {number: _read_level(node) for number, node in own.items() if node is not None}
        return _List(
            name,
            abstract,
            self._get_levels(self._resolve_link(abstract)) | levels,
            {number: start for number, start in starts.items() if start is not None},
        )

    def _resolve_link(self, abstract: str) -> Any:
        found = self._abstracts.get(abstract)
        link = value(found, "numStyleLink")
        return self._linked.get(link, found) if link else found

    def _get_levels(self, abstract: Any) -> dict[int, _Level]:
        """Return the levels of an abstract numbering, parsed once."""
        if abstract not in self._levels:
            nodes = {} if abstract is None else dict(_by_level(abstract, "lvl"))
            self._levels[abstract] = {number: _read_level(node) for number, node in nodes.items()}
        return self._levels[abstract]


class ListCounter:
    """A counter of the numbered paragraphs of one text flow.

    Lists of the same `w:abstractNum` share a count. Text boxes are counted separately.
    """

    def __init__(self, numbering: Numbering) -> None:
        self._numbering = numbering
        self._counts: dict[tuple[bool, str], dict[int, int]] = {}
        self._started: set[tuple[bool, str, int]] = set()

    def number(self, paragraph: Any, has_text: bool, is_boxed: bool) -> str:
        """Return the number of the next paragraph, or "". A paragraph without text gets no bullet."""
        place = self._numbering.place(paragraph)
        if place is None:
            return ""
        numbered_list, level = place
        counts = self._counts.setdefault((is_boxed, numbered_list.abstract), {})
        for number in sorted(n for n in numbered_list.levels if n <= level):
            if number == level or number not in counts:  # also start higher levels that have no paragraph
                counts[number] = self._next(numbered_list, number, counts.get(number), is_boxed)
        for deeper in [n for n in counts if n > level]:
            if deeper not in numbered_list.levels or numbered_list.levels[deeper].restarts_after(level):
                del counts[deeper]
        text = _format_number(numbered_list, level, counts)
        current = numbered_list.levels[level]
        if not text.replace(" ", "") or (current.spelling == "bullet" and not has_text):
            return ""
        return text + current.separator if has_text and not text.endswith(" ") else text

    def _next(self, numbered_list: _List, level: int, last: int | None, is_boxed: bool) -> int:
        place = (is_boxed, numbered_list.name, level)
        is_first = level in numbered_list.starts and place not in self._started
        self._started.add(place)
        return numbered_list.first(level) if is_first or last is None else last + 1


def _read_number(properties: Any) -> tuple[str, str]:
    about = child(properties, "numPr")
    return value(about, "numId"), value(about, "ilvl")


def _read_style(style: Any) -> _NumberingProperties:
    return _NumberingProperties(
        *_read_number(child(style, "pPr")),
        style=style.get(qn("w:styleId"), ""),
        based_on=value(style, "basedOn"),
    )


def _by_level(node: Any, name: str) -> Iterator[tuple[int, Any]]:
    for about in node.iterchildren(qn(f"w:{name}")):
        number = _parse_int(about.get(qn("w:ilvl"), ""))
        if number is not None and number < _LEVELS:
            yield number, about


def _read_level(node: Any) -> _Level:
    spelling = value(node, "numFmt")
    template = _BLANKS.sub(" ", value(node, "lvlText")[:_NUMBER_MAX])
    if spelling == "bullet":
        template = "•" if template or child(node, "lvlPicBulletId") is not None else ""
    return _Level(
        start=_parse_int(value(node, "start")) or 0,
        spelling=spelling,
        template="" if switch(child(node, "rPr"), "vanish") else template,
        separator="" if value(node, "suff") == "nothing" else " ",
        is_legal=switch(node, "isLgl") or False,
        restart=_parse_int(value(node, "lvlRestart")),
        style=value(node, "pStyle"),
    )


def _format_number(numbered_list: _List, level: int, counts: dict[int, int]) -> str:
    def replace_level(place: re.Match[str]) -> str:
        number = int(place[1]) - 1
        if number > level or number not in numbered_list.levels:
            return ""
        spelling = numbered_list.levels[number].spelling
        is_plain = numbered_list.levels[level].is_legal and spelling != "decimalZero"
        return _spell(counts[number], "decimal" if is_plain else spelling)

    return _PLACE.sub(replace_level, numbered_list.levels[level].template)[:_NUMBER_MAX]


def _spell(number: int, spelling: str) -> str:
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


def _parse_int(written: str) -> int | None:
    return int(written) if _WHOLE.fullmatch(written) else None
