"""Workbooks: displayed cells are read, and an invalid cell does not affect others."""

import datetime
import io
import zipfile

import openpyxl
import pytest

from unit.engines.files.file_reader import read, refused, sections, text_of
from unit.engines.files.sample_files import saved, with_members, workbook, zipped

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006"
_RELATIONS, _TYPES = "xl/_rels/workbook.xml.rels", "[Content_Types].xml"
# XML between two valid cells, and the text read from it. Style 1 is a date.
CELLS = {
    "a date": ('<c r="B2" s="1"><v>45000</v></c>', "2023-03-15 00:00:00"),
    "a day after all days": ('<c r="B2" s="1"><v>99999999999</v></c>', "99999999999"),
    "a day of letters": ('<c r="B2" s="1"><v>May</v></c>', "May"),
    "a day without end": ('<c r="B2" s="1"><v>1e400</v></c>', "1e400"),
    "a number of letters": ('<c r="B2"><v>five</v></c>', "five"),
    "a number with two points": ('<c r="B2"><v>1.2.3</v></c>', "1.2.3"),
    "a number without end": ('<c r="B2"><v>1e400</v></c>', "1e400"),
    "a number of Python's": ('<c r="B2"><v>1_000</v></c>', "1_000"),
    "a fraction of Python's": ('<c r="B2"><v>1_0.5e1</v></c>', "1_0.5e1"),
    "a number in Arabic": ('<c r="B2"><v>\u0663</v></c>', "\u0663"),
    "a number behind a mark": ('<c r="B2"><v>\ufeff5</v></c>', "\ufeff5"),
    "a number with zeros": ('<c r="B2"><v>007</v></c>', "7"),
    "a small number": ('<c r="B2"><v>1.0000000000000001E-5</v></c>', "1e-05"),
    "a number not so small": ('<c r="B2"><v>1E-4</v></c>', "0.0001"),
    "a large number": ('<c r="B2"><v>-1.5E+16</v></c>', "-1.5e+16"),
    "a number not so large": ('<c r="B2"><v>1E15</v></c>', "1000000000000000"),
    "a very large number": ('<c r="B2"><v>1e300</v></c>', "1e+300"),
    "nothing, from below": ('<c r="B2"><v>-0.0</v></c>', "0"),
    "a sum of fractions": ('<c r="B2"><v>0.30000000000000004</v></c>', "0.3"),
    "a fraction of fifteen digits": ('<c r="B2"><v>0.123456789012345</v></c>', "0.123456789012345"),
    "a half at the fifteenth digit": ('<c r="B2"><v>100000000000.0625</v></c>', "100000000000.063"),
    "the largest number": ('<c r="B2"><v>1.7976931348623157E308</v></c>', "1.7976931348623157e+308"),
    "a whole number with a point": ('<c r="B2"><v>5.0</v></c>', "5"),
    "a whole number of many digits": ('<c r="B2"><v>12345678901234567890</v></c>', "12345678901234567890"),
    "a string that is not there": ('<c r="B2" t="s"><v>99</v></c>', ""),
    "a string before the first": ('<c r="B2" t="s"><v>-1</v></c>', ""),
    "a string of no number": ('<c r="B2" t="s"><v>x</v></c>', ""),
    "a string": ('<c r="B2" t="s"><v>0</v></c>', "x"),
    "neither true nor false": ('<c r="B2" t="b"><v>maybe</v></c>', "maybe"),
    "true": ('<c r="B2" t="b"><v>1</v></c>', "True"),
    "a written day": ('<c r="B2" t="d"><v>2026-05-01</v></c>', "2026-05-01"),
    "a written time": ('<c r="B2" t="d"><v>2026-05-01T13:30:05.5Z</v></c>', "2026-05-01 13:30:05.500000"),
    "a written day in no calendar": ('<c r="B2" t="d"><v>2026-02-30</v></c>', "2026-02-30"),
    "a written day of letters": ('<c r="B2" t="d"><v>THE FIRST</v></c>', "THE FIRST"),
    "a written duration": ('<c r="B2" t="d"><v>PT27H5M</v></c>', "PT27H5M"),
    "an error": ('<c r="B2" t="e"><v>#REF!</v></c>', "#REF!"),
    "a style of no number": ('<c r="B2" s="bold"><v>5</v></c>', "5"),
    "a style that is not there": ('<c r="B2" s="99"><v>5</v></c>', "5"),
    "no place": ('<c r="?"/><c r="2B"><v>5</v></c>', "5"),
    "a font that nobody knows": (
        '<c r="B2" t="inlineStr"><is><r><rPr><family val="99"/></rPr><t>in </t></r><r><t>May</t></r></is></c>',
        "in May",
    ),
    "a line end": (
        '<c r="B2" t="inlineStr"><is><t>one_x0020_two_x005F_x0041_</t></is></c>',
        "one two_x0041_",
    ),
}


def with_cell(xml):
    sheet = (
        f'<worksheet xmlns="{_MAIN}"><sheetData><row r="1"><c r="A1" t="inlineStr"><is><t>Ada</t></is></c></row>'
        f'<row r="2">{xml}<c r="C2"><v>7</v></c></row></sheetData></worksheet>'
    )
    return with_strings({"xl/worksheets/sheet1.xml": sheet}, '<r><rPr><family val="99"/></rPr><t>x</t></r>')


def with_strings(members, *strings):
    data = workbook(Sheet=[["x", datetime.datetime(2026, 5, 1)]])
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        relations, types = (archive.read(name).decode() for name in (_RELATIONS, _TYPES))
    related = (
        f'<Relationship Id="rIdS" Type="{_OFFICE}/relationships/sharedStrings" Target="SharedStrings.xml"/>'
    )
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
    typed = f'<Override PartName="/xl/SharedStrings.xml" ContentType="{kind}"/>'
    more = {
        _RELATIONS: relations.replace("</Relationships>", f"{related}</Relationships>"),
        _TYPES: types.replace("</Types>", f"{typed}</Types>"),
        "xl/SharedStrings.xml": f'<sst xmlns="{_MAIN}">{"".join(f"<si>{one}</si>" for one in strings)}</sst>',
    }
    return with_members(data, members | more)


@pytest.mark.parametrize("kind", CELLS)
def test_xlsx_invalid_cell_does_not_affect_other_cells(kind):
    written, meant = CELLS[kind]
    assert text_of(with_cell(written)) == f"Ada\n\t{meant}\t7"


def renamed(relations=None, members=None):
    """Create a workbook with one shared string, "x", and one sheet.

    `relations`: replacements in the relations of the workbook.
    `members`: maps members to new names, or to None to remove them.
    """
    whole = with_cell('<c r="B2" t="s"><v>0</v></c>')
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    listed = contents[_RELATIONS].decode()
    for old, new in (relations or {}).items():
        assert old in listed
        listed = listed.replace(old, new)
    named = {name: (members or {}).get(name, name) for name in contents}
    contents[_RELATIONS] = listed.encode()
    return zipped({new: contents[old] for old, new in named.items() if new is not None})


SHEET, STRINGS = "xl/worksheets/sheet1.xml", "xl/SharedStrings.xml"
ODDLY_NAMED = {
    "as it is": renamed(),
    "small letters": renamed({"SharedStrings.xml": "sharedstrings.xml"}),
    "large letters": renamed(members={SHEET: "xl/Worksheets/SHEET1.XML"}),
    "a blank spelled": renamed({"sheet1": "my%20sheet"}, {SHEET: "xl/worksheets/my sheet.xml"}),
    "a blank unspelled": renamed({"sheet1": "my sheet"}, {SHEET: "xl/worksheets/my%20sheet.xml"}),
    "letters spelled": renamed({"sheet1": "%C3%84rger"}, {SHEET: "xl/worksheets/Ärger.xml"}),
    "no spelling": renamed({"sheet1": "100%sheet"}, {SHEET: "xl/worksheets/100%sheet.xml"}),
    "a remark": renamed({"</Relationships>": "<!-- the end --></Relationships>"}),
}
LOST = {
    "the strings": renamed(members={STRINGS: None}),
    "the relation to the strings": renamed({"/sharedStrings": "/others"}),
    "the sheet": renamed(members={SHEET: None}),
    "the relation to the sheet": renamed({'Id="rId1"': 'Id="another"'}),
}


@pytest.mark.parametrize("how", ODDLY_NAMED)
def test_xlsx_member_is_found_by_inexact_name(how):
    assert text_of(ODDLY_NAMED[how]) == "Ada\n\tx\t7"


@pytest.mark.parametrize("what", LOST)
def test_xlsx_with_missing_parts_is_refused(what):
    assert refused(LOST[what]) == "DAMAGED"


def with_odd_looks():
    """Create a workbook whose font family, fill and creation date violate the standard."""
    data = workbook(Sheet=[["The lease ends", datetime.datetime(2026, 5, 1)]])
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        styles = archive.read("xl/styles.xml").decode()
        core = archive.read("docProps/core.xml").decode()
    assert '<family val="2"' in styles
    odd = styles.replace('<family val="2"', '<family val="99"').replace("<fill>", '<fill count="x">')
    return with_members(data, {"xl/styles.xml": odd, "docProps/core.xml": core.replace("20", "the year ")})


def test_xlsx_with_invalid_styles_is_read():
    assert text_of(with_odd_looks()) == "The lease ends\t2026-05-01 00:00:00"


def with_hidden(state):
    book = openpyxl.Workbook()
    book.active.append(["Rent", 500])
    book.active.append(["Heating", 60])
    book.active.row_dimensions[2].hidden = True
    other = book.create_sheet("Other")
    other.append(["UNSEEN"])
    other.sheet_state = state
    return saved(book)


@pytest.mark.parametrize("state", ["hidden", "veryHidden"])
def test_xlsx_hidden_rows_are_read_but_not_hidden_sheets(state):
    assert sections(read(with_hidden(state))) == [("Sheet", "Rent\t500\nHeating\t60")]
    assert sections(read(with_hidden("visible")))[1] == ("Other", "UNSEEN")
