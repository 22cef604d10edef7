"""PPTX in reading order: a slide is a page. A hidden slide is read: it stands among the others for all who open the file,
and is only not shown to an audience. A hidden shape is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pptx
from pptx.oxml.ns import qn

from vademecum.engines.files import archive
from vademecum.engines.files.parsed import PPTX, Limits, Parsed, Part

_EITHER, _NEWER = (
    f"{{http://schemas.openxmlformats.org/markup-compatibility/2006}}{name}"
    for name in ("AlternateContent", "Choice")
)
_DIAGRAMS = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
_DIAGRAM = f".//{qn('a:graphicData')}/{_DIAGRAMS}relIds"
_UNSAID = {"pres", "parTrans", "sibTrans"}  # how a diagram is drawn
_TREES = {qn("p:spTree"), qn("p:grpSp")}


def parse(data: bytes, limits: Limits) -> Parsed:
    slides = list(pptx.Presentation(archive.office(data, limits)).slides)
    parts = []
    for number, slide in enumerate(slides, start=1):
        _as_seen(slide.shapes._spTree)
        texts = [text for shape in slide.shapes for text in _shape(shape, 0)]
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            texts.append(slide.notes_slide.notes_text_frame.text)
        title = slide.shapes.title.text_frame.text.strip() if slide.shapes.title is not None else ""
        parts.append(Part("\n\n".join(t for t in texts if t.strip()), page=number, section=title or None))
    return Parsed(PPTX, parts, len(slides))


def _as_seen(tree: Any) -> None:
    """What is drawn in one way by newer programs and in another by older ones stands there once; what is hidden, not."""
    for either in list(tree.iter(_EITHER)):
        if (parent := either.getparent()).tag in _TREES:
            newer = next(either.iterchildren(_NEWER), ())
            for shape in list(newer):
                either.addprevious(shape)
            parent.remove(either)
    for about in list(tree.iter(qn("p:cNvPr"))):
        shape = about.getparent().getparent()
        if about.get("hidden") in ("1", "true") and shape.getparent() is not None and shape is not tree:
            shape.getparent().remove(shape)


def _shape(shape: Any, depth: int) -> Iterator[str]:
    if depth > 20:
        return
    if shape.has_text_frame:
        yield shape.text_frame.text
    elif getattr(shape, "has_table", False):
        yield "\n".join(_rows(shape.table))
    elif getattr(shape, "has_chart", False):
        yield "\n".join(_chart(shape))
    elif hasattr(shape, "shapes"):
        for inner in shape.shapes:
            yield from _shape(inner, depth + 1)
    elif (diagram := shape._element.find(_DIAGRAM)) is not None:
        yield "\n".join(_diagram(shape.part.rels.get(diagram.get(qn("r:dm")))))


def _diagram(relation: Any) -> Iterator[str]:
    """What its points say, a paragraph a line."""
    if relation is None or relation.is_external:
        return
    root = archive.xml(relation.target_part.blob)
    for point in root.iterfind(f"{_DIAGRAMS}ptLst/{_DIAGRAMS}pt"):
        if point.get("type") not in _UNSAID:
            for paragraph in point.iterfind(f"{_DIAGRAMS}t/{qn('a:p')}"):
                if (said := "".join(_letters(paragraph, "a:t"))).strip():
                    yield said


def _chart(shape: Any) -> Iterator[str]:
    """Its titles; then what it draws, as a table: a series is a line, below the names of its points."""
    relation = shape.part.rels.get(shape._element.chart_rId)
    if relation is None or relation.is_external:
        return
    root = archive.xml(relation.target_part.blob)
    for title in root.iter(qn("c:title")):
        yield " ".join("".join(_letters(paragraph, "a:t")) for paragraph in title.iter(qn("a:p")))
    above: list[str] = []
    for series in root.iter(qn("c:ser")):
        told = {child.tag: list(_letters(child, "c:v")) for child in series.iterchildren("*")}
        points = told.get(qn("c:cat")) or told.get(qn("c:xVal")) or []
        if points and points != above:
            yield "\t".join(["", *points])
            above = points
        values = told.get(qn("c:val")) or told.get(qn("c:yVal")) or []
        yield "\t".join([" ".join(told.get(qn("c:tx"), [])), *values])


def _letters(node: Any, name: str) -> Iterator[str]:
    return (found.text or "" for found in node.iter(qn(name)))


def _rows(table: Any) -> Iterator[str]:
    for row in table.rows:
        yield "\t".join(cell.text.strip().replace("\n", " ") for cell in row.cells)
