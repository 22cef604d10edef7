"""Generated numbers: each paragraph is read with the number that Word displays."""

import time
from itertools import chain

import pytest
from docx.oxml.ns import nsdecls

from unit.engines.files.file_reader import read, sections, text_of
from unit.engines.files.formats.ooxml.numbered_docx import (
    DECIMAL,
    NUMBERING,
    STRUCK,
    abstract,
    boxed,
    clauses,
    contract,
    level,
    lines,
    lines_of,
    num,
    numbered,
    override,
    paragraph,
    shown,
    style,
)
from unit.engines.files.formats.ooxml.test_docx import RELATIONS
from unit.engines.files.formats.ooxml.test_package import strict
from unit.engines.files.sample_files import with_members, with_text


@pytest.mark.parametrize("as_it_is", [lambda data: data, strict], ids=["usual", "strict"])
def test_clause_numbers_appear_in_section_names_and_text(as_it_is):
    listed = "1.1 Due\n\n\n\n\n\n\n(a) Boxed\n\n\n(a) Tenant\t(b) Owner\n\n• A point\n\n\n\n1.2"
    assert sections(read(as_it_is(contract()))) == [
        ("Article I Rent", "Article I Rent"),
        ("1.1 Due", listed),
        ("Article II End", "Article II End"),
        ("2.1 Termination", "2.1 Termination\n\n2.7 Notice"),
        ("Plain", "Plain"),
    ]


def test_level_restarts_after_higher_level():
    levels = (0, 1, 1, 2, 0, 1, 2)
    assert shown(*DECIMAL, at=levels) == ["1.", "1.1", "1.2", "1.2.1", "2.", "2.1", "2.1.1"]


def test_level_without_restart_continues():
    def second(restart):
        return level(1, "%2", more=f'<w:lvlRestart w:val="{restart}"/>')

    assert shown("%1.", second(0), at=(0, 1, 0, 1)) == ["1.", "1", "2.", "2"]
    third = level(2, "%3", more='<w:lvlRestart w:val="1"/>')
    assert shown("%1.", "%2)", third, at=(0, 1, 2, 1, 2, 0, 1, 2)) == [
        "1.",
        "1)",
        "1",
        "2)",
        "2",
        "2.",
        "1)",
        "1",
    ]


def test_omitted_higher_level_is_counted():
    assert shown(level(0, "%1.", start=4), "%1.%2", at=(1, 1, 0, 1)) == ["4.1", "4.2", "5.", "5.1"]
    assert shown(*DECIMAL, at=(0, 2, 1)) == ["1.", "1.1.1", "1.2"]


SPELLINGS = {
    "decimal": {1: "1", 12: "12"},
    "decimalZero": {1: "01", 12: "12"},
    "lowerLetter": {1: "a", 26: "z", 27: "aa", 28: "bb", 53: "aaa", 781: "781"},
    "upperLetter": {1: "A", 28: "BB"},
    "lowerRoman": {1: "i", 4: "iv", 1999: "mcmxcix", 4000: "4000"},
    "upperRoman": {9: "IX", 40: "XL"},
    "ordinal": {3: "3"},
    "ideographDigital": {3: "3"},
}


@pytest.mark.parametrize(
    ("spelling", "number", "said"),
    [(spelling, number, said) for spelling, told in SPELLINGS.items() for number, said in told.items()],
)
def test_numbers_use_the_number_format_of_their_level(spelling, number, said):
    assert shown(level(0, "(%1)", spelling, start=number)) == [f"({said})"]


def test_legal_level_uses_decimal_numbers():
    legal = level(1, "%1.%2", "lowerLetter", more="<w:isLgl/>")
    assert shown(level(0, "%1.", "upperRoman"), legal, at=(0, 1)) == ["I.", "1.1"]
    padded = level(1, "Section %1.%2", "decimalZero", more="<w:isLgl/>")
    assert shown(level(0, "Article %1.", "upperRoman"), padded, at=(0, 1))[1] == "Section 1.01"
    assert (
        shown(level(0, "%1.", "upperRoman"), legal.replace("isLgl", 'isLgl w:val="0"'), at=(0, 1))[1] == "I.a"
    )


def test_level_without_template_has_no_number():
    said = lines(
        abstract(0, level(0, "%1", "none"), level(1, "Note %2", "none"), level(2, " ", "none")) + num(1, 0),
        *clauses(0, 1, 2),
    )
    assert said == ["x", "Note x", "x"]
    hidden = level(0, "HIDDEN %1", more="<w:rPr><w:vanish/></w:rPr>")
    assert lines(abstract(0, hidden, "%1.%2") + num(1, 0), *clauses(0, 1)) == ["x", "1.1 x"]


@pytest.mark.parametrize("written", ["\uf0b7", "o", "-"])
def test_any_bullet_is_read_as_a_dot(written):
    assert lines(abstract(0, level(0, written, "bullet")) + num(1, 0), *clauses(0)) == ["• x"]


def test_picture_bullet_is_read_as_a_dot():
    picture = level(0, "", "bullet", more='<w:lvlPicBulletId w:val="0"/>')
    assert lines(abstract(0, picture, level(1, "", "bullet")) + num(1, 0), *clauses(0, 1)) == ["• x", "x"]


@pytest.mark.parametrize(
    ("suffix", "said"), [("tab", "1. x"), ("space", "1. x"), ("nothing", "1.x"), ("other", "1. x")]
)
def test_separator_follows_number(suffix, said):
    levels = level(0, "%1.", more=f'<w:suff w:val="{suffix}"/>')
    assert lines(abstract(0, levels) + num(1, 0), *clauses(0)) == [said]


def test_number_with_space_gets_no_separator():
    levels = (level(0, "§ %1  "), level(1, "§ %2 ", more='<w:suff w:val="nothing"/>'))
    assert lines(abstract(0, *levels) + num(1, 0), *clauses(0, 1)) == ["§ 1 x", "§ 1 x"]


def test_start_override_applies_once():
    kind = abstract(0, "%1.", "%1.%2") + abstract(1, "%1)")
    anew = num(3, 0, override(0, '<w:startOverride w:val="5"/>'))
    said = [paragraph("x", which, 0) for which in (1, 2, 9, 3, 3, 1, 3)]
    assert lines(kind + num(1, 0) + num(2, 0) + num(9, 1) + anew, *said) == [
        f"{number} x" for number in ("1.", "2.", "1)", "5.", "6.", "7.", "8.")
    ]


def test_list_overrides_levels_of_its_definition():
    own = num(2, 0, override(0, level(0, "§ %1")))
    said = [paragraph("x", which, 0) for which in (1, 2, 1)]
    assert lines(abstract(0, "%1.") + num(1, 0) + own, *said) == ["1. x", "§ 2 x", "3. x"]


def test_list_uses_numbering_style():
    link, linked = (f'<w:{name} w:val="Clauses"/>' for name in ("numStyleLink", "styleLink"))
    kinds = abstract(0, more=link) + abstract(1, "§ %1", more=linked) + num(1, 0)
    assert lines(kinds, *clauses(0, 0)) == ["§ 1 x", "§ 2 x"]


def test_numbering_is_inherited_from_style():
    kinds = abstract(0, "%1.", level(1, "%1.%2", more='<w:pStyle w:val="Linked"/>')) + num(1, 0)
    styles = (
        style("Base", 1)
        + style("Based", based="Base", at=1)
        + style("Linked", 1)
        + style("Off", 0, based="Base")
    )
    used = ("Base", "Based", "Linked", "Off")
    said = [paragraph("x", style=name) for name in used] + [paragraph("x", 0, style="Base")]
    assert lines(kinds, *said, styles=styles) == ["1. x", "1.1 x", "1.2 x", "x", "x"]
    assert lines(kinds, paragraph("x", at=0, style="Based"), styles=styles) == ["1. x"]


def test_deleted_or_hidden_paragraph_is_not_counted():
    gone = [
        paragraph("GONE", 1, 0, mark=STRUCK),
        paragraph("GONE", 1, 0, mark="<w:vanish/>", look="<w:vanish/>"),
        paragraph("GONE", 1, 0, style="Unseen"),
    ]
    unseen = '<w:style w:type="paragraph" w:styleId="Unseen"><w:rPr><w:vanish/></w:rPr></w:style>'
    kept = [paragraph("x", 1, 0, mark="<w:vanish/>"), paragraph("x", 1, 0, mark='<w:vanish w:val="0"/>')]
    assert lines(abstract(0, "%1.") + num(1, 0), *gone, *kept, styles=unseen) == ["1. x", "2. x"]


def test_empty_paragraph_has_number_but_no_bullet():
    kind = abstract(0, "%1.", level(1, "-", "bullet")) + num(1, 0)
    assert lines(kind, paragraph("", 1, 0), paragraph(" ", 1, 1), paragraph("x", 1, 0)) == ["1.", "2. x"]


def surrounded():
    """Create a DOCX whose header (used twice), footer, note and text box use the same list as its body."""
    note = f'<w:footnote w:id="2">{paragraph("Below", 1, 0)}</w:footnote>'
    members = {
        "header": f"<w:hdr {nsdecls('w')}>{paragraph('Above', 1, 0)}</w:hdr>",
        "footer": f"<w:ftr {nsdecls('w')}>{paragraph('Under', 1, 0)}</w:ftr>",
        "footnotes": f"<w:footnotes {nsdecls('w')}>{note}</w:footnotes>",
    }
    named = "".join(f'<w:{name}Reference r:id="{name}"/>' for name in ("header", "footer"))
    section = f"<w:sectPr {nsdecls('r')}>{named}</w:sectPr>"
    mark = '<w:r><w:footnoteReference w:id="2"/></w:r>'
    body = (
        paragraph("x", 1, 0),
        boxed(paragraph("In a box", 1, 0)),
        f"<w:p><w:pPr>{section}</w:pPr>{mark}</w:p>",
        paragraph("y", 1, 0),
        section,
    )
    data = numbered(abstract(0, "%1.") + num(1, 0), *body)
    data = with_members(data, {f"word/{name}.xml": content for name, content in members.items()})
    kind = "application/vnd.openxmlformats-officedocument.wordprocessingml"
    told = "".join(
        f'<Override PartName="/word/{name}.xml" ContentType="{kind}.{name}+xml"/>'
        for name in ("header", "footer")
    )
    data = with_text(data, "[Content_Types].xml", "</Types>", f"{told}</Types>")
    place = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    related = "".join(
        f'<Relationship Id="{name}" Type="{place}/{name}" Target="{name}.xml"/>' for name in members
    )
    return with_text(data, RELATIONS, "</Relationships>", f"{related}</Relationships>")


def test_headers_notes_and_boxes_are_numbered_separately():
    said = ["1. Above", "1. x", "1. In a box", "1. Below", "2. y", "2. Under"]
    assert lines_of(surrounded()) == said


BROKEN = {
    "nothing": "",
    "no XML": "no XML",
    "an open tag": f"<w:numbering {nsdecls('w')}>",
    "entities": f'<!DOCTYPE n [<!ENTITY a "b">]><w:numbering {nsdecls("w")}/>',
    "another root": "<other/>",
}


def broken(how):
    return with_members(numbered("", paragraph("x", 1, 0)), {NUMBERING: BROKEN[how]})


@pytest.mark.parametrize("how", BROKEN)
def test_invalid_numbering_keeps_text(how):
    assert text_of(broken(how)) == "x"


def unlisted():
    """Create a DOCX that references a missing numbering part."""
    data = numbered("", paragraph("x", 1, 0))
    return with_text(data, RELATIONS, "numbering.xml", "lost.xml")


def test_missing_numbering_keeps_text():
    assert text_of(unlisted()) == "x"


def odd():
    """Create a DOCX with invalid levels, lists, numbers and styles next to valid ones."""
    levels = (
        level(0, "%1.%2", start=2**31),
        level(1, "%2", start="x"),
        level(99, "no"),
        level("x", "no"),
        level(3, "%4", "lowerLetter", start=2**31),
        level(4, "%5" * 10_000, "upperRoman", start=3999),
    )
    kinds = abstract(0, *levels) + num(1, 0) + num(2, 5) + num(0, 0) + num(3, 3)
    kinds += abstract(3, more='<w:numStyleLink w:val="Round"/><w:styleLink w:val="Round"/>')
    places = ((1, 0), (1, 1), (1, 99), (1, "-1"), (1, ""), (1, "x"), (1, 3), (1, 4), (1, 8))
    others = ((2, 0), (0, 0), (3, 0), (7, 0), ("x", 0), ("", 0))
    said = [paragraph("x", *place) for place in (*places, *others)]
    styles = style("Round", based="Back") + style("Back", based="Round") + style("Self", 1, based="Self")
    return numbered(kinds, *said, paragraph("x", style="Round"), paragraph("x", style="Self"), styles=styles)


def test_impossible_numbers_are_ignored():
    begun, fifth = 2**31, ("MMMCMXCIX" * 50)[:100]
    assert lines_of(odd()) == [
        f"{begun}. x",
        "0 x",
        "x",
        f"{begun + 1}. x",
        f"{begun + 2}. x",
        f"{begun + 3}. x",
        f"{begun} x",
        f"{fifth} x",
        *["x"] * 8,
        f"{begun + 4}. x",
    ]


def crowd():
    """Create a DOCX with 100,000 list definitions and lists, and 10,000 styles, each based on the previous one."""
    many, places = range(100_000), range(0, 10_000, 5)
    kinds = "".join(abstract(n, "%1.") for n in many) + "".join(num(n + 1, n) for n in many)
    styles = "".join(style(f"s{n}", based=f"s{n - 1}") for n in range(10_000))
    said = (paragraph("x" if n == 0 else "", 10 * n + 1, 0, style=f"s{n}") for n in places)
    return numbered(kinds, *said, styles=styles)


def test_many_lists_are_read_quickly():
    data = crowd()
    start = time.monotonic()
    assert text_of(data).startswith("1. x\n\n1.")
    assert time.monotonic() - start < 20


def linked_crowd():
    """Create a DOCX with 3,000 list definitions that link to one with 3,000 levels of the same number."""
    levels = "".join(level(0, f"{n}.%1.") for n in range(3000))
    one = f'<w:abstractNum w:abstractNumId="one"><w:styleLink w:val="one"/>{levels}</w:abstractNum>'
    many = "".join(abstract(n, more='<w:numStyleLink w:val="one"/>') + num(n + 1, n) for n in range(3000))
    return numbered(one + many, *(paragraph("x", n + 1, 0) for n in range(3000)))


def test_many_lists_of_one_definition_are_read_quickly():
    start = time.monotonic()
    assert text_of(linked_crowd()).startswith("2999.1. x\n\n2999.1. x")
    assert time.monotonic() - start < 20


def test_very_long_number_is_truncated():
    said = numbered(
        abstract(0, level(0, "%1" * 50, "upperLetter", start=780)) + num(1, 0), paragraph("x", 1, 0)
    )
    assert text_of(said) == f"{'Z' * 100} x"


def every_kind():
    """Create a DOCX with a list for each number format, separator and bullet, and one with combined levels."""
    levels = [
        *(
            level(0, "(%1)", spelling, start=number)
            for spelling, told in SPELLINGS.items()
            for number in told
        ),
        *(level(0, "%1.", more=f'<w:suff w:val="{suffix}"/>') for suffix in ("tab", "space", "nothing")),
        *(level(0, text, "bullet") for text in ("\uf0b7", "")),
        level(0, "", "bullet", more='<w:lvlPicBulletId w:val="0"/>'),
        *(level(0, f"§ %1{blank}") for blank in (" ", "  ", "&#10;", "\t", "\r\n", "\xa0")),
        *(level(0, text, spelling) for text in ("%1", "Note %1", " ") for spelling in ("none", "decimal")),
        level(0, "HIDDEN %1", more="<w:rPr><w:vanish/></w:rPr>"),
        level(0, "\U0001f4dc" * 120 + "%1"),
    ]
    lists = "".join(abstract(n, written) + num(n, n) for n, written in enumerate(levels, start=1))
    leaning = (
        level(0, "%1.", "upperRoman", start=4),
        level(1, "%1.%2", "lowerLetter", more="<w:isLgl/>"),
        level(2, "%1.%2.%3", more='<w:lvlRestart w:val="1"/>'),
        level(3, "%4) %5", more='<w:lvlRestart w:val="0"/>'),
    )
    anew = "".join(override(n, f'<w:startOverride w:val="{n + 7}"/>') for n in (0, 1))
    lists += abstract("a", *leaning, more='<w:styleLink w:val="L"/>') + num("a", "a") + num("b", "a", anew)
    lists += abstract("c", more='<w:numStyleLink w:val="L"/>') + num("c", "c", override(1, level(1, "§ %2")))
    walk = (1, 2, 3, 0, 1, 2, 1, 2, 3, 3, 0, 3)
    said = (clauses(0, 0, num=n) for n in range(1, len(levels) + 1))
    leant = (clauses(*walk, num=name) for name in "abcab")
    return numbered(lists, *chain.from_iterable((*said, *leant)))


def made():
    """Return documents that server and browser must parse with the same result, by name."""
    return {
        "contract": contract(),
        "every kind of number": every_kind(),
        "odd numbers": odd(),
        "surrounded": surrounded(),
        "lost numbers": unlisted(),
        **{f"numbers of {how}": broken(how) for how in BROKEN},
        "very many lists": crowd(),
        "very many lists that are one": linked_crowd(),
    }
