"""DOCX, as Word shows it: what was inserted is read; what was struck out or hidden is not, nor what is said about the text.
Headings become sections. The numbers that Word makes are written out.

A note stands below the paragraph or table that refers to it; what stands above the pages is read once, before all of
them, and what stands below them after all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Set
from functools import partial
from typing import Any

import docx
from docx.opc.constants import CONTENT_TYPE
from docx.opc.part import PartFactory
from docx.oxml.ns import qn
from lxml import etree

from vademecum.engines.files import archive
from vademecum.engines.files.drawn import GRAPHIC, Drawn
from vademecum.engines.files.numbering import Counting, Numbering
from vademecum.engines.files.parsed import DOCX, Limits, Parsed, Part, Unreadable, joined
from vademecum.engines.files.properties import VALUE, child, switch, value

# python-docx would read it itself, and refuse the document if it is broken.
PartFactory.part_type_for.pop(CONTENT_TYPE.WML_NUMBERING, None)

_PARAGRAPH, _TABLE, _ROW, _CELL = (qn(f"w:{name}") for name in ("p", "tbl", "tr", "tc"))
# Those of a formula, too.
_LETTERS = {qn("w:t"), "{http://schemas.openxmlformats.org/officeDocument/2006/math}t"}
_NUMBER = qn("w:lvlText")  # of a paragraph, where it is written out; no document has one there
_STYLE = f"{qn('w:pPr')}/{qn('w:pStyle')}"
_RUN, _BOX, _LOOK = qn("w:r"), qn("w:txbxContent"), qn("w:rPr")
# Struck out, or moved away; properties (whose tabs are stops and not signs); how a sign is pronounced; a second copy for
# older programs.
_GONE = {qn(f"w:{name}") for name in ("del", "moveFrom", "pPr", "rPr", "sectPr", "rt")} | {
    "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
}
_OUTSIDE = _GONE | {_PARAGRAPH}  # a paragraph's own words are not those of a box in it
_NOTES = {qn("w:footnote"): qn("w:footnoteReference"), qn("w:endnote"): qn("w:endnoteReference")}
_ID = qn("w:id")
_ABOUT_SHAPES = (qn("wp:docPr"), "{*}cNvPr")
_UNBLANK = re.compile(r"[^\s\x85\ufeff]")  # what is a blank to Python or to a browser is one here
_SIGNS = {
    qn("w:tab"): "\t",
    qn("w:br"): "\n",
    qn("w:cr"): "\n",
    qn("w:noBreakHyphen"): "-",
    qn("w:ptab"): "\t",
}


def parse(data: bytes, limits: Limits) -> Parsed:
    document = docx.Document(archive.without_lost(archive.office(data, limits), limits))
    headings = {
        style.style_id for style in document.styles if (style.name or "").startswith(("Heading", "Title"))
    }
    hidden = _hidden_styles(document.styles.element)
    numbering = _numbering(document)

    def story() -> Callable[[Any], None]:
        """What makes a tree, or several that go on counting, as Word shows them."""
        counting = Counting(numbering) if numbering else None
        return partial(_make_shown, hidden=hidden, counting=counting)

    story()(document.element.body)
    _write_out_drawn(document.element.body, document.part.rels)
    notes = _notes(document.part, story)
    around_pages = story()
    parts = _around(document, "header", around_pages)
    section: str | None = None
    for block in archive.topmost(document.element.body, {_PARAGRAPH, _TABLE}, _GONE):
        text = _text(block)
        style = block.find(_STYLE)
        said = text.removeprefix(block.findtext(_NUMBER, "")).strip()
        if style is not None and style.get(VALUE) in headings and said:
            section = text.strip()
        referring = archive.topmost(block, set(_NOTES.values()), _GONE)
        below = (
            notes.pop((mark.tag, mark.get(_ID)), "") for mark in referring
        )  # each once, however often named
        parts.append(Part("\n".join([text, *filter(None, below)]), section=section))
    return Parsed(DOCX, joined(parts + _around(document, "footer", around_pages)))


def _hidden_styles(root: Any) -> set[str]:
    """Those that hide what is written in them, by themselves or because of the one that they are based on."""
    styles = {style.get(qn("w:styleId")): style for style in root.iterchildren(qn("w:style"))}
    found = set()
    for name, style in styles.items():
        above, seen = style, 0
        while above is not None and (hides := switch(above.find(_LOOK), "vanish")) is None and seen < 20:
            based, seen = above.find(qn("w:basedOn")), seen + 1
            above = None if based is None else styles.get(based.get(VALUE))
        if above is not None and hides:
            found.add(name)
    return found


def _take_hidden(root: Any, styles: Set[str]) -> None:
    """Out of a tree what Word does not show."""
    hidden = [run for run in root.iter(_RUN) if _is_hidden(run, styles)]
    hidden += [row for row in root.iter(_ROW) if switch(row.find(qn("w:trPr")), "hidden")]
    hidden += [
        about.getparent() for about in root.iter(*_ABOUT_SHAPES) if about.get("hidden") in ("1", "true")
    ]
    for node in hidden:
        node.getparent().remove(node)


def _make_shown(root: Any, hidden: Set[str], counting: Counting | None) -> None:
    _take_hidden(root, hidden)
    if counting:
        _write_out_numbers(root, counting, hidden)


def _numbering(document: Any) -> Numbering | None:
    """None if the document has none that can be read."""
    for relation in document.part.rels.values():
        if not relation.is_external and relation.reltype.endswith("/numbering"):
            try:
                return Numbering(archive.xml(relation.target_part.blob), document.styles.element)
            except Unreadable:
                return None
    return None


def _write_out_numbers(root: Any, counting: Counting, hidden: Set[str]) -> None:
    """Into each paragraph the number that Word shows before it. One without words whose end is gone is no paragraph."""
    for paragraph, is_boxed in _paragraphs(root):
        letters = archive.topmost(paragraph, _LETTERS, _OUTSIDE)
        is_said = any(_UNBLANK.search(node.text or "") for node in letters)
        if not is_said and _is_end_gone(paragraph, hidden):
            continue
        if number := counting.number(paragraph, is_said, is_boxed):
            written = etree.Element(_NUMBER)
            written.text = number
            paragraph.insert(0, written)


def _paragraphs(node: Any, is_boxed: bool = False) -> Iterator[tuple[Any, bool]]:
    """All, in order, those within others too, and whether they stand in a box of text."""
    for inner in node.iterchildren("*"):
        if inner.tag == _PARAGRAPH:
            yield inner, is_boxed
        if inner.tag not in _GONE:
            yield from _paragraphs(inner, is_boxed or inner.tag == _BOX)


def _is_end_gone(paragraph: Any, hidden: Set[str]) -> bool:
    """Whether its mark was struck out, moved away or hidden."""
    properties = child(paragraph, "pPr")
    look = child(properties, "rPr")
    if child(look, "del") is not None or child(look, "moveFrom") is not None:
        return True
    own = switch(look, "vanish")
    return value(properties, "pStyle") in hidden if own is None else own


def _write_out_drawn(root: Any, relations: Mapping[str, Any]) -> None:
    """What a chart or a diagram says, as a box of text where it stands."""
    drawn = Drawn()
    for graphic in list(root.iter(GRAPHIC)):
        if lines := drawn.lines(graphic, relations):
            box = etree.SubElement(graphic, _BOX)
            for line in lines:
                etree.SubElement(etree.SubElement(box, _PARAGRAPH), qn("w:t")).text = line


def _is_hidden(run: Any, styles: Set[str]) -> bool:
    look = run.find(_LOOK)
    own = switch(look, "vanish")
    if own is not None or not styles:
        return bool(own)
    named = None if look is None else look.find(qn("w:rStyle"))
    paragraph = next(run.iterancestors(_PARAGRAPH), None)
    around = None if paragraph is None else paragraph.find(_STYLE)
    # Hidden by both, it is shown again.
    return sum(style is not None and style.get(VALUE) in styles for style in (named, around)) == 1


def _around(document: Any, place: str, show: Callable[[Any], None]) -> list[Part]:
    """What stands above or below the pages, each once. A number alone is that of the page."""
    odd_and_even = switch(document.settings.element, "evenAndOddHeaders")
    found: dict[str, Part] = {}
    read = set()
    for section in document.element.body.iter(qn("w:sectPr")):
        is_shown = {"default": True, "first": switch(section, "titlePg"), "even": odd_and_even}
        for reference in section.iterchildren(qn(f"w:{place}Reference")):
            relation = document.part.rels.get(reference.get(qn("r:id")))
            is_ours = relation is not None and not relation.is_external
            root = getattr(relation.target_part, "element", None) if is_ours else None
            if root is not None and root not in read and is_shown.get(reference.get(qn("w:type"), "default")):
                read.add(root)
                show(root)
                said = _blocks(root).strip()
                if any(map(str.isalpha, said)):
                    found[said] = Part(said)
    return list(found.values())


def _notes(part: Any, story: Callable[[], Callable[[Any], None]]) -> dict[tuple[str, str], str]:
    """What each note says, by what refers to it."""
    found = {}
    for relation in part.rels.values():
        if not relation.is_external and relation.reltype.endswith(("/footnotes", "/endnotes")):
            root = archive.xml(relation.target_part.blob)
            story()(root)
            for note in root.iterchildren(*_NOTES):
                found[_NOTES[note.tag], note.get(_ID)] = _blocks(note).strip()
    return found


def _blocks(node: Any) -> str:
    return "\n".join(map(_text, archive.topmost(node, {_PARAGRAPH, _TABLE}, _GONE)))


def _text(block: Any) -> str:
    """A table is a line a row; a table within a cell is part of that line."""
    if block.tag == _PARAGRAPH:
        return "".join(_words(block))
    rows = archive.topmost(block, {_ROW}, _GONE)
    return "\n".join("\t".join(map(_cell, archive.topmost(row, {_CELL}, _GONE))) for row in rows)


def _cell(cell: Any) -> str:
    return " ".join(" ".join(map(_text, archive.topmost(cell, {_PARAGRAPH, _TABLE}, _GONE))).split())


def _words(node: Any) -> Iterator[str]:
    for inner in node.iterchildren("*"):
        if inner.tag in _LETTERS or inner.tag == _NUMBER:
            yield inner.text or ""
        elif inner.tag == _BOX:
            yield f"\n{_blocks(inner)}\n"
        elif inner.tag not in _GONE:
            yield _SIGNS.get(inner.tag, "")
            yield from _words(inner)
