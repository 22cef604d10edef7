"""Tables: parts repeat the header row, and tables without one are unchanged."""

import datetime

import pytest

from unit.engines.files.file_reader import in_order, read, sections
from unit.engines.files.sample_files import with_members, workbook
from vademecum.model.documents.chunking import chunk

PRICES = [["Article", "Price, euros", "Since"]]
PRICES += [[f"table of {n} boards", 20 + n, f"2026-05-{n % 28 + 1:02}"] for n in range(200)]


AMOUNTS = [
    "₹12",
    "Rs. 12",
    "฿ 12",
    "12 ₽",
    "12 лв.",
    "S/. 12",
    "CHF 12.50",
    "12.50 USD",
    "-US$12",
    "12 kr.",
    "12.5 zł",
]


def paid(amount):
    return "\n".join(["Article\tPrice", *(f"table of {n} boards\t{amount}" for n in range(300))]).encode()


def prices(separator=",", end="\n"):
    return end.join(separator.join(f'"{cell}"' for cell in row) for row in PRICES).encode()


@pytest.mark.parametrize(
    ("data", "name", "names"),
    [
        (prices(), "prices.csv", '"Article","Price, euros","Since"'),
        (prices(";", "\r\n"), "prices.csv", '"Article";"Price, euros";"Since"'),
        (prices("\t"), "prices.tsv", '"Article"\t"Price, euros"\t"Since"'),
        (workbook(Prices=PRICES), "prices.xlsx", "Article\tPrice, euros\tSince"),
    ],
)
def test_parts_of_long_table_repeat_header(data, name, names):
    parsed = read(data, name)
    pieces = chunk(parsed.parts)
    assert len(pieces) == len(parsed.parts) > 5
    assert all(piece.text.startswith(names) for piece in pieces)
    rows = [row for piece in pieces for row in piece.text.splitlines()[1:]]
    assert len(rows) == 200 and "table of 0 boards" in rows[0] and "table of 199 boards" in rows[-1]
    first, second = (piece.section.removeprefix("Prices, ").lower() for piece in pieces[:2])
    size = len(pieces[0].text.splitlines())
    assert first == f"rows 1-{size}" and second.startswith(f"rows {size + 1}-")


def test_header_is_found_if_last_column_is_mostly_empty():
    rows = [[*row, "sold" if n % 40 == 0 else None] for n, row in enumerate(PRICES[1:])]
    parts = read(workbook(Prices=[[*PRICES[0], "Remarks"], *rows]), "prices.xlsx").parts
    assert len(parts) > 5
    assert all(part.text.startswith("Article\tPrice, euros\tSince\tRemarks\n") for part in parts)


@pytest.mark.parametrize("amount", AMOUNTS)
def test_amount_in_any_currency_counts_as_number(amount):
    parts = read(paid(amount), "prices.tsv").parts
    assert len(parts) > 5
    assert all(part.text.startswith("Article\tPrice\n") for part in parts)


def test_header_is_found_below_title_and_above_multiline_cells():
    noted = prices().replace(b'boards"', b'boards\nand a ""drawer"""')
    parts = read(b"Prices of the joiner\n\n" + noted, "prices.csv").parts
    assert parts[0].text.startswith('Prices of the joiner\n"Article"') and parts[0].section.startswith(
        "Rows 1-"
    )
    assert all(part.text.startswith('"Article","Price, euros"') for part in parts[1:])
    assert all(part.text.count('"') % 2 == 0 for part in parts)
    assert parts[-1].section.endswith("-203")


@pytest.mark.parametrize("end", ["", "\n", "\r\n" * 3000, "x" * 777 + ",5\n"])
def test_empty_lines_are_not_table_rows(end):
    data = "Article,Price\n" + "".join(f"table {n},{n}\n" for n in range(100)) + end
    parts = read(data.encode(), "prices.csv").parts
    last = 102 if end.startswith("x") else 101
    assert parts[-1].section.endswith(f"-{last}")
    assert all(part.text.strip() != "Article,Price" for part in parts)


def test_header_is_found_if_one_column_lacks_a_name():
    """The column without a name contains row labels, or is empty."""
    for names in (",Price,Stock", "Article,Price,Stock,"):
        rows = "\n".join([names, *(f"table of oak {n},{n},7" for n in range(100))])
        parts = read(rows.encode(), "prices.csv").parts
        assert len(parts) > 1 and all(part.text.startswith(names) for part in parts)


@pytest.mark.parametrize(
    "rows",
    [
        ["Ada,London,1815"] * 200,
        [",Price,"] + [f"table of oak {n},{n},7" for n in range(100)],
        ["Name,Town"] + ["Ada Lovelace of the engine,London"] * 200,
        ["500,510"] * 400,
        ["only names, " * 200] + ["1,2"] * 400,
        ["Name"] + ["12345"] * 500,
    ],
)
def test_table_without_header_is_unchanged(rows):
    (part,) = read("\n".join(rows).encode(), "table.csv").parts
    assert part.text == "\n".join(rows) and part.section is None


def test_short_table_is_unchanged():
    data = b"Article,Price\ntable,20\nchair,7\n"
    assert [(part.text, part.section) for part in read(data, "prices.csv").parts] == [(data.decode(), None)]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_csv_keeps_cells_with_any_separator(delimiter):
    rows = [["month", "euro"], ["January", "500"], ["March, late", '"510"']]
    data = "\r\n".join(delimiter.join(row) for row in rows).encode()
    parsed = read(data, "rent.csv")
    assert parsed.mime_type == "text/csv"
    assert in_order(parsed.parts[0].text, *(cell for row in rows for cell in row))


def test_xlsx_sheet_becomes_a_section_and_row_a_line():
    day = datetime.date(2026, 5, 1)
    parsed = read(
        workbook(
            Rent=[["Month", "Euro"], ["January", 500], [None, None], ["February", 510.5, None, "late"]],
            Notes=[["ends", day, True]],
        )
    )
    assert sections(parsed)[0] == ("Rent", "Month\tEuro\nJanuary\t500\nFebruary\t510.5\t\tlate")
    name, text = sections(parsed)[1]
    assert name == "Notes"
    assert in_order(text, "ends\t2026-05-01", "\tTrue")


def test_xlsx_false_row_count_is_ignored():
    sheet = (
        '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
        '<dimension ref="A1:XFD1048576"/><sheetData><row r="1"><c r="A1" t="inlineStr"><is><t>alone</t></is></c>'
        "</row></sheetData></worksheet>"
    )
    data = with_members(workbook(Sheet=[["x"]]), {"xl/worksheets/sheet1.xml": sheet})
    assert sections(read(data)) == [("Sheet", "alone")]
