"""XLSX in reading order: a sheet is a section, a row a line."""

from __future__ import annotations

import openpyxl

from vademecum.engines.files import archive
from vademecum.engines.files.parsed import XLSX, Limits, Parsed, Part, Unreadable

CELLS_MAX = 2_000_000


def parse(data: bytes, limits: Limits) -> Parsed:
    book = openpyxl.load_workbook(archive.office(data, limits), read_only=True, data_only=True)
    parts = []
    cells = 0
    for sheet in book.worksheets:
        lines = []
        sheet.reset_dimensions()  # a file may claim a million rows that it does not have
        for row in sheet.iter_rows(values_only=True):
            values = ["" if value is None else str(value) for value in row]
            cells += len(values) + 1
            if cells > CELLS_MAX:
                raise Unreadable("TOO_EXPANSIVE")
            line = "\t".join(values).rstrip()
            if line:
                lines.append(line)
        parts.append(Part("\n".join(lines), section=sheet.title))
    return Parsed(XLSX, parts)
