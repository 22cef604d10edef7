"""Office files with parts that are odd or damaged and hold no text: the text is read all the same."""

from pathlib import Path

import pytest

from unit.files.reading import read

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
def test_file_with_an_odd_part_is_read(name, words):
    text = " ".join(part.text for part in read((CASES / name).read_bytes(), name).parts)
    assert text.strip() and all(word in text for word in words.split())
