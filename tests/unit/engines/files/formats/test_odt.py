"""OpenDocument texts: exactly the displayed text is read, in order."""

import pytest

from unit.engines.files.file_reader import read, sections, text_of
from unit.engines.files.sample_files import odt, odt_styles

_HIDES = '<style:text-properties text:display="none"/></style:style>'
STYLES = (
    f'<style:style style:family="text" style:name="T1">{_HIDES}<style:style style:family="paragraph" style:name="P1">'
    f'{_HIDES}<style:style style:family="text" style:name="T2" style:parent-style-name="T1"/>'
    '<style:style style:family="text" style:name="T3" style:parent-style-name="T3"/>'
    '<style:style style:family="text" style:name="P1"><style:text-properties text:display="true"/></style:style>'
)
_NOTE = (
    '<text:note text:note-class="footnote"><text:note-citation>1</text:note-citation><text:note-body><text:p>In advance.'
    "</text:p><text:p>By cheque.</text:p></text:note-body></text:note>"
)
_BOXED = "<draw:frame><draw:text-box><text:p>In a</text:p><text:p>box.</text:p></draw:text-box><svg:desc>ALT</svg:desc></draw:frame>"
SHOWN = {
    "hidden": ('<text:p>one <text:span text:style-name="T1">GONE</text:span>two</text:p>', "one two"),
    "hidden above": ('<text:p>one <text:span text:style-name="T2">GONE</text:span>two</text:p>', "one two"),
    "in circles": ('<text:p>one <text:span text:style-name="T3">or </text:span>two</text:p>', "one or two"),
    "shown again": (
        '<text:p text:style-name="P1">GONE<text:span text:style-name="P1">one</text:span>GONE</text:p>',
        "one",
    ),
    "a hidden paragraph": (
        '<text:p>GONE<text:hidden-paragraph text:is-hidden="true"/>GONE</text:p><text:p>one</text:p>',
        "one",
    ),
    "a hidden section": (
        '<text:section text:display="none"><text:p>GONE</text:p></text:section><text:section text:display="true">'
        "<text:p>one</text:p></text:section>",
        "one",
    ),
    "a hidden text": (
        '<text:p>one<text:hidden-text text:is-hidden="true">GONE</text:hidden-text></text:p>',
        "one",
    ),
    "a note": (f"<text:p>Rent{_NOTE} is due.</text:p>", "Rent is due.\nIn advance.\nBy cheque."),
    "a note in a row": (
        f"<table:table><table:table-row><table:table-cell><text:p>Rent{_NOTE}</text:p></table:table-cell><table:table-cell>"
        "<text:p>500</text:p></table:table-cell></table:table-row></table:table>",
        "Rent\t500\nIn advance.\nBy cheque.",
    ),
    "a box": (f"<text:p>Paid{_BOXED}monthly.</text:p>", "Paid\nIn a\nbox.\nmonthly."),
}


def shown(how):
    return odt(SHOWN[how][0], styles=STYLES)


@pytest.mark.parametrize("how", SHOWN)
def test_odt_text_is_read_as_displayed(how):
    assert text_of(shown(how)).strip() == SHOWN[how][1]


def headed():
    """Create an ODT with three page styles, of which the third is not used."""
    above = "<style:header><text:p>Lease of the flat</text:p></style:header><style:footer><text:p>2</text:p></style:footer>"
    first = '<style:header-first style:display="false"><text:p>GONE</text:p></style:header-first>'
    below = "<style:footer><text:p>Ada Lovelace</text:p></style:footer>"
    pages = (
        ("Standard", above + first),
        ("Right", above + below),
        ("Unused", "<style:header><text:p>GONE</text:p></style:header>"),
    )
    masters = "".join(
        f'<style:master-page style:name="{name}">{said}</style:master-page>' for name, said in pages
    )
    styles = odt_styles(f"<office:master-styles>{masters}</office:master-styles>")
    own = '<style:style style:family="paragraph" style:name="P1" style:master-page-name="Right"/>'
    body = '<text:h>Rent</text:h><text:p text:style-name="P1">Paid monthly.</text:p>'
    return odt(body, styles=own, **{"styles.xml": styles})


def test_odt_headers_and_footers_are_read_once():
    body = ("Rent", "Rent\n\nPaid monthly.")
    assert sections(read(headed())) == [(None, "Lease of the flat"), body, (None, "Ada Lovelace")]
