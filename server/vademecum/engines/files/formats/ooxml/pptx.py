"""Parse PPTX in reading order. Each slide is a page.

Hidden slides are read, because everyone who opens the file sees them. Hidden shapes are skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from vademecum.engines.files.formats.ooxml.charts import GRAPHIC, Drawings
from vademecum.engines.files.formats.ooxml.package import Package, qn
from vademecum.engines.files.result import PPTX, Limits, Parsed, Part, Unreadable

_MAIN = "ppt/presentation.xml"
_ALTERNATIVES, _CHOICE = qn("mc:AlternateContent"), qn("mc:Choice")
_SHAPE, _GROUP, _PARAGRAPH = qn("p:sp"), qn("p:grpSp"), qn("a:p")
_TREES = {qn("p:spTree"), _GROUP}
_RUNS = {qn("a:r"), qn("a:fld")}
_TABLE = f"{qn('a:graphic')}/{GRAPHIC}/{qn('a:tbl')}"
_DEPTH_MAX = 20  # maximum depth of nested groups

GraphicLines = Callable[[Any], list[str]]


def parse(data: bytes, limits: Limits) -> Parsed:
    package = Package(data, limits)
    main = package.main(_MAIN)
    relations = package.relations(main)
    drawings = Drawings(package)
    parts = []
    for number, slide in enumerate(
        package.xml(main).iterfind(f"{qn('p:sldIdLst')}/{qn('p:sldId')}"), start=1
    ):
        relation = relations.get(slide.get(qn("r:id")))
        if relation is None or relation.place is None:
            raise Unreadable("DAMAGED")
        parts.append(_parse_slide(package, relation.place, drawings, number))
    return Parsed(PPTX, parts, len(parts))


def _parse_slide(package: Package, place: str, drawings: Drawings, number: int) -> Part:
    relations = package.relations(place)
    tree = package.xml(place).find(f"{qn('p:cSld')}/{qn('p:spTree')}")
    shapes: list[Any] = []
    if tree is not None:
        _remove_invisible(tree)
        shapes = list(tree.iterchildren("*"))
    texts = [
        text
        for shape in shapes
        for text in _shape_texts(shape, lambda graphic: drawings.lines(graphic, relations))
    ]
    notes = package.optional_xml(next(package.related(relations, "notesSlide"), None))
    if notes is not None:
        texts += [
            _frame_text(shape) for shape in notes.iter(_SHAPE) if _placeholder(shape).get("type") == "body"
        ][:1]
    title = next((_frame_text(shape).strip() for shape in shapes if _is_title(shape)), None)
    return Part("\n\n".join(text for text in texts if text.strip()), page=number, section=title or None)


def _placeholder(shape: Any) -> Mapping[str, str]:
    """Return the attributes of the placeholder that a shape fills, or {} if it fills no placeholder."""
    found = shape.find(f"{qn('p:nvSpPr')}/{qn('p:nvPr')}/{qn('p:ph')}")
    return {} if found is None else {"idx": "0", **found.attrib}


def _is_title(shape: Any) -> bool:
    return shape.tag == _SHAPE and _placeholder(shape).get("idx") == "0"


def _remove_invisible(tree: Any) -> None:
    """Remove hidden shapes, and all but the newest version of shapes that have alternative versions."""
    for alternatives in list(tree.iter(_ALTERNATIVES)):
        if (parent := alternatives.getparent()).tag in _TREES:
            newest = next(alternatives.iterchildren(_CHOICE), ())
            for shape in list(newest):
                alternatives.addprevious(shape)
            parent.remove(alternatives)
    for properties in list(tree.iter(qn("p:cNvPr"))):
        shape = properties.getparent().getparent()
        if properties.get("hidden") in ("1", "true") and shape.getparent() is not None and shape is not tree:
            shape.getparent().remove(shape)


def _shape_texts(shape: Any, graphic_lines: GraphicLines, depth: int = 0) -> Iterator[str]:
    if shape.tag == _SHAPE:
        yield _frame_text(shape)
    elif shape.tag == _GROUP:
        if depth < _DEPTH_MAX:
            for inner in shape.iterchildren("*"):
                yield from _shape_texts(inner, graphic_lines, depth + 1)
    elif (table := shape.find(_TABLE)) is not None:
        yield "\n".join(
            "\t".join(map(_cell_text, row.iterchildren(qn("a:tc")))) for row in table.iterchildren(qn("a:tr"))
        )
    elif (graphic := shape.find(f".//{GRAPHIC}")) is not None:
        yield "\n".join(graphic_lines(graphic))


def _frame_text(shape: Any) -> str:
    return _paragraph_lines(shape.find(qn("p:txBody")))


def _cell_text(cell: Any) -> str:
    return _paragraph_lines(cell.find(qn("a:txBody"))).strip().replace("\n", " ")


def _paragraph_lines(body: Any) -> str:
    paragraphs = () if body is None else body.iterchildren(_PARAGRAPH)
    return "\n".join("".join(map(_run_text, paragraph.iterchildren("*"))) for paragraph in paragraphs)


def _run_text(run: Any) -> str:
    if run.tag in _RUNS:
        return str(run.findtext(qn("a:t"), ""))
    return "\v" if run.tag == qn("a:br") else ""
