"""Hostile files: archive bombs, deep nesting, entities and loops. They are small and quick to create."""

import functools
import io
import struct
import zipfile
import zlib

from reportlab.pdfgen import canvas

from unit.engines.files.sample_files import (
    epub,
    odt,
    raw_pdf,
    slides,
    stream,
    with_members,
    word,
    workbook,
    xhtml,
    zipped,
)

GIB = 2**30
DEEP = 100_000
WORD_NAMES = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
SHEET_NAMES = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'

# The archive member with the text of each format, to be replaced by a hostile one.
MEMBERS = {
    "docx": "word/document.xml",
    "pptx": "ppt/slides/slide1.xml",
    "xlsx": "xl/worksheets/sheet1.xml",
    "odt": "content.xml",
    "epub": "OEBPS/a.xhtml",
}
LONG_WORD = 30_000  # letters in a word that no program should need to parse


def innocent(ending):
    return {
        "docx": lambda: word("x"),
        "pptx": lambda: slides(("Title", "x")),
        "xlsx": lambda: workbook(Sheet=[["x"]]),
        "odt": lambda: odt("<text:p>x</text:p>"),
        "epub": lambda: epub({"a.xhtml": xhtml("<p>x</p>")}),
    }[ending]()


@functools.cache
def gibibyte():
    """Return a compressed GiB of zeros and its checksum, by repeating an independent compressed MiB."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    piece = packer.compress(b"\0" * 2**20) + packer.flush(zlib.Z_FULL_FLUSH)
    checksum = 0
    for _ in range(1024):
        checksum = zlib.crc32(b"\0" * 2**20, checksum)
    return piece * 1024 + packer.flush(), checksum


def bomb(ending, claimed=GIB):
    """Create a file whose text member unpacks to a GiB. `claimed`: the size that the archive states."""
    name = MEMBERS[ending]
    packed, checksum = gibibyte()
    with zipfile.ZipFile(io.BytesIO(innocent(ending))) as archive:
        content = {n: archive.read(n) for n in archive.namelist()}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for other, body in content.items():
            archive.writestr(other, packed if other == name else body)
        place = archive.getinfo(name).header_offset
    data = bytearray(out.getvalue())
    entry = data.find(name.encode(), data.find(b"PK\x01\x02")) - 46
    for method, sums in ((place + 8, place + 14), (entry + 10, entry + 16)):
        struct.pack_into("<H", data, method, zipfile.ZIP_DEFLATED)
        struct.pack_into("<III", data, sums, checksum, len(packed), claimed)
    return bytes(data)


def with_doctype(ending, doctype):
    """Return a document with the text `before`, the entity `k` and `after`."""
    said = "before &k; after"
    new = {
        "docx": f"{doctype}<w:document {WORD_NAMES}><w:body><w:p><w:r><w:t>{said}</w:t></w:r></w:p></w:body></w:document>",
        "xlsx": f'{doctype}<worksheet {SHEET_NAMES}><sheetData><row r="1"><c r="A1" t="inlineStr"><is><t>{said}</t></is>'
        "</c></row></sheetData></worksheet>",
        "epub": f"{doctype}<html><body><p>{said}</p></body></html>",
    }
    data = innocent(ending)
    if ending == "odt":
        return odt(f"<text:p>{said}</text:p>", doctype=doctype)
    if ending == "pptx":
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            slide = archive.read(MEMBERS["pptx"]).decode()
        new["pptx"] = slide.replace("<p:sld ", doctype + "<p:sld ", 1).replace(">x<", f">{said}<")
    return with_members(data, {MEMBERS[ending]: new[ending]})


def laughs():
    """Return a doctype with ten nested entities of ten references each, which expand to 10^10 copies of a word."""
    levels = "".join(f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(10))
    return f'<!DOCTYPE l [<!ENTITY a "laughter">{levels}]>'


def outside(place, other):
    """Return a doctype with an external entity and an external parameter entity."""
    return f'<!DOCTYPE l [<!ENTITY k SYSTEM "{place}"><!ENTITY % p SYSTEM "{other}"> %p;]>'


def nested_xml(ending):
    """Create a file of deeply nested XML, uncompressed so that the parser refuses it instead of the archive check."""
    spans = "<text:span>" * DEEP + "deep" + "</text:span>" * DEEP
    content = odt(f"<text:p>start {spans}</text:p>") if ending == "odt" else None
    if content is None:
        tables = "<w:p>" * DEEP + "</w:p>" * DEEP
        content = with_members(
            word("x"),
            {"word/document.xml": f"<w:document {WORD_NAMES}><w:body>{tables}</w:body></w:document>"},
        )
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return zipped({n: archive.read(n) for n in archive.namelist()}, zipfile.ZIP_STORED)


CATALOGUE = b"<< /Type /Catalog /Pages 2 0 R >>"
FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
PAGE = (
    b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
    b"/Resources << /Font << /F1 5 0 R >> /XObject << /X 6 0 R >> >> >>"
)
LINE = b"BT /F1 12 Tf 1 0 0 1 72 720 Tm (The lease ends in May) Tj ET\n"


def one_page_pdf(contents, count=1, *more):
    pages = b"<< /Type /Pages /Kids [3 0 R] /Count %d >>" % count
    return raw_pdf(CATALOGUE, pages, PAGE, contents, FONT, *more)


def pdf_that_claims(count):
    return one_page_pdf(stream(LINE), count)


def pdf_whose_pages_go_in_circles():
    return raw_pdf(
        CATALOGUE,
        b"<< /Type /Pages /Kids [3 0 R] /Count 3 >>",
        b"<< /Type /Pages /Parent 2 0 R /Kids [2 0 R 3 0 R] /Count 2 >>",
    )


def pdf_whose_drawing_draws_itself():
    form = stream(
        LINE + b"/X Do /X Do",
        b"/Type /XObject /Subtype /Form /BBox [0 0 9 9] "
        b"/Resources << /Font << /F1 5 0 R >> /XObject << /X 6 0 R >> >>",
    )
    return one_page_pdf(stream(b"/X Do"), 1, form)


def pdf_of_endless_words():
    """Create a PDF of eight pages, each with one very long word in tiny letters."""
    out = io.BytesIO()
    pages = canvas.Canvas(out)
    for _ in range(8):
        pages.setFont("Helvetica", 0.01)
        pages.drawString(20, 400, LONG_WORD * "a")
        pages.showPage()
    pages.save()
    return out.getvalue()


def pdf_bomb():
    packed = b"\x78\xda" + gibibyte()[0]
    return one_page_pdf(stream(packed, b"/Filter /FlateDecode"))


@functools.cache
def slow():
    """Create a valid file that takes much longer to parse than the time limits of the tests."""
    rows = "".join(
        "<row>" + "".join(f"<c><v>{n * 7919 % 10007 + c}</v></c>" for c in range(100)) + "</row>"
        for n in range(100)
    )  # longer than the compression window, so repetition does not make the file an archive bomb
    sheet = f"<worksheet {SHEET_NAMES}><sheetData>{rows * 180}</sheetData></worksheet>"
    return with_members(workbook(Sheet=[["x"]]), {MEMBERS["xlsx"]: sheet})
