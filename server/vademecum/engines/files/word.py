"""DOCX, as Word shows it: what was inserted is read and what was struck out is not; headings become sections.

A note stands below the paragraph or table that refers to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import docx
from docx.oxml.ns import qn

from vademecum.engines.files import archive
from vademecum.engines.files.parsed import DOCX, Limits, Parsed, Part, joined

_PARAGRAPH, _TABLE, _ROW, _CELL = (qn(f"w:{name}") for name in ("p", "tbl", "tr", "tc"))
# Those of a formula, too.
_LETTERS = {qn("w:t"), "{http://schemas.openxmlformats.org/officeDocument/2006/math}t"}
_STYLE = f"{qn('w:pPr')}/{qn('w:pStyle')}"
# Struck out, or moved away; properties (whose tabs are stops and not signs); a second copy for older programs.
_GONE = {qn(f"w:{name}") for name in ("del", "moveFrom", "pPr", "rPr", "sectPr")} | {
    "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
}
_NOTES = {qn("w:footnote"): qn("w:footnoteReference"), qn("w:endnote"): qn("w:endnoteReference")}
_ID = qn("w:id")
_SIGNS = {
    qn("w:tab"): "\t",
    qn("w:br"): "\n",
    qn("w:cr"): "\n",
    qn("w:noBreakHyphen"): "-",
    _PARAGRAPH: "\n",  # of a text box, within the paragraph that holds it
}


def parse(data: bytes, limits: Limits) -> Parsed:
    document = docx.Document(archive.without_lost(archive.office(data, limits), limits))
    headings = {
        style.style_id for style in document.styles if (style.name or "").startswith(("Heading", "Title"))
    }
    notes = _notes(document.part)
    parts: list[Part] = []
    section: str | None = None
    for block in archive.topmost(document.element.body, {_PARAGRAPH, _TABLE}, _GONE):
        text = _text(block)
        style = block.find(_STYLE)
        if style is not None and style.get(qn("w:val")) in headings and text.strip():
            section = text.strip()
        referring = archive.topmost(block, set(_NOTES.values()), _GONE)
        below = (
            notes.pop((mark.tag, mark.get(_ID)), "") for mark in referring
        )  # each once, however often named
        parts.append(Part("\n".join([text, *filter(None, below)]), section=section))
    return Parsed(DOCX, joined(parts))


def _notes(part: Any) -> dict[tuple[str, str], str]:
    """What each note says, by what refers to it."""
    found = {}
    for relation in part.rels.values():
        if not relation.is_external and relation.reltype.endswith(("/footnotes", "/endnotes")):
            for note in archive.xml(relation.target_part.blob).iterchildren(*_NOTES):
                said = "\n".join(map(_text, archive.topmost(note, {_PARAGRAPH, _TABLE}, _GONE)))
                found[_NOTES[note.tag], note.get(_ID)] = said.strip()
    return found


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
        if child.tag in _LETTERS:
            yield child.text or ""
        elif child.tag not in _GONE:
            yield _SIGNS.get(child.tag, "")
            yield from _words(child)
