"""Every format yields its text in order, with pages and sections."""

import io
import json
from copy import deepcopy

import pptx
import pytest
from pptx.oxml import parse_xml
from reportlab.pdfgen import canvas

from unit.engines.files.file_reader import in_order, read, sections, text_of
from unit.engines.files.sample_files import (
    KINDS,
    epub,
    fill,
    odt,
    pdf,
    plain_files,
    saved,
    slides,
    xhtml,
)


@pytest.mark.parametrize("ending", KINDS)
def test_every_format_yields_text_and_type(ending):
    parsed = read(plain_files()[ending], f"lease.{ending}")
    assert parsed.mime_type == KINDS[ending]
    assert "The lease ends in May." in "\n".join(part.text for part in parsed.parts)


def test_pdf_pages_are_numbered_including_blank_ones():
    parsed = read(pdf("First line\nsecond line", "", "On the third page"))
    assert [(part.page, part.text) for part in parsed.parts] == [
        (1, "First line\nsecond line"),
        (3, "On the third page"),
    ]
    assert parsed.page_count == 3


def test_pdf_word_split_at_line_end_is_joined():
    assert text_of(pdf("The rent is paid month-\nly.")) == "The rent is paid monthly."


HYPHENATED = {
    "written so elsewhere": ("A well-known house,\na Well-\nknown street.", "a Well-known street."),
    "before a capital": ("The lease of Flat-\nGate ends.", "Flat-Gate ends."),
    "before a digit": ("See the form PaSa-\n4 below.", "PaSa-4 below."),
}


@pytest.mark.parametrize("how", HYPHENATED)
def test_pdf_hyphen_of_compound_word_stays(how):
    written, read = HYPHENATED[how]
    assert read in " ".join(text_of(pdf(written)).split())


def celled(turned=0):
    """Create a PDF table that is drawn cell by cell, as invoice programs do. `turned`: the rotation of the page."""
    out = io.BytesIO()
    page = canvas.Canvas(out, pagesize=(500, 500))
    page.setPageRotation(turned)
    if turned:
        page.translate(500, 0)
        page.rotate(90)
    for row, cells in enumerate(
        [("Item", "Count", "Price"), ("Wooden chair", "4", "120.00"), ("Bench", "2", "75.00")]
    ):
        for column, cell in enumerate(cells):
            page.drawString(40 + 150 * column, 450 - 20 * row, cell)
    page.showPage()
    page.save()
    return out.getvalue()


@pytest.mark.parametrize("turned", [0, 90])
def test_pdf_table_cells_are_separated(turned):
    said = text_of(celled(turned)).split()
    assert said == ["Item", "Count", "Price", "Wooden", "chair", "4", "120.00", "Bench", "2", "75.00"]


def form():
    """Create a PDF with a filled form that has a password field and an empty field, whose values are not read."""
    out = io.BytesIO()
    drawn = canvas.Canvas(out)
    drawn.drawString(72, 760, "Name and town:")
    drawn.acroForm.textfield(value="Ada Lovelace", x=120, y=690)
    drawn.acroForm.choice(value="Köln", options=["Köln", "Malmö"], x=120, y=600)
    drawn.acroForm.textfield(value="SECRET", fieldFlags="password", x=120, y=500)
    drawn.acroForm.textfield(value="", x=120, y=400)
    drawn.acroForm.checkbox(checked=True, x=120, y=300)
    drawn.save()
    return out.getvalue()


def test_pdf_form_values_follow_printed_text():
    assert text_of(form()) == "Name and town:\nAda Lovelace\nKöln"


def test_pptx_slide_becomes_a_page_and_its_title_a_section():
    parsed = read(slides(("Rent", "Paid monthly."), ("Deposit", "Two months.\nBack in May.")))
    assert [(part.page, part.section) for part in parsed.parts] == [(1, "Rent"), (2, "Deposit")]
    assert parsed.page_count == 2
    assert in_order(parsed.parts[1].text, "Deposit", "Two months.", "Back in May.")


def test_pptx_groups_tables_and_notes_are_read():
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[6])
    outer = slide.shapes.add_group_shape()
    outer.shapes.add_group_shape().shapes.add_textbox(0, 0, 9, 9).text_frame.text = "in two groups"
    table = slide.shapes.add_table(2, 2, 0, 0, 99, 99).table
    fill(table, [["January", "500"], ["February", "510"]])
    slide.notes_slide.notes_text_frame.text = "said aloud"
    assert in_order(
        read(saved(deck)).parts[0].text, "in two groups", "January\t500\nFebruary\t510", "said aloud"
    )


def changed_deck():
    """Create a PPTX with a formula as PowerPoint writes it, a hidden text box, and a hidden slide, which is read."""
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[6])
    for words in ("With a formula.", "UNSEEN", "Seen."):
        slide.shapes.add_textbox(0, 0, 9, 9).text_frame.text = words
    box, unseen, _ = (shape._element for shape in slide.shapes)
    unseen.nvSpPr.cNvPr.set("hidden", "1")
    names = 'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    either = parse_xml(
        f'<mc:AlternateContent {names}><mc:Choice Requires="a14"/><mc:Fallback/></mc:AlternateContent>'
    )
    box.addprevious(either)
    either[1].append(deepcopy(box))
    either[0].append(box)
    other = deck.slides.add_slide(deck.slide_layouts[6])
    other.shapes.add_textbox(0, 0, 9, 9).text_frame.text = "Kept for questions."
    other._element.set("show", "0")
    return saved(deck)


def test_pptx_text_is_read_as_displayed():
    texts = [(part.page, part.text) for part in read(changed_deck()).parts]
    assert texts == [(1, "With a formula.\n\nSeen."), (2, "Kept for questions.")]


def test_odt_headings_lists_blanks_and_tables_are_read():
    parsed = read(
        odt(
            '<text:p>Before all.</text:p><text:h text:outline-level="1">Rent</text:h>'
            "<text:p>Paid<text:s/>each<text:tab/>month<text:line-break/>by <text:span>the 3rd</text:span>.</text:p>"
            "<table:table><table:table-row><table:table-cell><text:p>January</text:p></table:table-cell>"
            "<table:table-cell><text:p>500</text:p></table:table-cell></table:table-row></table:table>"
            "<text:list><text:list-item><text:p>one</text:p></text:list-item></text:list>"
        )
    )
    assert sections(parsed) == [
        (None, "Before all."),
        ("Rent", "Rent\n\nPaid each\tmonth\nby the 3rd.\n\nJanuary\t500\n\none"),
    ]


def test_odt_paragraphs_of_a_cell_are_separated():
    cell = "<table:table-cell><text:p>January</text:p><text:p>February</text:p></table:table-cell>"
    text = text_of(odt(f"<table:table><table:table-row>{cell}</table:table-row></table:table>"))
    assert text.split() == ["January", "February"]


def test_odt_text_box_is_read_once():
    frame = "<draw:frame><draw:text-box><text:p>in the box</text:p></draw:text-box></draw:frame>"
    assert text_of(odt(f"<text:p>around {frame}</text:p>")).count("in the box") == 1


def test_odt_deletions_and_comments_are_not_read():
    gone = "<text:tracked-changes><text:changed-region><text:deletion><text:p>STRUCK</text:p></text:deletion>"
    gone += "</text:changed-region></text:tracked-changes>"
    remark = "<office:annotation><text:p>REMARK</text:p></office:annotation>"
    assert text_of(odt(f"{gone}<text:p>The lease{remark} ends.</text:p>")) == "The lease ends."


def test_epub_chapters_follow_the_spine():
    parsed = read(
        epub(
            {
                "b.xhtml": xhtml("<h1>Two</h1><p>second</p>"),
                "part%20one/a.xhtml": xhtml("<h1>One</h1><p>first</p><script>no()</script>"),
            },
            order=["part%20one/a.xhtml", "b.xhtml"],
            **{"OEBPS/part one/a.xhtml": xhtml("<h1>One</h1><p>first</p><script>no()</script>")},
        )
    )
    assert sections(parsed) == [("One", "One\n\nfirst"), ("Two", "Two\n\nsecond")]


def test_epub_chapter_is_found_by_inexact_name():
    listed = ["one.XHTML", "a.xhtml", "A.xhtml", "a.xhtml", "a%2520b.xhtml", "two%20a.xhtml", "100%.xhtml"]
    chapters = {
        "One.xhtml": "first",
        "a.xhtml": "small",
        "A.xhtml": "large",
        "a%20b.xhtml": "as it is written",
        "two a.xhtml": "second",
        "100%.xhtml": "third",
    }
    items = "".join(f'<item id="i{n}" href="{href}"/>' for n, href in enumerate(listed))
    spine = "".join(f'<itemref idref="i{n}"/>' for n in range(len(listed)))
    package = f"<package><manifest>{items}</manifest><spine>{spine}</spine></package>"
    pages = {name: xhtml(f"<p>{text}</p>") for name, text in chapters.items()}
    assert text_of(epub(pages, **{"OEBPS/book.opf": package})).split("\n") == [*chapters.values()]


def test_epub_chapter_outside_spine_is_not_read():
    chapters = {"a.xhtml": xhtml("<p>read me</p>"), "ad.xhtml": xhtml("<p>buy me</p>")}
    assert text_of(epub(chapters, order=["a.xhtml"])) == "read me"


def test_epub_with_self_closed_head_tags_keeps_text():
    page = xhtml("<p>first</p>").replace("<title>A book</title>", '<title/><script src="a.js"/>')
    assert text_of(epub({"a.xhtml": page})) == "first"


def test_epub_with_one_empty_chapter_keeps_other_chapters():
    assert text_of(epub({"cover.xhtml": "", "a.xhtml": xhtml("<p>first</p>")})) == "first"


# A text box as Word writes it: the drawing, its text, and the same text again for older programs.
BOX = (
    rb"Paid{\shp{\*\shpinst\shpleft0{\sp{\sn shapeType}{\sv 202}}{\shptxt \pard In a box.}}{\shprslt{\*\do\dptxbx"
    rb"{\dptxbxtext\pard In a box.}}}} monthly."
)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (rb"Gr\'fc\'dfe, caf\'e9", "Grüße, café"),
        (rb"\u20320?\u22909?", "你好"),
        (rb"{\uc0\u1055 \u1088 \u1080 }", "При"),
        (rb"\u-10179?\u-8703?", "😁"),  # a surrogate pair, as Word writes an emoji
        (rb"one\par two\tab three\line four", "one\ntwo\tthree\nfour"),
        (rb"{\*\generator Secret;}{\fonttbl{\f0 Arial;}}seen", "seen"),
        (rb"\{braces\} and \\", "{braces} and \\"),
        (rb"Paid{\footnote In May.} monthly.", "Paid\nIn May. monthly."),
        (rb"Paid{\*\footnote\pard In May.}", "Paid\nIn May."),
        (rb"Paid {\v\'41ll {\i UNSEEN}\u22909?\{\~}monthly\v , GONE\v0 .\v X\plain !", "Paid monthly.!"),
        (rb"Paid {\deleted weekly }{\revised monthly}. {\v {\*\x y}\par}", "Paid monthly."),
        (BOX, "Paid\nIn a box.\n monthly."),
        (
            rb"{\header Lease}{\headerf UNSEEN}{\footer \pard Page{\v X}}Paid monthly.",
            "Lease\n\nPage\nPaid monthly.",
        ),
        (rb"\titlepg\facingp {\headerf First}{\headerl Left}Paid.", "First\n\nLeft\nPaid."),
        (rb"before{\pict\bin6 }}{}}{}{\object\objdata\bin4 }}}}} after \\bin9", r"before after \bin9"),
    ],
)
def test_rtf_escapes_become_characters(written, meant):
    assert text_of(rb"{\rtf1\ansi\ansicpg1252 " + written + b"}").strip() == meant


def test_rtf_text_is_decoded_with_its_code_page():
    words = "".join(f"\\'{byte:02x}" for byte in "Договор".encode("cp1251")).encode()
    assert text_of(rb"{\rtf1\ansi\ansicpg1251 " + words + b"}").strip() == "Договор"


HTML = b"""<!DOCTYPE html><html><head><title>Lease</title><style>p{color:red}</style></head><body>
<!-- a secret --><p>Before all.</p><h1>Rent <em>and more</em></h1><p>Paid <b>month</b>ly.<br>By the 3rd &amp; not later.</p>
<script>steal()</script>tail<noscript>enable</noscript><template>later</template>
<table><tr><th>January</th><td>500</td></tr><tr><th>February</th><td>510</td></tr></table>
<ul><li>one<li>two</ul><p hidden>unseen</p><p style="display: none">unseen</p><h2>Deposit</h2><p>Two months.</p></body></html>"""


def test_html_headings_become_sections():
    parsed = read(HTML)
    assert [part.section for part in parsed.parts] == ["Lease", "Rent and more", "Deposit"]
    assert parsed.parts[0].text == "Before all."
    assert in_order(
        parsed.parts[1].text,
        "Rent and more",
        "Paid monthly.\nBy the 3rd & not later.",
        "tail",
        "January 500\n",
        "February 510",
        "one",
        "two",
    )
    assert parsed.parts[2].text == "Deposit\n\nTwo months."


APART = (
    b"<!doctype html><form><fieldset><legend>Town</legend><select><option>K\xc3\xb6ln</option><option>Bonn</option></select>"
    b'</fieldset></form><table><caption>Rent</caption><tr><td>500</td></tr></table><p style="display:\n none">UNSEEN</p>'
)


def test_html_blocks_separate_words():
    assert text_of(APART).split() == ["Town", "K\xf6ln", "Bonn", "Rent", "500"]


MAIN = b"""<!DOCTYPE html><title>Lease</title><h2>Keys of this page</h2><nav>Home</nav><main><p>It begins in May.</p>
<h1>Rent<a href=#rent>&para;</a></h1><p>Monthly.</p></main><footer>Printed in 2020.</footer>"""


def test_html_headings_before_main_do_not_name_its_sections():
    """A heading and a menu precede the main element of the page."""
    parts = [(part.section, part.text) for part in read(MAIN).parts]
    assert parts == [
        ("Keys of this page", "Keys of this page\n\nHome"),
        ("Lease", "It begins in May."),
        ("Rent", "Rent¶\n\nMonthly."),
        ("Lease", "Printed in 2020."),
    ]


@pytest.mark.parametrize("unseen", ["secret", "color", "steal", "enable", "later<", "unseen", "<", "&amp;"])
def test_html_invisible_text_is_skipped(unseen):
    assert unseen not in text_of(HTML)


@pytest.mark.parametrize(
    "start", ["<p>", "<h1>", "<title>Lease</title><p>", "<meta charset=utf-8><p>", "<div><p>"]
)
def test_html_fragment_is_detected_by_its_file_name(start):
    parsed = read(f"{start}Paid monthly.<script>steal()</script>".encode(), "saved.html")
    assert parsed.mime_type == "text/html"
    assert [part.text for part in parsed.parts] == ["Paid monthly."]


def test_markdown_headings_become_sections_outside_code():
    parsed = read(
        b"Before all.\n\n# Rent #\nPaid.\n\n```sh\n# a comment\n```\n\n## Deposit\nTwo months.\n#hashtag\n",
        "notes.md",
    )
    assert [part.section for part in parsed.parts] == [None, "Rent", "Deposit"]
    assert in_order(parsed.parts[1].text, "# Rent #", "Paid.", "# a comment")
    assert in_order(parsed.parts[2].text, "Two months.", "#hashtag")


def test_markdown_code_fence_ends_only_with_its_own_marker():
    parsed = read(b"# Rent\n~~~\n```\n# a comment\n~~~\n# Deposit\nTwo months.\n", "notes.md")
    assert [part.section for part in parsed.parts] == ["Rent", "Deposit"]


@pytest.mark.parametrize(
    ("line", "section"),
    [
        ("# Rent #", "Rent"),
        ("# About C#", "About C#"),
        ("###### Rent\t##  ", "Rent"),
        ("# ", None),
        ("# ##", None),
    ],
)
def test_markdown_closing_marks_of_heading_are_removed(line, section):
    assert read(f"{line}\nPaid.\n".encode(), "notes.md").parts[-1].section == section


def test_markdown_code_fence_does_not_end_with_a_shorter_marker():
    parsed = read(b"````\n```\n# a comment\n````` \n# Deposit\nTwo months.\n", "notes.md")
    assert [part.section for part in parsed.parts] == [None, "Deposit"]


def test_json_and_code_are_unchanged():
    data = json.dumps({"rent": [500, 510], "town": "Köln"}, indent=2, ensure_ascii=False)
    assert text_of(data.encode(), "a.json") == data
    code = "def rent(month):\n\tif month:  # paid\n\t\treturn 500\n"
    assert text_of(code.encode(), "rent.py") == code


def test_form_feed_starts_a_new_page():
    parsed = read(b"one\n\f\n\ftwo\fthree\n\f")
    assert [(part.page, part.text.strip()) for part in parsed.parts] == [(1, "one"), (3, "two"), (4, "three")]


def test_html_line_breaks_are_kept_only_in_pre():
    source = "<p>One\n  <a href=x>link</a>\nin a sentence.</p><pre>first\nsecond</pre><p>The\nend</p>"
    assert text_of(f"<html><body>{source}".encode()) == "One link in a sentence.\n\nfirst\nsecond\n\nThe end"
