"""Split tables into parts. Repeat the column names above each part, so that every passage explains its numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, repeat, zip_longest
from typing import NamedTuple

from vademecum.engines.files.formats.ooxml.currencies import NAME, SYMBOLS
from vademecum.engines.files.result import Part
from vademecum.model.documents.chunking import BUDGET, points

NAMES_MAX = (
    BUDGET // 3
)  # in the points of `chunking`; longer column names would leave too little of a chunk for rows
HEADER_ROWS_MAX = 10  # the header row is one of this many first rows; a title may be above it
SAMPLE = 20
_NUMBER = re.compile(
    rf"[(+~-]?(?:[A-Z]{{0,3}}[{SYMBOLS}] ?|(?:{NAME}) )?[0-9][0-9.,:/%{SYMBOLS} )\xa0'-]*(?:{NAME})?"
)
_EDGES = " \t\xa0\"'"


class Row(NamedTuple):
    """A row of a table. `number` counts from 1, as in spreadsheets. A cell may contain line ends."""

    number: int
    text: str


def split_table(whole: Part, rows: Iterable[Row], separators: str) -> list[Part]:
    """Split a table with column names into parts of one chunk each. Return [whole] if it fits a chunk or has no names.

    `rows` are the rows of `whole`, whose cells are separated by one of `separators`.
    """
    if points(whole.text) <= BUDGET:
        return [whole]
    remaining_rows = iter(rows)
    top = list(islice(remaining_rows, HEADER_ROWS_MAX + SAMPLE))
    at = _find_header(top, separators)
    if at is None:
        return [whole]
    names = top[at].text
    above = "\n".join(row.text for row in top[: at + 1])
    sizes = chain([BUDGET - points(above)], repeat(BUDGET - points(names)))
    parts: list[Part] = []
    for group in _group_rows(chain(top[at + 1 :], remaining_rows), sizes):
        first, last = group[0].number if parts else top[0].number, group[-1].number
        section = f"{whole.section}, rows {first}-{last}" if whole.section else f"Rows {first}-{last}"
        parts.append(Part("\n".join([above, *(row.text for row in group)]), whole.page, section))
        above = names
    return parts


def _group_rows(rows: Iterable[Row], sizes: Iterator[int]) -> Iterator[list[Row]]:
    """Yield groups of rows that fit the given sizes in points, with at least one row each."""
    group: list[Row] = []
    space = next(sizes)
    for row in rows:
        needed = points(f"\n{row.text}")
        if group and needed > space:
            yield group
            group, space = [], next(sizes)
        group.append(row)
        space -= needed
    if group:
        yield group


def _find_header(rows: Sequence[Row], separators: str) -> int | None:
    """Return the index of the header row, or None.

    A header row contains several names and no numbers, and a column below it contains numbers.
    """
    text = "".join(row.text for row in rows[:HEADER_ROWS_MAX])
    separator = max(separators, key=text.count)
    for at, row in enumerate(rows[:HEADER_ROWS_MAX]):
        names = _cells(row, separator, NAMES_MAX)
        if _are_names(names):
            below = (_cells(other, separator, BUDGET) for other in rows[at + 1 : at + 1 + SAMPLE])
            return at if _has_numbers([cells for cells in below if 1 < len(cells) <= len(names)]) else None
    return None


def _are_names(cells: Sequence[str]) -> bool:
    """Return whether the cells can be column names: at least two, no number, at most one empty (above row labels)."""
    filled = [cell for cell in cells if cell]
    return len(filled) > 1 and len(cells) - len(filled) <= 1 and not any(map(_NUMBER.fullmatch, filled))


def _has_numbers(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether at least three quarters of the cells of any column are numbers.

    Rows differ in length, because workbooks omit trailing empty cells.
    """
    columns = zip_longest(*rows, fillvalue="") if len(rows) > 1 else ()
    return any(
        sum(bool(_NUMBER.fullmatch(cell)) for cell in column) * 4 >= 3 * len(rows) for column in columns
    )


def _cells(row: Row, separator: str, max_points: int) -> list[str]:
    """Return the cells of a row, or no cells if the row takes more than `max_points` points."""
    if points(row.text) > max_points:
        return []
    return [cell.strip(_EDGES) for cell in join_quoted(row.text.split(separator), separator)]


def join_quoted(pieces: Iterable[str], separator: str) -> Iterator[str]:
    """Yield the pieces, with the pieces of a quoted text joined by the separator."""
    joined: list[str] = []
    is_open = False
    for piece in pieces:
        joined.append(piece)
        is_open ^= piece.count('"') % 2 == 1
        if not is_open:
            yield separator.join(joined)
            joined = []
    if joined:
        yield separator.join(joined)
