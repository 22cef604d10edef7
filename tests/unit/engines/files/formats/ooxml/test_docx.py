"""Word documents: exactly the displayed text is read, in order."""

import io
import zipfile

import docx
import pytest
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls

from unit.engines.files.file_reader import in_order, read, sections, text_of
from unit.engines.files.sample_files import (
    fill,
    saved,
    with_members,
    word,
    zipped,
)


def test_docx_headings_become_sections_that_include_tables():
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
def test_docx_displayed_text_is_read(place):
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
    """Create a DOCX with two notes: the first is referenced twice, the second only in deleted text."""
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
def test_docx_note_follows_referring_paragraph(kind):
    said = "Before.\n\nRent is due.\nIn advance.\nBy cheque.\n\nAfter."
    assert text_of(docx_noted(kind)) == said


def docx_numbered():
    """Create a DOCX whose main member is document2.xml, as some programs name it."""
    data = docx_noted("footnote")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    renamed = {name.replace("document.xml", "document2.xml"): content for name, content in members.items()}
    for name in ("_rels/.rels", "[Content_Types].xml"):
        renamed[name] = renamed[name].replace(b"document.xml", b"document2.xml")
    return zipped(renamed)


def test_docx_with_numbered_main_member_is_read():
    assert text_of(docx_numbered()) == text_of(docx_noted("footnote"))


def docx_lost(target):
    """Create a DOCX that references a missing picture."""
    data = word("The lease ends in May.")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        relations = archive.read(RELATIONS).decode()
    place = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/image"
    related = f'<Relationship Id="rIdN" Type="{place}" Target="{target}"/></Relationships>'
    return with_members(data, {RELATIONS: relations.replace("</Relationships>", related)})


@pytest.mark.parametrize("target", ["NULL", "../NULL", "media/gone.png", "/word/media/gone.png", "#rent", ""])
def test_docx_with_missing_picture_is_read(target):
    assert text_of(docx_lost(target)) == "The lease ends in May."


def test_docx_deletions_are_not_read():
    gone = '<w:p><w:del w:id="1" w:author="a"><w:r><w:delText>WORDS</w:delText></w:r></w:del></w:p>'
    assert "WORDS" not in text_of(docx_with(gone))


def test_docx_tabs_are_read_but_not_tab_stops():
    line = (
        '<w:p><w:pPr><w:tabs><w:tab w:val="left" w:pos="9"/></w:tabs></w:pPr><w:r><w:t>one</w:t><w:tab/>'
        "<w:t>two</w:t><w:br/><w:t>three</w:t></w:r></w:p>"
    )
    assert text_of(docx_with(line)) == "Before.\n\none\ttwo\nthree\n\nAfter."


def test_docx_merged_cell_is_read_once():
    document = docx.Document()
    table = document.add_table(1, 3)
    fill(table, [["wide", "", "narrow"]])
    table.cell(0, 0).merge(table.cell(0, 1))
    text = text_of(saved(document))
    assert in_order(text, "wide", "narrow")
    assert text.count("wide") == 1


def _words(look="", paragraph=""):
    return f"<w:p><w:pPr>{paragraph}</w:pPr><w:r><w:rPr>{look}</w:rPr><w:t>WORDS</w:t></w:r></w:p>"


_UNSEEN_STYLE = '<w:rStyle w:val="Unseen"/>'
_UNSEEN_PARAGRAPH = '<w:pStyle w:val="Unseen"/>'
_ROW_START = "<w:tbl><w:tblPr/><w:tblGrid><w:gridCol/></w:tblGrid><w:tr>"
DOCX_UNSEEN = {
    "hidden": _words("<w:vanish/>"),
    "hidden in a box": f"<w:p><w:r><w:pict><w:txbxContent>{_words('<w:vanish/>')}</w:txbxContent></w:pict></w:r></w:p>",
    "hidden by its style": _words(_UNSEEN_STYLE),
    "hidden by what its style is based on": _words('<w:rStyle w:val="Based"/>'),
    "hidden by the paragraph's style": _words(paragraph=_UNSEEN_PARAGRAPH),
    "a hidden row": f"{_ROW_START}<w:trPr><w:hidden/></w:trPr><w:tc>{_words()}</w:tc></w:tr></w:tbl>",
    "how it is pronounced": "<w:p><w:r><w:ruby><w:rt><w:r><w:t>WORDS</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>x</w:t></w:r>"
    "</w:rubyBase></w:ruby></w:r></w:p>",
    "struck out": '<w:p><w:del w:id="1" w:author="a"><w:r><w:delText>WORDS</w:delText></w:r></w:del></w:p>',
}
DOCX_SEEN = {
    "not hidden after all": _words('<w:vanish w:val="0"/>'),
    "shown in a hidden style": _words(f'{_UNSEEN_STYLE}<w:vanish w:val="false"/>'),
    "hidden on the web alone": _words("<w:webHidden/>"),
    "hidden twice": _words(_UNSEEN_STYLE, _UNSEEN_PARAGRAPH),
    "a hidden end of a paragraph": _words(paragraph="<w:rPr><w:vanish/></w:rPr>"),
}
_STYLES = (
    '<w:style w:type="character" w:styleId="Unseen"><w:rPr><w:vanish/></w:rPr></w:style>'
    '<w:style w:type="character" w:styleId="Based"><w:basedOn w:val="Unseen"/></w:style>'
    '<w:style w:type="character" w:styleId="Round"><w:basedOn w:val="Round"/></w:style></w:styles>'
)


def docx_styled(xml):
    data = docx_with(xml)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        styles = archive.read("word/styles.xml").decode()
    return with_members(data, {"word/styles.xml": styles.replace("</w:styles>", _STYLES)})


@pytest.mark.parametrize("how", DOCX_UNSEEN)
def test_docx_hidden_text_is_not_read(how):
    text = text_of(docx_styled(DOCX_UNSEEN[how]))
    assert "WORDS" not in text
    assert in_order(text, "Before.", "After.")


@pytest.mark.parametrize("how", DOCX_SEEN)
def test_docx_text_shown_despite_hiding_properties_is_read(how):
    assert in_order(text_of(docx_styled(DOCX_SEEN[how])), "Before.", "WORDS", "After.")


def docx_boxed():
    """Create a DOCX with a text box as Word writes it, with a fallback copy for older programs."""
    box = "<w:txbxContent><w:p><w:r><w:t>In a</w:t></w:r></w:p><w:p><w:r><w:t>box.</w:t></w:r></w:p></w:txbxContent>"
    names = 'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" xmlns:wps="wps"'
    return docx_with(
        f'<w:p><w:r><w:t>Paid</w:t></w:r><w:r><mc:AlternateContent {names}><mc:Choice Requires="wps"><w:drawing>'
        f"<wps:txbx>{box}</wps:txbx></w:drawing></mc:Choice><mc:Fallback><w:pict>{box}</w:pict></mc:Fallback>"
        "</mc:AlternateContent></w:r><w:r><w:t>monthly.</w:t></w:r></w:p>"
    )


def test_docx_text_box_is_read_once_on_its_own_lines():
    assert text_of(docx_boxed()) == "Before.\n\nPaid\nIn a\nbox.\nmonthly.\n\nAfter."


def docx_headed(first=False, even=False):
    document = docx.Document()
    document.add_heading("Rent")
    section = document.sections[0]
    section.header.paragraphs[0].text = "Lease of the flat"
    section.footer.paragraphs[0].text = "Ada Lovelace"
    section.first_page_header.paragraphs[0].text = "FIRST"
    section.even_page_footer.paragraphs[0].text = "EVEN"
    section.even_page_header.paragraphs[0].text = "2"
    section.different_first_page_header_footer = first
    document.settings.odd_and_even_pages_header_footer = even
    document.add_section().header.paragraphs[0].text = "Lease of the flat"
    document.add_paragraph("Paid monthly.")
    return saved(document)


def test_docx_headers_and_footers_are_read_once():
    body = ("Rent", "Rent\n\n\n\nPaid monthly.")
    assert sections(read(docx_headed())) == [(None, "Lease of the flat"), body, (None, "Ada Lovelace")]
    above, again, below = sections(read(docx_headed(first=True, even=True)))
    assert again == body
    assert sorted(above[1].split("\n\n")) == ["FIRST", "Lease of the flat"]
    assert sorted(below[1].split("\n\n")) == ["Ada Lovelace", "EVEN"]
