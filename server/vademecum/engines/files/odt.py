"""OpenDocument text: headings become sections; a row of a table is a line."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from typing import Any

from vademecum.engines.files import archive
from vademecum.engines.files.parsed import ODT, Limits, Parsed, Part, Unreadable, joined

_NAMES = "{urn:oasis:names:tc:opendocument:xmlns:%s:1.0}"
_TEXT, _TABLE, _OFFICE = (_NAMES % name for name in ("text", "table", "office"))
_HEADING, _PARAGRAPH, _ROW = f"{_TEXT}h", f"{_TEXT}p", f"{_TABLE}table-row"
_GONE = {f"{_TEXT}tracked-changes", f"{_OFFICE}annotation"}  # struck out; said about the text, not in it
_SIGNS = {f"{_TEXT}s": " ", f"{_TEXT}tab": "\t", f"{_TEXT}line-break": "\n"}


def parse(data: bytes, limits: Limits) -> Parsed:
    archive.check(data, limits)
    with zipfile.ZipFile(io.BytesIO(data)) as opened:
        if "META-INF/manifest.xml" in opened.namelist() and b"encryption-data" in opened.read(
            "META-INF/manifest.xml"
        ):
            raise Unreadable("ENCRYPTED")
        root = archive.xml(archive.member(opened, "content.xml", limits))
    body = root.find(f".//{_OFFICE}text")
    parts: list[Part] = []
    section: str | None = None
    for block in archive.topmost(body, {_HEADING, _PARAGRAPH, _ROW}, _GONE) if body is not None else ():
        text = _row(block) if block.tag == _ROW else "".join(_words(block))
        if block.tag == _HEADING and text.strip():
            section = text.strip()
        parts.append(Part(text, section=section))
    return Parsed(ODT, joined(parts))


def _row(row: Any) -> str:
    cells = (archive.topmost(cell, {_HEADING, _PARAGRAPH}, _GONE) for cell in row)
    return "\t".join(" ".join("".join(_words(block)).strip() for block in cell) for cell in cells)


def _words(node: Any) -> Iterator[str]:
    """In the order in which they stand; a paragraph within (of a text box or a note) is a line of its own."""
    yield _SIGNS.get(node.tag, "")
    yield node.text or ""
    for child in node.iterchildren("*"):
        if child.tag in (_HEADING, _PARAGRAPH):
            yield "\n"
        if child.tag not in _GONE:
            yield from _words(child)
        yield child.tail or ""
