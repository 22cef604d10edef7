"""What is this file? The bytes decide; the name only tells kinds of plain text apart."""

from __future__ import annotations

import io
import json
import re
import zipfile
from pathlib import PurePath

from charset_normalizer import from_bytes

from vademecum.engines.files.parsed import Unreadable

OOXML = {
    "word/document.xml": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "ppt/presentation.xml": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "xl/workbook.xml": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
BY_ENDING = {
    "md": "text/markdown",
    "markdown": "text/markdown",
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
}
_HTML = re.compile(rb"^\s*(<\?xml[^>]*>\s*)?(<!--.*?-->\s*)*<(!doctype\s+html|html|head|body)\b", re.I | re.S)
_BOMS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}


def sniff(data: bytes, filename: str) -> str:
    """The MIME type. Raises Unreadable for what has no parser."""
    if b"%PDF-" in data[:1024]:
        return "application/pdf"
    if data.startswith(b"PK\x03\x04") or data.startswith(b"PK\x05\x06"):
        return _archive(data)
    if data.startswith(b"{\\rtf"):
        return "text/rtf"
    if data.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):  # old Office, or an encrypted new one
        raise Unreadable("ENCRYPTED" if b"E\0n\0c\0r\0y\0p\0t" in data else "UNSUPPORTED_TYPE")
    return _plain(data, filename)


def _archive(data: bytes) -> str:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = set(archive.namelist())
            if any(info.flag_bits & 1 for info in archive.infolist()):
                raise Unreadable("ENCRYPTED")
            if "mimetype" in names and archive.getinfo("mimetype").file_size < 200:
                kind = archive.read("mimetype").decode("ascii", "replace").strip()
                if kind in ("application/epub+zip", "application/vnd.oasis.opendocument.text"):
                    return kind
    except (zipfile.BadZipFile, NotImplementedError, OSError, EOFError) as error:
        raise Unreadable("DAMAGED") from error
    for main, kind in OOXML.items():
        if main in names:
            return kind
    raise Unreadable("UNSUPPORTED_TYPE")


def _plain(data: bytes, filename: str) -> str:
    if not data.strip():
        raise Unreadable("EMPTY")
    text = decode(data)
    if _HTML.match(data[:65536]) or _HTML.match(text[:65536].encode(errors="replace")):
        return "text/html"
    ending = PurePath(filename).suffix.lower().lstrip(".")
    if ending in BY_ENDING:
        return BY_ENDING[ending]
    if text.lstrip()[:1] in ("{", "["):
        try:
            json.loads(text)
            return "application/json"
        except (ValueError, RecursionError):
            return "text/plain"
    return "text/plain"


def decode(data: bytes) -> str:
    """Text in whatever encoding. Raises Unreadable for bytes that are none."""
    for bom, encoding in _BOMS.items():
        if data.startswith(bom):
            try:
                return data.decode(encoding)
            except UnicodeDecodeError as error:
                raise Unreadable("DAMAGED") from error
    if b"\0" in data:
        raise Unreadable("UNSUPPORTED_TYPE")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        best = from_bytes(data[:1_000_000]).best()
        if best is None:
            raise Unreadable("UNSUPPORTED_TYPE") from None
        text = data.decode(best.encoding, "replace")
    odd = sum(1 for c in text[:100_000] if c < " " and c not in "\t\n\r\f\x1b")
    if odd > len(text[:100_000]) * 0.02:
        raise Unreadable("UNSUPPORTED_TYPE")
    return text
