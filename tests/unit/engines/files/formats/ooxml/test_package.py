"""Office files with unusual member names, invalid links and other archive variants."""

import io
import re
import zipfile

import pytest

from unit.engines.files.file_reader import read, text_of
from unit.engines.files.sample_files import KINDS, long_zipped, plain_files, with_link, with_text, zipped
from vademecum.engines.files.formats.ooxml.zip_container import open_office_file
from vademecum.engines.files.result import Limits


def strict(data):
    """Convert a file to Strict Open XML, which uses different namespaces."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    usual, other = (
        rb"http://schemas\.openxmlformats\.org/(officeDocument|\w+ml)/2006/",
        rb"http://purl.oclc.org/ooxml/\1/",
    )
    return zipped({name: re.sub(usual, other, content) for name, content in members.items()})


@pytest.mark.parametrize("ending", ["docx", "pptx", "xlsx"])
def test_strict_open_xml_is_read(ending):
    parsed = read(strict(plain_files()[ending]))
    assert parsed.mime_type == KINDS[ending]
    assert "The lease ends in May." in "\n".join(part.text for part in parsed.parts)


def long(ending):
    with zipfile.ZipFile(io.BytesIO(plain_files()[ending])) as archive:
        return long_zipped({name: archive.read(name) for name in archive.namelist()})


@pytest.mark.parametrize("ending", ["docx", "pptx", "xlsx", "odt", "epub"])
def test_zip64_archive_is_read(ending):
    parsed = read(long(ending))
    assert parsed.mime_type == KINDS[ending]
    assert "The lease ends in May." in "\n".join(part.text for part in parsed.parts)


_MAIN = "application/vnd.openxmlformats-officedocument.%s.main+xml"
_WORD, _DECK = (_MAIN % kind for kind in ("wordprocessingml.document", "presentationml.presentation"))
KIN = {
    "dotx": ("docx", _WORD, _MAIN % "wordprocessingml.template"),
    "docm": ("docx", _WORD, "application/vnd.ms-word.document.macroEnabled.main+xml"),
    "dotm": ("docx", _WORD, "application/vnd.ms-word.template.macroEnabledTemplate.main+xml"),
    "ppsx": ("pptx", _DECK, _MAIN % "presentationml.slideshow"),
    "potx": ("pptx", _DECK, _MAIN % "presentationml.template"),
    "pptm": ("pptx", _DECK, "application/vnd.ms-powerpoint.presentation.macroEnabled.main+xml"),
    "ppsm": ("pptx", _DECK, "application/vnd.ms-powerpoint.slideshow.macroEnabled.main+xml"),
    "potm": ("pptx", _DECK, "application/vnd.ms-powerpoint.template.macroEnabled.main+xml"),
}


def kin(ending):
    """Create a template, macro file or slide show, which differs from a usual file only in its content type."""
    like, usual, called = KIN[ending]
    return with_text(plain_files()[like], "[Content_Types].xml", usual, called)


@pytest.mark.parametrize("ending", KIN)
def test_templates_and_macro_files_are_read(ending):
    parsed = read(kin(ending), f"lease.{ending}")
    assert parsed.mime_type == KINDS[KIN[ending][0]]
    assert "The lease ends in May." in "\n".join(part.text for part in parsed.parts)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_duplicate_archive_members_are_rewritten_once():
    claimed = b"x" * 2**16
    out = io.BytesIO(strict(plain_files()["docx"]))
    with zipfile.ZipFile(out, "a", zipfile.ZIP_DEFLATED) as archive:
        for content in (*[b"x"] * 500, claimed):
            archive.writestr("word/more.xml", content)
    with zipfile.ZipFile(open_office_file(out.getvalue(), Limits())) as archive:
        assert archive.namelist().count("word/more.xml") == 1
        assert archive.read("word/more.xml") == claimed


LINKED = {"docx": "word/_rels/document.xml.rels", "pptx": "ppt/slides/_rels/slide1.xml.rels"}


def linked(ending, address="http://www.example.org:80a/"):
    """Create a file with a link to this address, which is invalid by default."""
    return with_link(plain_files()[ending], LINKED[ending], address)


@pytest.mark.parametrize("address", ["http://", "https://exa mple.org", "http://www.example.org:80a/"])
@pytest.mark.parametrize("ending", LINKED)
def test_invalid_link_does_not_lose_text(ending, address):
    assert "The lease ends in May." in text_of(linked(ending, address))
