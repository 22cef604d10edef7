"""Word documents: what a reader sees is read, in the order in which it stands, and nothing else."""

import io
import zipfile

import docx
import pytest
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls

from unit.files.making import (
    fill,
    saved,
    with_members,
    word,
)
from unit.files.reading import in_order, read, sections, text_of


def test_docx_headings_are_sections_and_tables_stand_where_they_stood():
    parsed = read(
        word(
            ("Title", "Lease"),
            "Before all.",
            ("Heading 1", "Rent"),
            "Paid monthly.",
            [["January", "500"], ["February", "510"]],
            "After the table.",
            ("Heading 2", "Deposit"),
            "Two months.",
        )
    )
    assert sections(parsed) == [
        ("Lease", "Lease\n\nBefore all."),
        ("Rent", "Rent\n\nPaid monthly.\n\nJanuary\t500\nFebruary\t510\n\nAfter the table."),
        ("Deposit", "Deposit\n\nTwo months."),
    ]


def docx_with(xml):
    document = docx.Document()
    document.add_paragraph("Before.")
    document.element.body.insert(1, parse_xml(xml.replace(">", f" {nsdecls('w')}>", 1)))
    document.add_paragraph("After.")
    return saved(document)


DOCX_SHOWN = {
    "a link": '<w:p><w:hyperlink w:anchor="x"><w:r><w:t>WORDS</w:t></w:r></w:hyperlink></w:p>',
    "a tracked insertion": '<w:p><w:ins w:id="1" w:author="a"><w:r><w:t>WORDS</w:t></w:r></w:ins></w:p>',
    "a content control": "<w:sdt><w:sdtContent><w:p><w:r><w:t>WORDS</w:t></w:r></w:p></w:sdtContent></w:sdt>",
    "a field in a line": "<w:p><w:sdt><w:sdtContent><w:r><w:t>WORDS</w:t></w:r></w:sdtContent></w:sdt></w:p>",
    "a table in a table": "<w:tbl><w:tblPr/><w:tblGrid><w:gridCol/></w:tblGrid><w:tr><w:tc><w:tbl><w:tblPr/><w:tblGrid>"
    "<w:gridCol/></w:tblGrid><w:tr><w:tc><w:p><w:r><w:t>WORDS</w:t></w:r></w:p></w:tc></w:tr></w:tbl><w:p/></w:tc>"
    "</w:tr></w:tbl>",
    "a row in a content control": "<w:tbl><w:tblPr/><w:tblGrid><w:gridCol/></w:tblGrid><w:sdt><w:sdtContent><w:tr><w:tc><w:p>"
    "<w:r><w:t>WORDS</w:t></w:r></w:p></w:tc></w:tr></w:sdtContent></w:sdt></w:tbl>",
    "a formula": '<w:p><m:oMath xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"><m:r><m:t>WORDS</m:t>'
    "</m:r></m:oMath></w:p>",
    "a text box": "<w:p><w:r><w:pict><w:txbxContent><w:p><w:r><w:t>WORDS</w:t></w:r></w:p></w:txbxContent></w:pict></w:r>"
    "</w:p>",
}


@pytest.mark.parametrize("place", DOCX_SHOWN)
def test_docx_words_that_word_shows_are_read(place):
    assert in_order(text_of(docx_with(DOCX_SHOWN[place])), "Before.", "WORDS", "After.")


RELATIONS = "word/_rels/document.xml.rels"
_REFERRING = (
    '<w:p><w:r><w:t>Rent</w:t><w:%sReference w:id="2"/><w:t> is due.</w:t><w:%sReference w:id="2"/></w:r>'
    '<w:del w:id="9" w:author="a"><w:r><w:%sReference w:id="3"/></w:r></w:del></w:p>'
)
_NOTES = (
    f"<w:%ss {nsdecls('w')}>"
    '<w:%s w:id="2"><w:p><w:r><w:t>In advance.</w:t></w:r></w:p><w:p><w:r><w:t>By cheque.</w:t></w:r></w:p></w:%s>'
    '<w:%s w:id="3"><w:p><w:r><w:t>GONE</w:t></w:r></w:p></w:%s></w:%ss>'
)


def docx_noted(kind):
    """With two notes: the first is named twice, the second in what was struck out."""
    data = docx_with(_REFERRING.replace("%s", kind))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        relations = archive.read(RELATIONS).decode()
    place = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    related = f'<Relationship Id="rIdN" Type="{place}/{kind}s" Target="{kind}s.xml"/></Relationships>'
    members = {
        f"word/{kind}s.xml": _NOTES.replace("%s", kind),
        RELATIONS: relations.replace("</Relationships>", related),
    }
    return with_members(data, members)


@pytest.mark.parametrize("kind", ["footnote", "endnote"])
def test_docx_a_note_stands_below_the_paragraph_that_refers_to_it(kind):
    said = "Before.\n\nRent is due.\nIn advance.\nBy cheque.\n\nAfter."
    assert text_of(docx_noted(kind)) == said


def docx_lost(target):
    """It names a picture that is not there."""
    data = word("The lease ends in May.")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        relations = archive.read(RELATIONS).decode()
    place = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/image"
    related = f'<Relationship Id="rIdN" Type="{place}" Target="{target}"/></Relationships>'
    return with_members(data, {RELATIONS: relations.replace("</Relationships>", related)})


@pytest.mark.parametrize("target", ["NULL", "../NULL", "media/gone.png", "/word/media/gone.png", "#rent", ""])
def test_docx_a_picture_that_is_not_there_does_not_cost_the_words(target):
    assert text_of(docx_lost(target)) == "The lease ends in May."


def test_docx_words_that_were_struck_out_are_not_read():
    gone = '<w:p><w:del w:id="1" w:author="a"><w:r><w:delText>WORDS</w:delText></w:r></w:del></w:p>'
    assert "WORDS" not in text_of(docx_with(gone))


def test_docx_signs_are_read_and_stops_of_the_tabulator_are_not():
    line = (
        '<w:p><w:pPr><w:tabs><w:tab w:val="left" w:pos="9"/></w:tabs></w:pPr><w:r><w:t>one</w:t><w:tab/>'
        "<w:t>two</w:t><w:br/><w:t>three</w:t></w:r></w:p>"
    )
    assert text_of(docx_with(line)) == "Before.\n\none\ttwo\nthree\n\nAfter."


def test_docx_a_merged_cell_is_said_once():
    document = docx.Document()
    table = document.add_table(1, 3)
    fill(table, [["wide", "", "narrow"]])
    table.cell(0, 0).merge(table.cell(0, 1))
    text = text_of(saved(document))
    assert in_order(text, "wide", "narrow")
    assert text.count("wide") == 1
