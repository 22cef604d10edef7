"""Define the result of a parser: parts of text with page and section, or an error with a reason."""

from __future__ import annotations

import re
from itertools import groupby

import msgspec

PDF = "application/pdf"
ODT = "application/vnd.oasis.opendocument.text"
EPUB = "application/epub+zip"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
# The main member identifies the type of an archive. Some programs write document2.xml.
OOXML = {
    re.compile(r"word/document[0-9]*\.xml", re.I): DOCX,
    re.compile(r"ppt/presentation\.xml", re.I): PPTX,
    re.compile(r"xl/workbook\.xml", re.I): XLSX,
}
SECTION_MAX = 1000  # maximum length of a section's name in characters


class Part(msgspec.Struct):
    """A part of a document's text. `page` counts from 1."""

    text: str
    page: int | None = None
    section: str | None = None


def merge_sections(parts: list[Part]) -> list[Part]:
    """Merge adjacent parts of the same section."""
    runs = groupby(parts, lambda part: part.section)
    return [Part("\n\n".join(part.text for part in run), section=section) for section, run in runs]


class Parsed(msgspec.Struct):
    mime_type: str
    parts: list[Part]
    page_count: int | None = None


class Limits(msgspec.Struct, frozen=True):
    """Limits for parsing one file.

    `expansion_*` limits the unpacked size of an archive, in bytes and relative to its packed size. `parts` is limited
    because each part, even with a short text, takes almost 1 KB of memory in the server, which has no memory limit.
    """

    seconds: float = 60
    memory_bytes: int = 2**30
    expansion_bytes: int = 200 * 2**20
    expansion_ratio: int = 200
    text_chars: int = 20_000_000
    parts: int = 200_000
    pages: int = 5000


class Unreadable(Exception):
    """No text can be read from the file. `code` is stable; `message` is for users. Neither quotes the file."""

    def __init__(self, code: str, message: str | None = None) -> None:
        self.code = code
        self.message = message or MESSAGES[code]
        super().__init__(self.message)


MESSAGES = {
    "UNSUPPORTED_TYPE": "This type of file is not supported. Nothing was stored. Use PDF, Word, PowerPoint, "
    "Excel, OpenDocument text (ODT), HTML, Markdown, CSV, JSON, RTF, EPUB, plain text or source code.",
    "NO_TEXT": "This PDF contains only images of pages, so there is no text to search. Nothing was stored.",
    "GARBLED": "The text in this file is scrambled and cannot be read. Nothing was stored.",
    "ENCRYPTED": "This file is password-protected. Nothing was stored. Remove the password and try again.",
    "DAMAGED": "This file is damaged and cannot be read. Nothing was stored.",
    "TOO_EXPANSIVE": "This file unpacks to more data than can be read safely. Nothing was stored.",
    "PARSE_TIMEOUT": "Reading this file took too long. Nothing was stored.",
    "PARSE_MEMORY": "Reading this file needed too much memory. Nothing was stored.",
    "EMPTY": "This file contains no text. Nothing was stored.",
}
