"""Number formats: cells are read as displayed, with digits that a search finds."""

import datetime
import random
from xml.sax.saxutils import quoteattr

import openpyxl
import pytest

from unit.engines.files.file_reader import read, text_of
from unit.engines.files.sample_files import saved, with_members, with_text, workbook

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
# A format or the number of a built-in format, the stored value, and the text that is read.
SEEN = {
    "percent": [
        ("0%", "0.25", "25%"),
        ("0.0%", "0.125", "12.5%"),
        ("0.00%", "0.25", "25.00%"),
        ("0%", "0.285", "29%"),
        ("0.0%", "0.0005", "0.1%"),
        ("0%", "-0.25", "-25%"),
        ("0%", "-0.001", "0%"),
        ("0%", "5", "500%"),
        ("0%", "1.5E+16", "1.5e+16"),
        ("0%", "1E-300", "0%"),
        ('"up to "0.0\\ %" more";[Red]-0%', "0.07", "7.0%"),
        ("#,##0.00%", "12.34567", "1234.57%"),
        (9, "0.19", "19%"),
        (10, "0.19", "19.00%"),
        ('0.00"%"', "19.5", "19.5"),
        ("0.00\\%", "19.5", "19.5"),
        ("[<1]0%;0", "12", "12"),
        ("0%%", "0.25", "0.25"),
    ],
    "leading zeros": [
        ("00000", "1234", "01234"),
        ("00000", "-12", "-00012"),
        ("00000", "123456", "123456"),
        ("00000", "12.0", "00012"),
        ("00000", "12.5", "12.5"),
        ("00000", "1E+20", "1e+20"),
        ('"D-"00000', "1067", "01067"),
        ("00000_);(00000)", "1067", "01067"),
        ("00.00", "1.5", "1.5"),
        ("0", "7", "7"),
    ],
    "durations": [
        ("[h]:mm", "1.1284722222222223", "27:05"),
        ("[hh]:mm", "0.1284722222222222", "03:05"),
        ("[h]:mm", "1.1286458333333333", "27:05:15"),
        ("[h]:mm:ss", "1.1284722222222223", "27:05:00"),
        ("[mm]:ss", "0.01880787037037037", "27:05"),
        ("[m]", "0.0625", "90"),
        ("[ss]", "0.01880787037037037", "1625"),
        ("[mm]:ss.0", "0.018811342592592594", "27:05.3"),
        ("[h]:mm", "-1.1284722222222223", "-27:05"),
        ("[h]:mm", "-0", "0:00"),
        ("[h]:mm", "1E+9", "1000000000"),
        (46, "2.125", "51:00:00"),
    ],
    "days": [
        ("yyyy-mm-dd", "46027", "2026-01-05"),
        ("dd.mm.yyyy", "46027.75", "2026-01-05"),
        ('[$-407]d. mmmm yyyy "um h Uhr"', "46027", "2026-01-05"),
        ("mmm", "46027", "2026-01-05"),
        ("d/m", "46026.99999999999", "2026-01-05"),
        (14, "46027", "2026-01-05"),
        (17, "46027", "2026-01-05"),
        ("yyyy-mm-dd", "1", "1900-01-01"),
        ("yyyy-mm-dd", "59", "1900-02-28"),
        ("yyyy-mm-dd", "61", "1900-03-01"),
        ("yyyy-mm-dd", "0", "0"),
        ("yyyy-mm-dd", "-5", "1899-12-25"),
        ("yyyy-mm-dd", "2958465", "9999-12-31"),
        ("yyyy-mm-dd", "2958466", "2958466"),
        ("yyyy-mm-dd", "-693593", "0001-01-01"),
        ("yyyy-mm-dd", "-693594", "-693594"),
    ],
    "times": [
        ("h:mm", "0.4375", "10:30"),
        ("h:mm", "46027.4375", "10:30"),
        ("h:mm", "0.4376736111111111", "10:30:15"),
        ("hh:mm:ss", "0.4375", "10:30:00"),
        ("h:mm", "0.9999999", "00:00"),
        ("h:mm AM/PM", "0.5625", "13:30"),
        ("hh:mm:ss.000", "0.43750578703703703", "10:30:00.5"),
        ("hh:mm:ss", "0.43750578703703703", "10:30:01"),
        (18, "0.5625", "13:30"),
        (19, "0.5625", "13:30:00"),
        (45, "0.0625", "01:30:00"),
        (47, "0.06250578703703704", "01:30:00.5"),
    ],
    "days with a time": [
        ("yyyy-mm-dd hh:mm", "46027.4375", "2026-01-05 10:30"),
        ("yyyy-mm-dd hh:mm", "46027.437673611108", "2026-01-05 10:30:15"),
        ("yyyy-mm-dd hh:mm:ss", "46027.4375", "2026-01-05 10:30:00"),
        ("yyyy-mm-dd hh:mm", "46026.999999999", "2026-01-05 00:00"),
        ("d/m/yy h:mm", "0.5", "12:00"),
        (22, "46027", "2026-01-05 00:00"),
    ],
    "currencies": [
        ('#,##0.00 "€"', "1234.5", "1234.5 €"),
        ("#,##0.00\\ [$€-407];[Red]\\-#,##0.00\\ [$€-407]", "-1234.5", "-1234.5 €"),
        ("$#,##0.00", "1234.5", "$1234.5"),
        ('"$"#,##0.00_);("$"#,##0.00)', "-1234.5", "-$1234.5"),
        ('_("$"* #,##0.00_)', "0.30000000000000004", "$0.3"),
        ('"CHF" 0.00', "1234.5", "CHF 1234.5"),
        ('"CHF "0.00', "-5", "-CHF 5"),
        ("[$EUR ]#,##0.00_-", "7", "EUR 7"),
        ("[$R$-416] #,##0", "7", "R$7"),
        ("#,##0.00 [$kr-414]", "7.25", "7.25 kr"),
        ('0\\ "zł"', "7", "7 zł"),
        ("[$₹-4009]0", "7", "₹7"),
        ("[$Rs.-4009] 0", "7", "Rs. 7"),
        ("0 [$odd-1]", "7", "7"),  # an unknown currency is left out
        ('General" €"', "7.5", "7.5 €"),
        ("0.00 €;;", "7", "7 €"),
        ('0;0 "€"', "7", "7"),
        ('0.0,, "€"', "7000000", "7000000"),
        ('0" of $ and cents"', "7", "7"),
        ("[$-409]0.00", "7", "7"),
        ("[$9]0", "7", "7"),
    ],
    "other formats": [
        ("General", "5.0", "5"),
        ("", "0.30000000000000004", "0.3"),
        ("#,##0.00", "1234.5", "1234.5"),
        ("0.00", "0.30000000000000004", "0.3"),
        ("0.00E+00", "12345.678", "12345.678"),
        ("# ?/?", "0.5", "0.5"),
        ("@", "7", "7"),
        (";;;", "7", "7"),
        ('0 "days";0 "h"', "7", "7"),
        ("_d0_h", "7", "7"),
        ("\\m0", "7", "7"),
        ("[Magenta]0", "7", "7"),
        (4, "1234.5", "1234.5"),
        (44, "1234.5", "1234.5"),
    ],
}
HOSTILE = [
    "0" * 255,
    "0%" + "%" * 20_000,
    "." * 255 + "0" * 99 + "%",
    "0." + "0" * 100 + "%",
    '"' * 20_001,
    '""' * 60 + '"$' + '"' * 100 + "0",
    '"' + " " * 250 + "0",
    "[" * 250,
    "[$" * 120,
    "[$" + " " * 250,
    "\\" * 255,
    "_" * 255,
    "€" * 254 + "0",
    "[h]" * 80,
    "y" * 20_000,
    ";" * 255,
    "\U0001d7d8" * 255,
    "yyyy" + "\U0001d7d8" * 251,
    "yyyy" + "\U0001d7d8" * 252,
]
MONEY = [
    *(
        "[$₹-4009]0",
        "0 [$₽-419]",
        '"₩"0',
        "[$Rs.-4009] 0",
        "[$฿-41E]0",
        "[$kr.-406] 0",
        "0 [$лв.-402]",
        "0 [$TL]",
    ),
    '"CHF" 0.00',
    "0.00 [$kr-414]",
    "[$R$-416]0",
]


def formatted(*cells, since_1904=False):
    """Create a workbook with a row for each (format or format id, stored value)."""
    own = {code: 164 + n for n, code in enumerate(dict.fromkeys(c for c, _ in cells if isinstance(c, str)))}
    formats = "".join(f'<numFmt numFmtId="{n}" formatCode={quoteattr(code)}/>' for code, n in own.items())
    styles = "".join(f'<xf numFmtId="{own.get(code, code)}"/>' for code, _ in cells)
    rows = "".join(f'<row><c s="{n}"><v>{stored}</v></c></row>' for n, (_, stored) in enumerate(cells))
    data = with_members(
        workbook(Sheet=[["x"]]),
        {
            "xl/styles.xml": f'<styleSheet xmlns="{_MAIN}"><numFmts>{formats}</numFmts><cellXfs>{styles}</cellXfs></styleSheet>',
            "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{_MAIN}"><sheetData>{rows}</sheetData></worksheet>',
        },
    )
    return (
        with_text(data, "xl/workbook.xml", "<workbookPr/>", '<workbookPr date1904="true"/>')
        if since_1904
        else data
    )


def hostile():
    numbers = ("0.3", "-46027.4375", "1e15", "1E-310", "1e308", "99999999999999999999")
    return formatted(*((code, number) for code in HOSTILE for number in numbers))


def of_openpyxl():
    """Create a workbook with a percentage, an article number, a duration, dates, a time and a fee."""
    book = openpyxl.Workbook()
    row = {
        "0.0%": 0.125,
        "00000": 1234,
        "[h]:mm": datetime.timedelta(hours=27, minutes=5),
        "yyyy-mm-dd": datetime.datetime(2026, 1, 5),
        "yyyy-mm-dd hh:mm": datetime.datetime(2026, 1, 5, 10, 30),
        "hh:mm": datetime.time(10, 30),
        "General": 0.1 + 0.2,
        '#,##0.00 "€"': 1234.5,
    }
    book.active.append(list(row.values()))
    for cell, code in zip(book.active[1], row, strict=True):
        cell.number_format = code
    return saved(book)


def numbers():
    """Create a workbook with many numbers that server and browser could round or format differently."""
    chance = random.Random(1)
    drawn = [f"{chance.uniform(-1, 1) * 10 ** chance.randint(-20, 20)!r}" for _ in range(300)]
    halves = [f"{n + 0.5**k!r}" for n in (0, 1, 12, 10**10, 99_999_999_999) for k in range(1, 20)]
    written = [f"{chance.randint(-999, 99_999) / 1000}5" for _ in range(200)]
    codes = (
        "General",
        "0%",
        "0.00%",
        "00000",
        "[h]:mm:ss",
        "[mm]:ss.000",
        "yyyy-mm-dd h:mm",
        "h:mm:ss.00",
        "$0",
    )
    return formatted(*((code, number) for number in drawn + halves + written for code in codes))


def paid_in(code):
    """Create a long table whose amounts count as numbers only because their currency is known."""
    book = openpyxl.Workbook()
    book.active.append(["Article", "Price"])
    for n in range(300):
        book.active.append([f"table of {n} boards", 20 + n])
        book.active.cell(n + 2, 2).number_format = code
    return saved(book)


@pytest.mark.parametrize("kind", SEEN)
def test_number_is_formatted_as_displayed(kind):
    cells = [(code, stored) for code, stored, _ in SEEN[kind]]
    shown = text_of(formatted(*cells)).split("\n")
    said = [(*cell, seen) for cell, seen in zip(cells, shown, strict=True)]
    assert said == SEEN[kind]


def test_workbook_cells_are_formatted_as_displayed():
    assert text_of(of_openpyxl()).split("\t") == [
        "12.5%",
        "01234",
        "27:05",
        "2026-01-05",
        "2026-01-05 10:30",
        "10:30",
        "0.3",
        "1234.5 €",
    ]


def test_dates_follow_the_1904_setting():
    data = formatted(("yyyy-mm-dd", "0"), ("yyyy-mm-dd h:mm", "1.5"), ("h:mm", "0.5"), since_1904=True)
    assert text_of(data) == "1904-01-01\n1904-01-02 12:00\n12:00"


@pytest.mark.parametrize("code", MONEY)
def test_column_of_amounts_counts_as_numbers(code):
    parts = read(paid_in(code)).parts
    assert len(parts) > 5 and all(part.text.startswith("Article\tPrice\n") for part in parts)


def test_hostile_number_formats_keep_numbers():
    many = formatted(*((f"{n}" + '"' * 200 + "0%", "0.5") for n in range(20_000)))
    assert len(text_of(many, seconds=60).split("\n")) == 20_000
    assert len(text_of(hostile(), seconds=60).split("\n")) == len(HOSTILE) * 6
