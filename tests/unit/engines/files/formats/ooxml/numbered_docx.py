"""Build DOCX files with list definitions and numbered paragraphs."""

from docx.oxml.ns import nsdecls

from unit.engines.files.file_reader import text_of
from unit.engines.files.sample_files import with_members, with_text, word

NUMBERING = "word/numbering.xml"
STRUCK = '<w:del w:id="2" w:author="a"/>'
DECIMAL = ["%1.", "%1.%2", "%1.%2.%3"]


def level(number, text, spelling="decimal", start=1, more=""):
    return (
        f'<w:lvl w:ilvl="{number}"><w:start w:val="{start}"/><w:numFmt w:val="{spelling}"/>{more}'
        f'<w:lvlText w:val="{text}"/></w:lvl>'
    )


def abstract(name, *levels, more=""):
    """Create a list definition. Each level is XML or the text of a decimal level."""
    written = "".join(
        said if said.startswith("<") else level(number, said) for number, said in enumerate(levels)
    )
    return f'<w:abstractNum w:abstractNumId="{name}">{more}{written}</w:abstractNum>'


def num(name, abstract, more=""):
    return f'<w:num w:numId="{name}"><w:abstractNumId w:val="{abstract}"/>{more}</w:num>'


def override(number, more):
    return f'<w:lvlOverride w:ilvl="{number}">{more}</w:lvlOverride>'


def paragraph(said, num=None, at=None, style=None, mark="", look=""):
    """Create a paragraph. `mark`, `look`: the formats of its mark and text. A deleted mark deletes the text."""
    of = f'<w:pStyle w:val="{style}"/>' if style else ""
    own = "" if at is None else f'<w:ilvl w:val="{at}"/>'
    own += "" if num is None else f'<w:numId w:val="{num}"/>'
    run = f"<w:r><w:rPr>{look}</w:rPr><w:t>{said}</w:t></w:r>" if said else ""
    if mark == STRUCK:
        run = f'<w:del w:id="1" w:author="a">{run}</w:del>'
    properties = f"<w:pPr>{of}<w:numPr>{own}</w:numPr><w:rPr>{mark}</w:rPr></w:pPr>"
    return f"<w:p>{properties}{run}</w:p>"


def style(name, num=None, at=None, based=None):
    own = "" if at is None else f'<w:ilvl w:val="{at}"/>'
    own += "" if num is None else f'<w:numId w:val="{num}"/>'
    above = f'<w:basedOn w:val="{based}"/>' if based else ""
    return (
        f'<w:style w:type="paragraph" w:styleId="{name}"><w:name w:val="{name}"/>{above}'
        f"<w:pPr><w:numPr>{own}</w:numPr></w:pPr></w:style>"
    )


def numbered(numbering, *paragraphs, styles=""):
    """Create a DOCX of these list definitions and paragraphs, which are XML."""
    members = {
        NUMBERING: f"<w:numbering {nsdecls('w')}>{numbering}</w:numbering>",
        "word/document.xml": f"<w:document {nsdecls('w')}><w:body>{''.join(paragraphs)}</w:body></w:document>",
    }
    return with_text(
        with_members(word("x"), members), "word/styles.xml", "</w:styles>", f"{styles}</w:styles>"
    )


def lines_of(data):
    return [line for line in text_of(data).split("\n") if line.strip()]


def lines(*made, **more):
    return lines_of(numbered(*made, **more))


def clauses(*levels, num="1"):
    """Return a paragraph at each of these levels."""
    return [paragraph("x", num, at) for at in levels]


def shown(*levels, at=(0,), more=""):
    """Return the numbers of paragraphs at these levels of one list."""
    said = lines(abstract(0, *levels) + num(1, 0, more), *clauses(*at))
    assert all(line.endswith("x") for line in said)
    return [line.removesuffix("x").strip() for line in said]


def table(*cells):
    row = "".join(f"<w:tc>{cell}</w:tc>" for cell in cells)
    grid = "<w:gridCol/>" * len(cells)
    return f"<w:tbl><w:tblPr/><w:tblGrid>{grid}</w:tblGrid><w:tr>{row}</w:tr></w:tbl>"


def boxed(*said):
    return f"<w:p><w:r><w:pict><w:txbxContent>{''.join(said)}</w:txbxContent></w:pict></w:r></w:p>"


def contract():
    """Create a DOCX with headings of two levels, a list, a text box, a table, and deleted and empty paragraphs."""
    levels = (
        level(0, "Article %1", "upperRoman", more='<w:pStyle w:val="HeadingOne"/>'),
        level(1, "%1.%2", more='<w:pStyle w:val="HeadingTwo"/><w:isLgl/>'),
        level(2, "(%3)", "lowerLetter"),
        level(3, "-", "bullet"),
    )
    return numbered(
        abstract(0, *levels) + num(1, 0) + num(2, 0, override(1, '<w:startOverride w:val="7"/>')),
        paragraph("Rent", style="HeadingOne"),
        paragraph("Due", style="HeadingBased"),
        paragraph("GONE", 1, 2, mark=STRUCK),
        paragraph("GONE", 1, 2, mark="<w:vanish/>", look="<w:vanish/>"),
        boxed(paragraph("Boxed", 1, 2)),
        table(paragraph("Tenant", 1, 2), paragraph("Owner", 1, 2)),
        paragraph("A point", 1, 3),
        paragraph("", 1, 3),
        paragraph("", style="HeadingTwo"),
        paragraph("End", style="HeadingOne"),
        paragraph("Termination", style="HeadingTwo"),
        paragraph("Notice", 2, 1),
        paragraph("Plain", 0, style="HeadingTwo"),
        styles=style("HeadingOne", 1) + style("HeadingTwo", 1) + style("HeadingBased", based="HeadingTwo"),
    )
