"""Create files of every format with common libraries, or by hand where no library exists."""

import io
import struct
import zipfile
import zlib

import docx
import openpyxl
import pptx
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.pdfgen import canvas

ODT = "application/vnd.oasis.opendocument.text"
EPUB = "application/epub+zip"
OFFICE = "application/vnd.openxmlformats-officedocument."
KINDS = {
    "pdf": "application/pdf",
    "docx": OFFICE + "wordprocessingml.document",
    "pptx": OFFICE + "presentationml.presentation",
    "xlsx": OFFICE + "spreadsheetml.sheet",
    "odt": ODT,
    "epub": EPUB,
    "rtf": "text/rtf",
    "html": "text/html",
    "md": "text/markdown",
    "csv": "text/csv",
    "json": "application/json",
    "py": "text/plain",
    "txt": "text/plain",
}
_ODT_SPACES = (
    *((name, name) for name in ("office", "text", "table", "style")),
    ("draw", "drawing"),
    ("svg", "svg-compatible"),
)
_ODT_NAMES = " ".join(
    f'xmlns:{short}="urn:oasis:names:tc:opendocument:xmlns:{full}:1.0"' for short, full in _ODT_SPACES
)


def saved(document):
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def pdf(*pages, password=None, owner="owner"):
    """Create a PDF from a string per page. A `password` of "" restricts permissions but not reading."""
    out = io.BytesIO()
    lock = None if password is None else StandardEncryption(password, ownerPassword=owner, strength=128)
    drawn = canvas.Canvas(out, encrypt=lock)
    for page in pages:
        for number, line in enumerate(page.split("\n")):
            drawn.drawString(72, 760 - 20 * number, line)
        drawn.showPage()
    drawn.save()
    return out.getvalue()


def raw_pdf(*objects):
    """Create a PDF of these objects, numbered from 1, with the catalog first and a valid cross-reference table."""
    out = bytearray(b"%PDF-1.7\n")
    places = []
    for number, body in enumerate(objects, start=1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start)
    return bytes(out)


def stream(content, more=b""):
    return b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(content), more, content)


def word(*blocks):
    """Create a DOCX of ("Heading 1", text), plain text, or tables as lists of rows."""
    document = docx.Document()
    for block in blocks:
        if isinstance(block, str):
            document.add_paragraph(block)
        elif isinstance(block, tuple):
            document.add_paragraph(block[1], style=block[0])
        else:
            fill(document.add_table(len(block), len(block[0])), block)
    return saved(document)


def fill(table, rows):
    for row, values in zip(table.rows, rows, strict=True):
        for cell, value in zip(row.cells, values, strict=True):
            cell.text = value


def slides(*contents):
    """Create a PPTX of (title, text) pairs."""
    deck = pptx.Presentation()
    for title, body in contents:
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = body
    return saved(deck)


def workbook(**sheets):
    """Create an XLSX. Each keyword is the name of a sheet, and its value the rows."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    return saved(book)


def sheet_of(*rows):
    """Create an XLSX of raw rows: the row number in the file (None for no number) and the row's text."""
    cell = '<c t="inlineStr"><is><t xml:space="preserve">{}</t></is></c>'
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    written = ""
    for number, *words in rows:
        claimed = "" if number is None else f' r="{number}"'
        written += f"<row{claimed}>{''.join(map(cell.format, words))}</row>"
    sheet = f'<worksheet xmlns="{main}"><sheetData>{written}</sheetData></worksheet>'
    return with_members(workbook(Sheet=[["x"]]), {"xl/worksheets/sheet1.xml": sheet.encode()})


def zipped(members, compression=zipfile.ZIP_DEFLATED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def long_zipped(members):
    """Rewrite an archive with ZIP64 sizes and offsets, as streaming programs do."""
    content, table = b"", b""
    for name, data in members.items():
        about = struct.pack("<I", zlib.crc32(data)) + b"\xff" * 8 + struct.pack("<HH", len(name), 20)
        start = struct.pack("<5H", 45, 0, 0, 0, 33)
        sizes = struct.pack("<HHQQ", 1, 16, len(data), len(data))
        longer = struct.pack("<HHQQQ", 1, 24, len(data), len(data), len(content))
        table += b"PK\x01\x02" + struct.pack("<H", 45) + start + about[:-2] + struct.pack("<H", 28)
        table += bytes(10) + b"\xff" * 4 + name.encode() + longer
        content += b"PK\x03\x04" + start + about + name.encode() + sizes + data
    end = struct.pack("<HHHHIIH", 0, 0, len(members), len(members), len(table), len(content), 0)
    return content + table + b"PK\x05\x06" + end


def with_members(data, members):
    """Return the archive with these members replaced or added."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    return zipped(content | members)


def with_text(data, name, old, new):
    """Return the archive with a word in one member replaced."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        content = archive.read(name).decode()
    assert old in content
    return with_members(data, {name: content.replace(old, new)})


def with_link(data, listed, address):
    """Return the Office file with a link to this address added to the relations member `listed`."""
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/hyperlink"
    link = f'<Relationship Id="rIdL" Type="{kind}" Target="{address}" TargetMode="External"/></Relationships>'
    return with_text(data, listed, "</Relationships>", link)


def odt(body, doctype="", styles="", **more):
    content = (
        f'<?xml version="1.0" encoding="UTF-8"?>{doctype}<office:document-content {_ODT_NAMES}>'
        f"<office:automatic-styles>{styles}</office:automatic-styles><office:body><office:text>{body}</office:text></office:body></office:document-content>"
    )
    return zipped({"mimetype": ODT, "content.xml": content, **more})


def odt_styles(inner):
    return f"<office:document-styles {_ODT_NAMES}>{inner}</office:document-styles>"


def xhtml(body, title="A book"):
    return (
        '<?xml version="1.0" encoding="utf-8"?><!DOCTYPE html>'
        f'<html xmlns="http://www.w3.org/1999/xhtml"><head><title>{title}</title></head><body>{body}</body></html>'
    )


def epub(chapters, order=None, doctype="", folder="OEBPS/", **more):
    """Create an EPUB of chapters by file name. `order`: the spine, if it differs from the archive's order."""
    items = "".join(
        f'<item id="i{n}" href="{name}" media-type="application/xhtml+xml"/>'
        for n, name in enumerate(chapters)
    )
    names = list(chapters)
    spine = "".join(f'<itemref idref="i{names.index(name)}"/>' for name in order or names)
    package = (
        f'<?xml version="1.0"?>{doctype}<package xmlns="http://www.idpf.org/2007/opf" version="3.0">'
        f"<manifest>{items}</manifest><spine>{spine}</spine></package>"
    )
    container = (
        '<?xml version="1.0"?><container xmlns="urn:oasis:names:tc:opendocument:xmlns:container" version="1.0">'
        f'<rootfiles><rootfile full-path="{folder}book.opf" media-type="application/oebps-package+xml"/></rootfiles>'
        "</container>"
    )
    pages = {folder + name: page for name, page in chapters.items()}
    fixed = {"mimetype": EPUB, "META-INF/container.xml": container, f"{folder}book.opf": package}
    return zipped(fixed | pages | more)


def plain_files():
    """Create one small file of each format with the same text."""
    words = "The lease ends in May."
    return {
        "pdf": pdf(words),
        "docx": word(words),
        "pptx": slides(("Title", words)),
        "xlsx": workbook(Sheet=[[words]]),
        "odt": odt(f"<text:p>{words}</text:p>"),
        "epub": epub({"one.xhtml": xhtml(f"<p>{words}</p>")}),
        "rtf": rb"{\rtf1\ansi " + words.encode() + b"}",
        "html": f"<!doctype html><p>{words}</p>".encode(),
        "md": words.encode(),
        "csv": words.encode(),
        "json": b'{"a": "' + words.encode() + b'"}',
        "py": f'print("{words}")'.encode(),
        "txt": words.encode(),
    }
