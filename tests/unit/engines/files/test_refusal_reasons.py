"""A file without text is refused for the correct reason."""

import io
import zipfile

import pytest
from PIL import Image
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen import canvas

from unit.engines.files.file_reader import is_a_sentence, read, refused, text_of
from unit.engines.files.sample_files import (
    epub,
    odt,
    pdf,
    raw_pdf,
    slides,
    stream,
    with_members,
    word,
    workbook,
    xhtml,
)
from vademecum.engines.files.result import MESSAGES

OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600


@pytest.mark.parametrize("code", MESSAGES)
def test_every_refusal_message_says_that_nothing_was_stored(code):
    assert is_a_sentence(MESSAGES[code])
    assert "Nothing was stored." in MESSAGES[code]


def scan(*captions):
    """Create a PDF of page images, some with a caption."""
    out = io.BytesIO()
    drawn = canvas.Canvas(out)
    for caption in captions:
        drawn.drawImage(ImageReader(Image.effect_noise((200, 200), 40)), 0, 0)
        drawn.drawString(9, 9, caption)
        drawn.showPage()
    drawn.save()
    return out.getvalue()


def test_scanned_pdf_is_refused_for_lack_of_text():
    assert refused(scan("", "")) == "NO_TEXT"


def test_scan_with_only_page_numbers_is_refused_for_lack_of_text():
    assert refused(scan("1", "2")) == "NO_TEXT"


def test_scan_with_one_text_page_is_read():
    assert read(scan("", "Signed in May")).parts[0].page == 2


def pdf_whose_letters_mean(*maps, words=b"The lease ends in May"):
    """Create a PDF with a line of text per map. A map is the code point that the font assigns to the space;
    the codes after the space map to the code points that follow.
    """
    count = len(maps)
    table = (
        b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def 1 begincodespacerange <00> <FF> "
        b"endcodespacerange 1 beginbfrange <20> <7E> <%s> endbfrange endcmap end end"
    )
    fonts = [
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode %d 0 R >>" % (5 + count + n)
        for n in range(count)
    ]
    names = b" ".join(b"/F%d %d 0 R" % (n, 5 + n) for n in range(count))
    lines = b" ".join(b"BT /F%d 12 Tf 72 %d Td (%s) Tj ET" % (n, 700 - 20 * n, words) for n in range(count))
    return raw_pdf(
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << %s >> >> >>"
        % names,
        stream(lines),
        *fonts,
        *(stream(table % start) for start in maps),
    )


def test_minimal_pdf_is_read():
    assert text_of(pdf_whose_letters_mean(b"0020")) == "The lease ends in May"


def test_pdf_of_unmapped_glyphs_is_refused_as_garbled():
    assert refused(pdf_whose_letters_mean(b"E020")) == "GARBLED"


@pytest.mark.parametrize("start", [b"E020", b"F020"])
def test_half_unmapped_pdf_is_refused_as_garbled(start):
    assert refused(pdf_whose_letters_mean(b"0020", start)) == "GARBLED"


def test_few_unmapped_glyphs_are_accepted():
    assert "The lease" in text_of(pdf_whose_letters_mean(*[b"0020"] * 9, b"E020"))


def test_pdf_with_password_is_refused_as_encrypted():
    assert refused(pdf("The lease ends in May.", password="secret")) == "ENCRYPTED"


def test_pdf_with_print_restriction_is_read():
    assert text_of(pdf("The lease ends in May.", password="")) == "The lease ends in May."


def zip_with_a_password():
    data = bytearray(word("The lease ends in May."))
    at = data.find(b"PK\x01\x02")
    while at >= 0:
        data[at + 8] |= 1
        at = data.find(b"PK\x01\x02", at + 4)
    return bytes(data)


LOCKED = {
    "Word with a password": OLD_OFFICE + "EncryptedPackage".encode("utf-16-le"),
    "a zip with a password": zip_with_a_password(),
    "OpenDocument with a password": odt(
        "<text:p>x</text:p>", **{"META-INF/manifest.xml": "<manifest><encryption-data/></manifest>"}
    ),
    "an e-book with a lock": epub(
        {"a.xhtml": xhtml("<p>x</p>")},
        **{"META-INF/encryption.xml": '<e Algorithm="http://www.w3.org/2001/04/xmlenc#aes128-cbc"/>'},
    ),
}


@pytest.mark.parametrize("kind", LOCKED)
def test_file_with_password_is_refused_as_encrypted(kind):
    assert refused(LOCKED[kind]) == "ENCRYPTED"


WHOLE = {
    "pdf": pdf(*(f"Page {n} of the lease" for n in range(20))),
    "docx": word(*(f"Paragraph {n} of the lease" for n in range(200))),
    "pptx": slides(("Rent", "Paid monthly.")),
    "xlsx": workbook(Rent=[[n, "euro"] for n in range(200)]),
    "odt": odt("".join(f"<text:p>Paragraph {n}</text:p>" for n in range(200))),
    "epub": epub({"a.xhtml": xhtml("<p>word</p>" * 200)}),
}


@pytest.mark.parametrize("ending", WHOLE)
@pytest.mark.parametrize("kept", [0.5, 0.95])
def test_truncated_file_is_refused_as_damaged(ending, kept):
    data = WHOLE[ending]
    assert refused(data[: int(len(data) * kept)]) == "DAMAGED"


@pytest.mark.parametrize("ending", ["docx", "odt"])
def test_archive_with_flipped_byte_is_refused_as_damaged(ending):
    data = bytearray(WHOLE[ending])
    member = {"docx": "word/document.xml", "odt": "content.xml"}[ending]
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        info = archive.getinfo(member)
    data[info.header_offset + 30 + len(member) + info.compress_size // 2] ^= 0xFF
    assert refused(bytes(data)) == "DAMAGED"


@pytest.mark.parametrize(
    "data",
    [
        b"%PDF-1.4\nnothing more",
        with_members(word("x"), {"word/document.xml": "<w:document"}),
        with_members(word("x"), {"word/document.xml": "<other/>"}),
        epub({"a.xhtml": "x"}, **{"META-INF/container.xml": "<container/>"}),
        odt("<text:p>never closed"),
    ],
    ids=[
        "pdf",
        "docx that is no XML",
        "docx that is another XML",
        "epub without a package",
        "odt that is no XML",
    ],
)
def test_file_with_only_a_signature_is_refused_as_damaged(data):
    assert refused(data) == "DAMAGED"
