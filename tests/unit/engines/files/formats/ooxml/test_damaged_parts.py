"""Office files with damaged parts that contain no text are still read."""

from pathlib import Path

import pytest

from unit.engines.files.file_reader import read
from unit.engines.files.sample_files import with_members, with_text, word

CASES = Path(__file__).parent / "cases"


@pytest.mark.parametrize(
    "name, words",
    [
        ("d07-altchunk.docx", "Before chunk Imported cardioid clause"),
        ("d11-odd-main.docx", ""),
        ("d19-case.docx", ""),
        ("d40-style-no-type.docx", ""),
        ("d44-rel-no-ct.docx", ""),
        ("d48-bad-core-related.docx", ""),
        ("d50-white-bmp.docx", ""),
        ("s10-ink.pptx", "bassclef trebleclef"),
        ("s20-pic-ph.pptx", "shakuhachi"),
        ("s23-broken-notes.pptx", ""),
        ("x20-backslash.xlsx", ""),
    ],
)
def test_file_with_damaged_optional_part_is_read(name, words):
    text = " ".join(part.text for part in read((CASES / name).read_bytes(), name).parts)
    assert text.strip() and all(word in text for word in words.split())


def with_chunk(name, data):
    """Create a DOCX that embeds this file below its first paragraph."""
    whole = CASES.joinpath("d07-altchunk.docx").read_bytes()
    named = with_text(whole, "word/_rels/document.xml.rels", "chunk.html", name)
    return with_members(named, {f"word/{name}": data})


HTML = b"<html><body><h1>Rent</h1><p>500 a month.</p><h2>End</h2><p>May.</p></body></html>"
CHUNKS = {
    "chunk.htm": (HTML, ["Before chunk", "Rent\n\n500 a month.", "End\n\nMay."]),
    "chunk.txt": ("Die Miete beträgt 500 €.".encode(), ["Before chunk\n\nDie Miete beträgt 500 €."]),
    "chunk.rtf": (rb"{\rtf1\ansi The \b rent\b0  is due.}", ["Before chunk\n\nThe rent is due."]),
    "chunk.docx": (word("The lease.", ("Heading 1", "End")), ["Before chunk\n\nThe lease.", "End"]),
    "picture.png": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", ["Before chunk"]),
    "damaged.docx": (word("The lease.")[:500], ["Before chunk"]),
    "empty.html": (b"", ["Before chunk"]),
}


@pytest.mark.parametrize("name", CHUNKS)
def test_embedded_file_is_read_in_its_place(name):
    data, texts = CHUNKS[name]
    assert [part.text for part in read(with_chunk(name, data), "a.docx").parts] == texts


def test_embedded_files_of_embedded_files_are_not_read():
    inner = with_chunk("chunk.html", b"<html><body>inner</body></html>")
    assert [part.text for part in read(with_chunk("chunk.docx", inner), "a.docx").parts] == [
        "Before chunk\n\nBefore chunk"
    ]
