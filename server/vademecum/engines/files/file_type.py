"""Detect a file's type from its bytes. The name only distinguishes kinds of text."""

from __future__ import annotations

import io
import json
import re
import zipfile
from pathlib import PurePath

from vademecum.engines.files.charset.detect import decode
from vademecum.engines.files.result import DOCX, EPUB, ODT, OOXML, PDF, PPTX, XLSX, Unreadable

MIME_TYPES_BY_SUFFIX = {
    "md": "text/markdown",
    "markdown": "text/markdown",
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
    "jsonl": "application/json",
    "ndjson": "application/json",
}
_MAIN_TYPES = {
    DOCX: b"wordprocessingml.document.main+xml",
    PPTX: b"presentationml.presentation.main+xml",
    XLSX: b"spreadsheetml.sheet.main+xml",
}
_HTML_SUFFIXES = {"html", "htm", "xhtml"}
_PDF_END = re.compile(rb"startxref\s+\d+\s+%%EOF\s*$")
# Possessive quantifiers prevent backtracking, because a text may begin with any number of comments.
_HTML = re.compile(
    rb"^\s*+(<\?xml[^>]*+>\s*+)?+(?><!--.*?-->\s*+)*+<(!doctype\s+html|html|head|body)\b", re.I | re.S
)


def detect_type(data: bytes, filename: str) -> str:
    """Return the MIME type of a file. Raises Unreadable if no parser supports it."""
    if _is_pdf(data):
        return PDF
    if data.startswith(b"PK\x03\x04") or data.startswith(b"PK\x05\x06"):
        return _detect_archive(data)
    if data.startswith(b"{\\rtf"):
        return "text/rtf"
    if data.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):  # an old Office file, or an encrypted new one
        raise Unreadable("ENCRYPTED" if b"E\0n\0c\0r\0y\0p\0t" in data else "UNSUPPORTED_TYPE")
    return _detect_text(data, filename)


def _is_pdf(data: bytes) -> bool:
    """Return whether `%PDF-` is in the first 1,024 bytes and the file is not a text that mentions `%PDF-`."""
    head = data[:1024]
    if b"%PDF-" not in head:
        return False
    if head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"%PDF-") or _PDF_END.search(data[-1024:]):
        return True
    try:
        decode(data)
    except Unreadable:
        return True
    return False


def _detect_archive(data: bytes) -> str:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = set(archive.namelist())
            if any(info.flag_bits & 1 for info in archive.infolist()):
                raise Unreadable("ENCRYPTED")
            if "mimetype" in names and archive.getinfo("mimetype").file_size < 200:
                kind = archive.read("mimetype").decode("ascii", "replace").strip()
                if kind in (EPUB, ODT):
                    return kind
            types = _content_types(archive)
    except (zipfile.BadZipFile, NotImplementedError, OSError, EOFError) as error:
        raise Unreadable("DAMAGED") from error
    # Some programs write backslashes in the names of an Office file's parts.
    normalized = [name.replace("\\", "/") for name in names]
    for main, kind in OOXML.items():
        if any(map(main.fullmatch, normalized)) or _MAIN_TYPES[kind] in types:
            return kind
    raise Unreadable("UNSUPPORTED_TYPE")


def _content_types(archive: zipfile.ZipFile) -> bytes:
    """Return the content types of an Office file. They show its kind even if the main part has an unusual name."""
    name = "[Content_Types].xml"
    is_listed = name in archive.namelist() and archive.getinfo(name).file_size < 2**20
    return archive.read(name) if is_listed else b""


def _detect_text(data: bytes, filename: str) -> str:
    if not data.strip():
        raise Unreadable("EMPTY")
    text = decode(data)
    if _HTML.match(data[:65536]) or _HTML.match(text[:65536].encode(errors="replace")):
        return "text/html"
    suffix = PurePath(filename).suffix.lower().lstrip(".")
    if suffix in _HTML_SUFFIXES and text.lstrip().startswith("<"):  # a page may begin with any tag
        return "text/html"
    if suffix in MIME_TYPES_BY_SUFFIX:
        return MIME_TYPES_BY_SUFFIX[suffix]
    if text.lstrip()[:1] in ("{", "["):
        try:
            json.loads(text)
            return "application/json"
        except (ValueError, RecursionError):
            return "text/plain"
    return "text/plain"
