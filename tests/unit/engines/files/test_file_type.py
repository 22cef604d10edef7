"""The content determines a file's type; the name only distinguishes kinds of plain text."""

import bz2
import gzip
import io
import lzma
import random
import sys
from pathlib import Path

import pytest
from PIL import Image

from unit.engines.files.file_reader import read, refused
from unit.engines.files.sample_files import (
    KINDS,
    epub,
    odt,
    pdf,
    plain_files,
    slides,
    word,
    workbook,
    xhtml,
    zipped,
)

WORDS = b"The lease ends in May. " * 20


def picture(kind):
    out = io.BytesIO()
    Image.effect_noise((64, 64), 50).save(out, kind)
    return out.getvalue()


@pytest.mark.parametrize("ending", ["pdf", "docx", "pptx", "xlsx", "odt", "epub", "rtf", "html"])
def test_wrong_suffix_of_the_file_name_is_ignored(ending):
    data = plain_files()[ending]
    assert read(data, "lease.txt").mime_type == KINDS[ending]


def test_type_is_detected_by_content():
    assert read(word("in Word"), "lease.pdf").parts[0].text == "in Word"
    assert read(pdf("in a PDF"), "lease.docx").mime_type == "application/pdf"


def test_text_with_a_pdf_file_name_is_read_as_text():
    assert read(WORDS, "lease.pdf").mime_type == "text/plain"


@pytest.mark.parametrize("name", ["notes.md", "sniff.py", "notes.txt"])
def test_text_that_mentions_pdf_is_read_as_text(name):
    parsed = read(b'# How to tell\nA PDF begins with "%PDF-1.7" and a line of bytes.\n', name)
    assert "begins with" in parsed.parts[0].text


@pytest.mark.parametrize("before", [b"\n \n", b"\xef\xbb\xbf", b"HTTP/1.1 200 OK\r\n\r\n", b"\0" * 128])
def test_pdf_after_leading_bytes_is_detected(before):
    assert read(before + pdf("in a PDF"), "notes.txt").mime_type == "application/pdf"


NOT_TEXT = {
    "a program": Path(sys.executable).read_bytes()[:50_000],
    "a program for Windows": b"MZ\x90\0\3\0\0\0\4\0\0\0\xff\xff\0\0" + b"\0" * 48 + b"PE\0\0d\x86" + WORDS,
    "PNG": picture("PNG"),
    "JPEG": picture("JPEG"),
    "GIF": picture("GIF"),
    "gzip": gzip.compress(WORDS),
    "bzip2": bz2.compress(WORDS),
    "xz": lzma.compress(WORDS),
    "random bytes": random.Random(1).randbytes(5000),
    "a few random bytes": random.Random(1).randbytes(64),
    "control characters": b"\x1b\x07\x01\x02" * 20,
    "old Word": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600,
    "a zip of texts": zipped({"a.txt": WORDS}),
    "a Java archive": zipped({"META-INF/MANIFEST.MF": "x", "A.class": "y"}),
    "an OpenDocument drawing": zipped(
        {"mimetype": "application/vnd.oasis.opendocument.graphics", "content.xml": "<x/>"}
    ),
}


@pytest.mark.parametrize("kind", NOT_TEXT)
def test_unsupported_content_is_refused(kind):
    assert refused(NOT_TEXT[kind], "notes.txt") == "UNSUPPORTED_TYPE"
    assert refused(NOT_TEXT[kind], "notes.md") == "UNSUPPORTED_TYPE"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b" \n\t\r\n" * 50,
        b"\xef\xbb\xbf",
        b"\xef\xbb\xbf \n",
        "  \n\u00a0\u3000".encode("utf-16"),
        b"\f\f\f",
    ],
    ids=["nothing", "blanks", "only a mark", "a mark and blanks", "utf-16 blanks", "page breaks"],
)
def test_file_without_text_is_refused_as_empty(data):
    assert refused(data, "notes.pdf") == "EMPTY"


@pytest.mark.parametrize("ending", ["docx", "pptx", "xlsx", "odt", "epub", "rtf", "html", "md"])
def test_document_without_words_is_refused_as_empty(ending):
    blank = {
        "docx": lambda: word("", " "),
        "pptx": lambda: slides(("", "")),
        "xlsx": lambda: workbook(Sheet=[[None]]),
        "odt": lambda: odt("<text:p/>"),
        "epub": lambda: epub({"a.xhtml": xhtml("")}),
        "rtf": lambda: rb"{\rtf1\ansi \par }",
        "html": lambda: (
            b"<!doctype html><html><head><title>x</title></head><body><script>x</script></body></html>"
        ),
        "md": lambda: b"\n\n  \n",
    }
    assert refused(blank[ending](), f"blank.{ending}") == "EMPTY"
