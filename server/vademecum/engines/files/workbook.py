"""XLSX in reading order: a sheet is a section, a row a line."""

from __future__ import annotations

import openpyxl

from vademecum.engines.files import archive
from vademecum.engines.files.parsed import XLSX, Limits, Parsed, Part, Unreadable
from vademecum.engines.files.table import Row, table

CELLS_MAX = 2_000_000
ROWS_MAX = 1_048_576  # Excel has no more


def parse(data: bytes, limits: Limits) -> Parsed:
    book = openpyxl.load_workbook(archive.office(data, limits), read_only=True, data_only=True)
    parts: list[Part] = []
    cells = 0
    for sheet in book.worksheets:
        rows = []
        sheet.reset_dimensions()  # a file may claim a million rows that it does not have
        for number, row in enumerate(sheet.iter_rows(values_only=True), start=1):
            values = ["" if value is None else str(value) for value in row]
            if values:  # some programs write the last row of a sheet, however empty those above it
                cells += len(values) + 1
            if cells > CELLS_MAX:
                raise Unreadable("TOO_EXPANSIVE")
            if number > ROWS_MAX:
                raise Unreadable("DAMAGED")
            line = "\t".join(values).rstrip()
            if line:
                rows.append(Row(number, line))
        whole = Part("\n".join(row.text for row in rows), section=sheet.title)
        parts += table(whole, rows, "\t")
    return Parsed(XLSX, parts)
