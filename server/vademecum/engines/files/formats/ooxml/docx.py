"""Parse the text of DOCX as Word shows it. Headings become sections.

Tracked insertions and generated numbers are included; tracked deletions, hidden text and comments are not. A note
follows the paragraph or table that refers to it. Page headers are read once, before the body, and page footers after
it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Set
from functools import partial
from typing import Any

from lxml import etree

from vademecum.engines.files.charset.detect import decode
from vademecum.engines.files.file_type import detect_type
from vademecum.engines.files.formats.html_epub import html_parts
from vademecum.engines.files.formats.ooxml import zip_container
from vademecum.engines.files.formats.ooxml.charts import GRAPHIC, Drawings
from vademecum.engines.files.formats.ooxml.docx_numbering import ListCounter, Numbering
from vademecum.engines.files.formats.ooxml.docx_properties import VALUE, child, switch, value
from vademecum.engines.files.formats.ooxml.package import Package, Relation, qn
from vademecum.engines.files.formats.text import parse_rtf
from vademecum.engines.files.result import DOCX, Limits, Parsed, Part, Unreadable, merge_sections

_MAIN = "word/document.xml"

_PARAGRAPH, _TABLE, _ROW, _CELL = (qn(f"w:{name}") for name in ("p", "tbl", "tr", "tc"))
_CHUNK = qn("w:altChunk")
# Text elements of Word and of formulas.
_TEXTS = {qn("w:t"), "{http://schemas.openxmlformats.org/officeDocument/2006/math}t"}
# The parser adds this element to a paragraph for its generated number. Documents have it in numbering definitions only.
_NUMBER = qn("w:lvlText")
_STYLE = f"{qn('w:pPr')}/{qn('w:pStyle')}"
_RUN, _BOX, _RUN_PROPERTIES = qn("w:r"), qn("w:txbxContent"), qn("w:rPr")
# Elements that are not read: tracked deletions and moves, properties (their tabs are tab stops, not characters), ruby
# pronunciations, and copies for older programs.
_SKIPPED = {qn(f"w:{name}") for name in ("del", "moveFrom", "pPr", "rPr", "sectPr", "rt")} | {
    "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
}
_OUTSIDE = _SKIPPED | {_PARAGRAPH}  # excludes text boxes, which do not belong to the paragraph around them
_NOTES = {qn("w:footnote"): qn("w:footnoteReference"), qn("w:endnote"): qn("w:endnoteReference")}
_ID = qn("w:id")
_SHAPE_PROPERTIES = (qn("wp:docPr"), "{*}cNvPr")
_HEADING = re.compile("heading [1-9]$|Heading|Title")
_VISIBLE = re.compile(r"[^\s\x85\ufeff]")  # not whitespace, neither in Python nor in a browser
_SPECIAL_CHARACTERS = {
    qn("w:tab"): "\t",
    qn("w:br"): "\n",
    qn("w:cr"): "\n",
    qn("w:noBreakHyphen"): "-",
    qn("w:ptab"): "\t",
}


def parse(data: bytes, limits: Limits, *, is_chunk: bool = False) -> Parsed:
    """Parse a document. Raises Unreadable.

    If `is_chunk` is true, the document is embedded in another one, and files embedded in this document are not read.
    """
    document = _Document(data, limits)
    hidden = _hidden_styles(document.styles)
    numbering = document.numbering()

    def new_text_flow() -> Callable[[Any], None]:
        """Return a function that reduces XML trees to what is visible. Its numbering continues from tree to tree."""
        counter = ListCounter(numbering) if numbering else None
        return partial(_make_visible, hidden=hidden, counter=counter)

    new_text_flow()(document.body)
    _insert_drawing_texts(document)
    notes = _notes(document, new_text_flow)
    headings = _headings(document.styles)
    make_visible = new_text_flow()
    parts = _page_texts(document, "header", make_visible)
    section: str | None = None
    for block in zip_container.find_outermost(document.body, {_PARAGRAPH, _TABLE, _CHUNK}, _SKIPPED):
        if block.tag == _CHUNK:
            chunk_parts = [] if is_chunk else _parse_chunk(document, block, limits)
            parts += [Part(part.text, section=part.section or section) for part in chunk_parts]
            continue
        text = _block_text(block)
        style = block.find(_STYLE)
        unnumbered = text.removeprefix(block.findtext(_NUMBER, "")).strip()
        if style is not None and style.get(VALUE) in headings and unnumbered:
            section = text.strip()
        references = zip_container.find_outermost(block, set(_NOTES.values()), _SKIPPED)
        # `pop`, because a note follows only its first reference.
        referenced_notes = (notes.pop((mark.tag, mark.get(_ID)), "") for mark in references)
        parts.append(Part("\n".join([text, *filter(None, referenced_notes)]), section=section))
    return Parsed(DOCX, merge_sections(parts + _page_texts(document, "footer", make_visible)))


class _Document:
    """The parts of a document that the parser reads."""

    def __init__(self, data: bytes, limits: Limits) -> None:
        self.package = Package(data, limits)
        main = self.package.main(_MAIN)
        self.body = child(self.package.xml(main), "body")
        if self.body is None:
            raise Unreadable("DAMAGED")
        self.relations = self.package.relations(main)
        self.styles = self._optional_part("styles")
        self.settings = self._optional_part("settings")

    def related(self, *kinds: str) -> Iterator[str]:
        return self.package.related(self.relations, *kinds)

    def numbering(self) -> Numbering | None:
        """Return the document's numbering, or None if it is missing or damaged."""
        try:
            root = self.package.optional_xml(next(self.related("numbering"), None))
            return None if root is None else Numbering(root, self.styles)
        except Unreadable:
            return None

    def _optional_part(self, kind: str) -> Any:
        """Return the root of an optional part, or an empty element."""
        root = self.package.optional_xml(next(self.related(kind), None))
        return etree.Element(qn(f"w:{kind}")) if root is None else root


def _headings(styles: Any) -> set[str]:
    named = (
        (style.get(qn("w:styleId")), value(style, "name")) for style in styles.iterchildren(qn("w:style"))
    )
    return {style for style, name in named if _HEADING.match(name)}


def _parse_chunk(document: _Document, mark: Any, limits: Limits) -> list[Part]:
    """Return the text of an embedded file (HTML, RTF, plain text or DOCX), whose content Word shows in the document."""
    relation = document.relations.get(mark.get(qn("r:id")), Relation("", None))
    if relation.place is None:
        return []
    try:
        data = document.package.bytes(relation.place)
        kind = detect_type(data, relation.place)
        if kind == DOCX:
            return parse(data, limits, is_chunk=True).parts
        if kind == "text/html":
            return html_parts(decode(data))
        if kind == "text/rtf":
            return parse_rtf(data, limits).parts
        return [Part(decode(data))] if kind == "text/plain" else []
    except Unreadable as error:
        if error.code not in ("DAMAGED", "EMPTY", "UNSUPPORTED_TYPE", "GARBLED"):
            raise
        return []


def _hidden_styles(root: Any) -> set[str]:
    """Return the styles that hide their text, directly or by inheritance."""
    styles = {style.get(qn("w:styleId")): style for style in root.iterchildren(qn("w:style"))}
    hidden = set()
    for name, style in styles.items():
        above, seen = style, 0
        while (
            above is not None
            and (hides := switch(above.find(_RUN_PROPERTIES), "vanish")) is None
            and seen < 20
        ):
            based, seen = above.find(qn("w:basedOn")), seen + 1
            above = None if based is None else styles.get(based.get(VALUE))
        if above is not None and hides:
            hidden.add(name)
    return hidden


def _remove_hidden(root: Any, styles: Set[str]) -> None:
    """Remove hidden runs, table rows and shapes from a tree."""
    hidden = [run for run in root.iter(_RUN) if _is_hidden(run, styles)]
    hidden += [row for row in root.iter(_ROW) if switch(row.find(qn("w:trPr")), "hidden")]
    hidden += [
        properties.getparent()
        for properties in root.iter(*_SHAPE_PROPERTIES)
        if properties.get("hidden") in ("1", "true")
    ]
    for node in hidden:
        node.getparent().remove(node)


def _make_visible(root: Any, hidden: Set[str], counter: ListCounter | None) -> None:
    _remove_hidden(root, hidden)
    if counter:
        _insert_numbers(root, counter, hidden)


def _insert_numbers(root: Any, counter: ListCounter, hidden: Set[str]) -> None:
    """Insert Word's generated number into each paragraph. An empty paragraph with a deleted mark is not counted."""
    for paragraph, is_boxed in _paragraphs(root):
        letters = zip_container.find_outermost(paragraph, _TEXTS, _OUTSIDE)
        has_text = any(_VISIBLE.search(node.text or "") for node in letters)
        if not has_text and _is_mark_deleted(paragraph, hidden):
            continue
        if number := counter.number(paragraph, has_text, is_boxed):
            written = etree.Element(_NUMBER)
            written.text = number
            paragraph.insert(0, written)


def _paragraphs(node: Any, is_boxed: bool = False) -> Iterator[tuple[Any, bool]]:
    """Yield each paragraph in document order, including nested ones, and whether it is in a text box."""
    for inner in node.iterchildren("*"):
        if inner.tag == _PARAGRAPH:
            yield inner, is_boxed
        if inner.tag not in _SKIPPED:
            yield from _paragraphs(inner, is_boxed or inner.tag == _BOX)


def _is_mark_deleted(paragraph: Any, hidden: Set[str]) -> bool:
    """Return whether the paragraph mark was deleted, moved away or hidden."""
    properties = child(paragraph, "pPr")
    mark = child(properties, "rPr")
    if child(mark, "del") is not None or child(mark, "moveFrom") is not None:
        return True
    own = switch(mark, "vanish")
    return value(properties, "pStyle") in hidden if own is None else own


def _insert_drawing_texts(document: _Document) -> None:
    """Insert the text of each chart and diagram as a text box at its position."""
    drawings = Drawings(document.package)
    for graphic in list(document.body.iter(GRAPHIC)):
        if lines := drawings.lines(graphic, document.relations):
            box = etree.SubElement(graphic, _BOX)
            for line in lines:
                etree.SubElement(etree.SubElement(box, _PARAGRAPH), qn("w:t")).text = line


def _is_hidden(run: Any, styles: Set[str]) -> bool:
    run_properties = run.find(_RUN_PROPERTIES)
    own = switch(run_properties, "vanish")
    if own is not None or not styles:
        return bool(own)
    run_style = None if run_properties is None else run_properties.find(qn("w:rStyle"))
    paragraph = next(run.iterancestors(_PARAGRAPH), None)
    paragraph_style = None if paragraph is None else paragraph.find(_STYLE)
    # `vanish` is a toggle property: set in both the paragraph and the character style, it cancels out.
    return (
        sum(style is not None and style.get(VALUE) in styles for style in (run_style, paragraph_style)) == 1
    )


def _page_texts(document: _Document, place: str, make_visible: Callable[[Any], None]) -> list[Part]:
    """Return the distinct page headers or footers (`place`).

    Headers and footers without letters, such as a page number, are skipped.
    """
    odd_and_even = switch(document.settings, "evenAndOddHeaders")
    texts: dict[str, Part] = {}
    read = set()
    for section in document.body.iter(qn("w:sectPr")):
        is_shown = {"default": True, "first": switch(section, "titlePg"), "even": odd_and_even}
        for reference in section.iterchildren(qn(f"w:{place}Reference")):
            part = document.relations.get(reference.get(qn("r:id")), Relation("", None)).place
            if part is None or part in read or not is_shown.get(reference.get(qn("w:type"), "default")):
                continue
            read.add(part)
            root = document.package.optional_xml(part)
            if root is not None:
                make_visible(root)
                text = _block_texts(root).strip()
                if any(map(str.isalpha, text)):
                    texts[text] = Part(text)
    return list(texts.values())


def _notes(
    document: _Document, new_text_flow: Callable[[], Callable[[Any], None]]
) -> dict[tuple[str, str], str]:
    """Map tag and id of a note's reference to the text of the note. Damaged notes are skipped."""
    notes = {}
    for place in document.related("footnotes", "endnotes"):
        root = document.package.optional_xml(place)
        if root is not None:
            new_text_flow()(root)
            for note in root.iterchildren(*_NOTES):
                notes[_NOTES[note.tag], note.get(_ID)] = _block_texts(note).strip()
    return notes


def _block_texts(node: Any) -> str:
    return "\n".join(map(_block_text, zip_container.find_outermost(node, {_PARAGRAPH, _TABLE}, _SKIPPED)))


def _block_text(block: Any) -> str:
    """Return the text of a block. A table row becomes one line, even if its cells contain tables."""
    if block.tag == _PARAGRAPH:
        return "".join(_text_pieces(block))
    rows = zip_container.find_outermost(block, {_ROW}, _SKIPPED)
    return "\n".join(
        "\t".join(map(_cell_text, zip_container.find_outermost(row, {_CELL}, _SKIPPED))) for row in rows
    )


def _cell_text(cell: Any) -> str:
    return " ".join(
        " ".join(map(_block_text, zip_container.find_outermost(cell, {_PARAGRAPH, _TABLE}, _SKIPPED))).split()
    )


def _text_pieces(node: Any) -> Iterator[str]:
    for inner in node.iterchildren("*"):
        if inner.tag in _TEXTS or inner.tag == _NUMBER:
            yield inner.text or ""
        elif inner.tag == _BOX:
            yield f"\n{_block_texts(inner)}\n"
        elif inner.tag not in _SKIPPED:
            yield _SPECIAL_CHARACTERS.get(inner.tag, "")
            yield from _text_pieces(inner)
