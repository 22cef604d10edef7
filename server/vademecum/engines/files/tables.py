"""Tables: the names of the columns stand above each stretch of rows, so that a passage says what its numbers are."""

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
    """`number` counts from 1, as spreadsheets do. A cell may hold a line end."""

    number: int
    text: str


def table(whole: Part, rows: Iterable[Row], separators: str) -> list[Part]:
    """`whole`, or, if that is more than one chunk and names its columns, stretches of a chunk each. `rows`: its own, with
    one of the separators between the cells."""
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
    """As many rows as fit into each room, and one at least. `rooms`: in points."""
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
    """Which row names the columns: several names, none a number, and numbers below one of them."""
    said = "".join(row.text for row in rows[:LOOKED_AT])
    separator = max(separators, key=said.count)
    for at, row in enumerate(rows[:LOOKED_AT]):
        names = _cells(row, separator, NAMES_MAX)
        if _are_names(names):
            below = (_cells(other, separator, BUDGET) for other in rows[at + 1 : at + 1 + SAMPLE])
            return at if _has_numbers([cells for cells in below if 1 < len(cells) <= len(names)]) else None
    return None


def _are_names(cells: Sequence[str]) -> bool:
    """Several, and none a number. One may be missing, as above what the rows are called."""
    said = [cell for cell in cells if cell]
    return len(said) > 1 and len(cells) - len(said) <= 1 and not any(map(_NUMBER.fullmatch, said))


def _has_numbers(rows: Sequence[Sequence[str]]) -> bool:
    """In three of four rows of a column. A row of a workbook has no empty cells at its end."""
    columns = zip_longest(*rows, fillvalue="") if len(rows) > 1 else ()
    return any(
        sum(bool(_NUMBER.fullmatch(cell)) for cell in column) * 4 >= 3 * len(rows) for column in columns
    )


def _cells(row: Row, separator: str, most: int) -> list[str]:
    """None of a row that costs more than `most` points."""
    if points(row.text) > most:
        return []
    return [cell.strip(_EDGES) for cell in quoted(row.text.split(separator), separator)]


def quoted(pieces: Iterable[str], between: str) -> Iterator[str]:
    """The pieces; one goes on while a quotation mark is open in it."""
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
