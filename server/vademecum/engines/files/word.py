"""DOCX, as Word shows it: what was inserted is read and what was struck out is not; headings become sections."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import docx
from docx.oxml.ns import qn

from vademecum.engines.files import archive
from vademecum.engines.files.parsed import OOXML, Limits, Parsed, Part, joined

_PARAGRAPH, _TABLE, _ROW, _CELL, _LETTERS = (qn(f"w:{name}") for name in ("p", "tbl", "tr", "tc", "t"))
_STYLE = f"{qn('w:pPr')}/{qn('w:pStyle')}"
# Struck out, or moved away; properties (whose tabs are stops and not signs); a second copy for older programs.
_GONE = {qn(f"w:{name}") for name in ("del", "moveFrom", "pPr", "rPr", "sectPr")} | {
    "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
}
_SIGNS = {
    qn("w:tab"): "\t",
    qn("w:br"): "\n",
    qn("w:cr"): "\n",
    qn("w:noBreakHyphen"): "-",
    _PARAGRAPH: "\n",  # of a text box, within the paragraph that holds it
}


def parse(data: bytes, limits: Limits) -> Parsed:
    archive.check(data, limits)
    document = docx.Document(io.BytesIO(data))
    headings = {
        style.style_id for style in document.styles if (style.name or "").startswith(("Heading", "Title"))
    }
    parts: list[Part] = []
    section: str | None = None
    for block in archive.topmost(document.element.body, {_PARAGRAPH, _TABLE}, _GONE):
        text = _text(block)
        style = block.find(_STYLE)
        if style is not None and style.get(qn("w:val")) in headings and text.strip():
            section = text.strip()
        parts.append(Part(text, section=section))
    return Parsed(OOXML["word/document.xml"], joined(parts))


def _text(block: Any) -> str:
    """A table is a line a row; a table within a cell is part of that line."""
    if block.tag == _PARAGRAPH:
        return "".join(_words(block))
    rows = archive.topmost(block, {_ROW}, _GONE)
    return "\n".join("\t".join(map(_cell, archive.topmost(row, {_CELL}, _GONE))) for row in rows)


def _cell(cell: Any) -> str:
    return " ".join(" ".join(map(_text, archive.topmost(cell, {_PARAGRAPH, _TABLE}, _GONE))).split())


def _words(node: Any) -> Iterator[str]:
    for child in node.iterchildren("*"):
        if child.tag == _LETTERS:
            yield child.text or ""
        elif child.tag not in _GONE:
            yield _SIGNS.get(child.tag, "")
            yield from _words(child)
