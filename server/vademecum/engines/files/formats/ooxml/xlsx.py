"""Parse XLSX in reading order. A sheet becomes a section, and a row becomes a line.

Hidden sheets are skipped. Hidden rows and columns are read, because filters hide them temporarily.

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
from vademecum.engines.files.formats.ooxml.date_formats import NumberFormat
from vademecum.engines.files.formats.ooxml.number_formats import (
    format_plain,
    read_number_formats,
    spell_number,
)
from vademecum.engines.files.result import XLSX, Limits, Parsed, Part, Unreadable
from vademecum.engines.files.tables import Row, split_table

CELLS_MAX = 2_000_000
ROWS_MAX = 1_048_576  # maximum number of rows of a sheet, as in Excel
_MAIN, _RELATIONS = "xl/workbook.xml", "xl/_rels/workbook.xml.rels"
_STRING, _RUN, _TEXT, _ROW, _VALUE, _INLINE = (
    f"{{http://schemas.openxmlformats.org/spreadsheetml/2006/main}}{name}"
    for name in ("si", "r", "t", "row", "v", "is")
)
_VISIBLE = (_RUN, _TEXT)
_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_PLACE = re.compile("([A-Za-z]{1,3})[0-9]+")
_INDEX = re.compile("[0-9]{1,9}")
_NUMERAL = re.compile(r"[ \t\r\n]*[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[ \t\r\n]*")
# An escape of a character that XML cannot contain. Surrogates stay escaped.
_ESCAPE = re.compile("_x(?!D[89A-F])([0-9A-F]{4})_", re.IGNORECASE)
_T = TypeVar("_T")


class _Workbook(NamedTuple):
    """Data that all sheets share.

    `strings` are the shared strings, or None if they are missing. `formats` contains the number format of each style.
    """

    strings: Sequence[str] | None
    formats: Sequence[NumberFormat]


def parse(data: bytes, limits: Limits) -> Parsed:
    with zipfile.ZipFile(zip_container.open_office_file(data, limits)) as archive:
        main = zip_container.parse_xml(zip_container.read_member(archive, _MAIN, limits))
        related = dict(_read_relations(archive, limits))
        book = _read_workbook(archive, main, dict(related.values()), limits)
        parts: list[Part] = []
        cells = 0
        for sheet in main.iterfind("{*}sheets/{*}sheet"):
            kind, place = related.get(sheet.get(_ID), ("worksheet", None))
            if kind != "worksheet" or sheet.get("state", "visible") != "visible":
                continue
            rows = []
            for number, values in _read_rows(archive, _require(place), book):
                if values:  # skip an empty row, which some programs write far below the data
                    cells += len(values) + 1
                if cells > CELLS_MAX:
                    raise Unreadable("TOO_EXPANSIVE")
                line = "\t".join(values).rstrip()
                if line:
                    rows.append(Row(number, line))
            whole = Part("\n".join(row.text for row in rows), section=sheet.get("name"))
            parts += split_table(whole, rows, "\t")
    return Parsed(XLSX, parts)


def _read_relations(archive: zipfile.ZipFile, limits: Limits) -> Iterator[tuple[str, tuple[str, str | None]]]:
    """Yield the id, kind and archive member of each relation of the workbook; the member is None if missing."""
    find_member = zip_container.member_finder(archive)
    for relation in zip_container.parse_xml(
        zip_container.read_member(archive, _RELATIONS, limits)
    ).iterchildren("*"):
        place = posixpath.normpath(posixpath.join("/xl", relation.get("Target", ""))).lstrip("/")
        yield relation.get("Id"), (relation.get("Type", "").rpartition("/")[2], find_member(place))


def _require(value: _T | None) -> _T:
    """Return the value. Raises Unreadable if it is None, because otherwise text would be missing silently."""
    if value is None:
        raise Unreadable("DAMAGED")
    return value


def _read_workbook(
    archive: zipfile.ZipFile, main: Any, places: dict[str, str | None], limits: Limits
) -> _Workbook:
    strings, place = places.get("sharedStrings"), places.get("styles")
    styles = (
        zip_container.parse_xml(zip_container.read_member(archive, place, limits))
        if place is not None
        else None
    )
    properties = main.find("{*}workbookPr")
    since_1904 = properties is not None and properties.get("date1904") in ("1", "true")
    return _Workbook(
        None if strings is None else list(_read_strings(archive, strings)),
        () if styles is None else read_number_formats(styles, since_1904),
    )


def _read_strings(archive: zipfile.ZipFile, place: str) -> Iterator[str]:
    with archive.open(place) as source:
        for _, node in iterparse(source):
            if node.tag == _STRING:
                yield _string_text(node)
                node.clear()


def _read_rows(archive: zipfile.ZipFile, place: str, book: _Workbook) -> Iterator[tuple[int, list[str]]]:
    """Yield rows with their numbers, in ascending order. Rows out of order are skipped."""
    last, number = 0, 0
    with archive.open(place) as source:
        for _, element in iterparse(source):
            if element.tag == _ROW:
                number = _row_number(element.get("r"), number + 1)
                if number > last:
                    last = number
                    yield number, _row_values(element, book)
                element.clear()


def _row_number(claimed: str | None, otherwise: int) -> int:
    number = otherwise if claimed is None else float(claimed)
    if number != int(number) or number > ROWS_MAX:
        raise Unreadable("DAMAGED")
    return int(number)


def _row_values(row: Any, book: _Workbook) -> list[str]:
    values: list[str] = []
    for cell in row:
        place = _PLACE.fullmatch(cell.get("r", ""))
        at = column_index_from_string(place[1]) - 1 if place else len(values)
        values += [""] * (at + 1 - len(values))
        values[at] = _cell_value(cell, book)
    return values


def _cell_value(cell: Any, book: _Workbook) -> str:
    kind, text = cell.get("t", "n"), cell.findtext(_VALUE) or ""
    if kind == "inlineStr":
        return "".join(map(_string_text, cell.iterfind(_INLINE)))
    if kind == "s":
        return _item_at(_require(book.strings), text) or ""
    try:
        return _format_value(kind, text, cell.get("s", "0"), book) if text else ""
    except (ValueError, OverflowError):
        return text


def _format_value(kind: str, text: str, style: str, book: _Workbook) -> str:
    if kind == "b":
        return str(bool(int(text)))
    if kind == "d":
        return _format_iso_date(text)
    if kind != "n":
        return text
    if not _NUMERAL.fullmatch(text):  # `float` would accept notations that workbooks do not have
        raise ValueError(text)
    number = float(text) if set(text) & set(".eE") else int(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return (_item_at(book.formats, style) or format_plain)(number, spell_number(number))


def _format_iso_date(text: str) -> str:
    time = from_ISO8601(text)
    return text if isinstance(time, datetime.timedelta) else str(time)


def _item_at(items: Sequence[_T], index: str) -> _T | None:
    position = int(index) if _INDEX.fullmatch(index) else len(items)
    return items[position] if position < len(items) else None


def _string_text(node: Any) -> str:
    """Return the text of a string, plain or in runs, without phonetic text."""
    runs = (
        child.findtext(_TEXT) if child.tag == _RUN else child.text for child in node if child.tag in _VISIBLE
    )
    return _ESCAPE.sub(_unescape, "".join(filter(None, runs)))


def _unescape(found: re.Match[str]) -> str:
    letter = chr(int(found[1], 16))
    return letter if letter >= " " or letter in "\t\n\r" else ""
