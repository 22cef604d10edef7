"""Split tables into parts and repeat the column names above each, so a passage explains its numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, repeat, zip_longest
from typing import NamedTuple

from vademecum.engines.files.formats.ooxml.currencies import NAME, SYMBOLS
from vademecum.engines.files.result import Part
from vademecum.model.documents.chunking import BUDGET, points

NAMES_MAX = BUDGET // 3  # points; longer ones would leave too little room for rows
LOOKED_AT = 10  # rows in which the names of the columns may stand; a title may be above them
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
    """Split a table with column names into parts of one chunk each; return `whole` if it fits a chunk or has no names.
    `rows`: the rows of `whole`, whose cells are separated by one of `separators`."""
    if points(whole.text) <= BUDGET:
        return [whole]
    coming = iter(rows)
    top = list(islice(coming, LOOKED_AT + SAMPLE))
    at = _names(top, separators)
    if at is None:
        return [whole]
    names = top[at].text
    above = "\n".join(row.text for row in top[: at + 1])
    rooms = chain([BUDGET - points(above)], repeat(BUDGET - points(names)))
    parts: list[Part] = []
    for stretch in _stretches(chain(top[at + 1 :], coming), rooms):
        first, last = stretch[0].number if parts else top[0].number, stretch[-1].number
        section = f"{whole.section}, rows {first}-{last}" if whole.section else f"Rows {first}-{last}"
        parts.append(Part("\n".join([above, *(row.text for row in stretch)]), whole.page, section))
        above = names
    return parts


def _stretches(rows: Iterable[Row], rooms: Iterator[int]) -> Iterator[list[Row]]:
    """Yield groups of rows that fit the given sizes, with at least one row each. `rooms`: sizes in points."""
    stretch: list[Row] = []
    left = next(rooms)
    for row in rows:
        needed = points(f"\n{row.text}")
        if stretch and needed > left:
            yield stretch
            stretch, left = [], next(rooms)
        stretch.append(row)
        left -= needed
    if stretch:
        yield stretch


def _names(rows: Sequence[Row], separators: str) -> int | None:
    """Return the index of the header row: several names, no numbers, and a numeric column below. None if there is none."""
    said = "".join(row.text for row in rows[:LOOKED_AT])
    separator = max(separators, key=said.count)
    for at, row in enumerate(rows[:LOOKED_AT]):
        names = _cells(row, separator, NAMES_MAX)
        if _are_names(names):
            below = (_cells(other, separator, BUDGET) for other in rows[at + 1 : at + 1 + SAMPLE])
            return at if _has_numbers([cells for cells in below if 1 < len(cells) <= len(names)]) else None
    return None


def _are_names(cells: Sequence[str]) -> bool:
    """Return whether the cells can be column names: at least two, no number, at most one empty (above row labels)."""
    said = [cell for cell in cells if cell]
    return len(said) > 1 and len(cells) - len(said) <= 1 and not any(map(_NUMBER.fullmatch, said))


def _has_numbers(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether a column has numbers in three quarters of its rows. Workbook rows omit trailing empty cells."""
    columns = zip_longest(*rows, fillvalue="") if len(rows) > 1 else ()
    return any(
        sum(bool(_NUMBER.fullmatch(cell)) for cell in column) * 4 >= 3 * len(rows) for column in columns
    )


def _cells(row: Row, separator: str, most: int) -> list[str]:
    """Return the cells of a row; no cells if the row takes more than `most` points."""
    if points(row.text) > most:
        return []
    return [cell.strip(_EDGES) for cell in join_quoted(row.text.split(separator), separator)]


def join_quoted(pieces: Iterable[str], between: str) -> Iterator[str]:
    """Yield the pieces, joining those that an open quotation mark spans."""
    held: list[str] = []
    is_open = False
    for piece in pieces:
        held.append(piece)
        is_open ^= piece.count('"') % 2 == 1
        if not is_open:
            yield between.join(held)
            held = []
    if held:
        yield between.join(held)
