"""Parse XLSX in reading order: a sheet is a section, a row is a line. Hidden sheets are skipped. Hidden rows and columns
are read, because filters hide them temporarily.

A cell with an invalid value (a date outside the calendar, letters as a number) keeps its stored text. Of the styles, only
number formats are read, because programs write the other styles and the metadata in incompatible ways.
"""

from __future__ import annotations

import datetime
import math
import posixpath
import re
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from openpyxl.utils import column_index_from_string
from openpyxl.utils.datetime import from_ISO8601
from openpyxl.xml.functions import iterparse

from vademecum.engines.files.formats.ooxml import zip_container
from vademecum.engines.files.formats.ooxml.date_formats import Look
from vademecum.engines.files.formats.ooxml.number_formats import looks, spelled, stored
from vademecum.engines.files.result import XLSX, Limits, Parsed, Part, Unreadable
from vademecum.engines.files.tables import Row, split_table

CELLS_MAX = 2_000_000
ROWS_MAX = 1_048_576  # Excel has no more
_MAIN, _RELATIONS = "xl/workbook.xml", "xl/_rels/workbook.xml.rels"
_STRING, _RUN, _LETTERS, _ROW, _VALUE, _INLINE = (
    f"{{http://schemas.openxmlformats.org/spreadsheetml/2006/main}}{name}"
    for name in ("si", "r", "t", "row", "v", "is")
)
_SAID = (_RUN, _LETTERS)
_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_PLACE = re.compile("([A-Za-z]{1,3})[0-9]+")
_INDEX = re.compile("[0-9]{1,9}")
_NUMERAL = re.compile(r"[ \t\r\n]*[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[ \t\r\n]*")
_ESCAPED = re.compile(
    "_x(?!D[89A-F])([0-9A-F]{4})_", re.IGNORECASE
)  # characters that XML cannot contain; surrogates stay escaped
_Thing = TypeVar("_Thing")


class _Book(NamedTuple):
    """Data that all sheets share. `strings`: the shared strings; None if missing. `looks`: formats by style index."""

    strings: Sequence[str] | None
    looks: Sequence[Look]


def parse(data: bytes, limits: Limits) -> Parsed:
    with zipfile.ZipFile(zip_container.open_office_file(data, limits)) as opened:
        main = zip_container.parse_xml(zip_container.read_member(opened, _MAIN, limits))
        related = dict(_related(opened, limits))
        book = _book(opened, main, dict(related.values()), limits)
        parts: list[Part] = []
        cells = 0
        for sheet in main.iterfind("{*}sheets/{*}sheet"):
            kind, place = related.get(sheet.get(_ID), ("worksheet", None))
            if kind != "worksheet" or sheet.get("state", "visible") != "visible":
                continue
            rows = []
            for number, values in _rows(opened, _there(place), book):
                if values:  # some programs write an empty last row far below the data
                    cells += len(values) + 1
                if cells > CELLS_MAX:
                    raise Unreadable("TOO_EXPANSIVE")
                line = "\t".join(values).rstrip()
                if line:
                    rows.append(Row(number, line))
            whole = Part("\n".join(row.text for row in rows), section=sheet.get("name"))
            parts += split_table(whole, rows, "\t")
    return Parsed(XLSX, parts)


def _related(opened: zipfile.ZipFile, limits: Limits) -> Iterator[tuple[str, tuple[str, str | None]]]:
    """Yield the id, kind and archive member of each relation of the workbook; the member is None if missing."""
    meant = zip_container.member_finder(opened)
    for relation in zip_container.parse_xml(
        zip_container.read_member(opened, _RELATIONS, limits)
    ).iterchildren("*"):
        place = posixpath.normpath(posixpath.join("/xl", relation.get("Target", ""))).lstrip("/")
        yield relation.get("Id"), (relation.get("Type", "").rpartition("/")[2], meant(place))


def _there(thing: _Thing | None) -> _Thing:
    """Return the thing. Raises Unreadable if it is None, because text would be missing silently."""
    if thing is None:
        raise Unreadable("DAMAGED")
    return thing


def _book(opened: zipfile.ZipFile, main: Any, places: dict[str, str | None], limits: Limits) -> _Book:
    strings, place = places.get("sharedStrings"), places.get("styles")
    styles = (
        zip_container.parse_xml(zip_container.read_member(opened, place, limits))
        if place is not None
        else None
    )
    properties = main.find("{*}workbookPr")
    since_1904 = properties is not None and properties.get("date1904") in ("1", "true")
    return _Book(
        None if strings is None else list(_strings(opened, strings)),
        () if styles is None else looks(styles, since_1904),
    )


def _strings(opened: zipfile.ZipFile, place: str) -> Iterator[str]:
    with opened.open(place) as source:
        for _, node in iterparse(source):
            if node.tag == _STRING:
                yield _string(node)
                node.clear()


def _rows(opened: zipfile.ZipFile, place: str, book: _Book) -> Iterator[tuple[int, list[str]]]:
    """Yield rows with their numbers, in ascending order. Rows out of order are skipped."""
    last, number = 0, 0
    with opened.open(place) as source:
        for _, element in iterparse(source):
            if element.tag == _ROW:
                number = _number(element.get("r"), number + 1)
                if number > last:
                    last = number
                    yield number, _values(element, book)
                element.clear()


def _number(claimed: str | None, otherwise: int) -> int:
    number = otherwise if claimed is None else float(claimed)
    if number != int(number) or number > ROWS_MAX:
        raise Unreadable("DAMAGED")
    return int(number)


def _values(row: Any, book: _Book) -> list[str]:
    values: list[str] = []
    for cell in row:
        place = _PLACE.fullmatch(cell.get("r", ""))
        at = column_index_from_string(place[1]) - 1 if place else len(values)
        values += [""] * (at + 1 - len(values))
        values[at] = _value(cell, book)
    return values


def _value(cell: Any, book: _Book) -> str:
    kind, said = cell.get("t", "n"), cell.findtext(_VALUE) or ""
    if kind == "inlineStr":
        return "".join(map(_string, cell.iterfind(_INLINE)))
    if kind == "s":
        return _at(_there(book.strings), said) or ""
    try:
        return _meant(kind, said, cell.get("s", "0"), book) if said else ""
    except (ValueError, OverflowError):
        return said


def _meant(kind: str, said: str, style: str, book: _Book) -> str:
    if kind == "b":
        return str(bool(int(said)))
    if kind == "d":
        return _written(said)
    if kind != "n":
        return said
    if not _NUMERAL.fullmatch(said):  # Python accepts more notations than a workbook
        raise ValueError(said)
    number = float(said) if set(said) & set(".eE") else int(said)
    if not math.isfinite(number):
        raise ValueError(said)
    return (_at(book.looks, style) or stored)(number, spelled(number))


def _written(said: str) -> str:
    meant = from_ISO8601(said)
    return said if isinstance(meant, datetime.timedelta) else str(meant)


def _at(things: Sequence[_Thing], written: str) -> _Thing | None:
    at = int(written) if _INDEX.fullmatch(written) else len(things)
    return things[at] if at < len(things) else None


def _string(node: Any) -> str:
    """Return the text of a string, plain or in runs, without phonetic text."""
    runs = (
        child.findtext(_LETTERS) if child.tag == _RUN else child.text for child in node if child.tag in _SAID
    )
    return _ESCAPED.sub(_unescaped, "".join(filter(None, runs)))


def _unescaped(found: re.Match[str]) -> str:
    letter = chr(int(found[1], 16))
    return letter if letter >= " " or letter in "\t\n\r" else ""
