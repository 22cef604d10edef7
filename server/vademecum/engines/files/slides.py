"""PPTX in reading order: a slide is a page. A hidden slide is read: it stands among the others for all who open the file,
and is only not shown to an audience. A hidden shape is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pptx
from pptx.oxml.ns import qn

from vademecum.engines.files import archive
from vademecum.engines.files.drawn import GRAPHIC, Drawn
from vademecum.engines.files.parsed import PPTX, Limits, Parsed, Part

_EITHER, _NEWER = (
    f"{{http://schemas.openxmlformats.org/markup-compatibility/2006}}{name}"
    for name in ("AlternateContent", "Choice")
)
_TREES = {qn("p:spTree"), qn("p:grpSp")}


def parse(data: bytes, limits: Limits) -> Parsed:
    slides = list(pptx.Presentation(archive.office(data, limits)).slides)
    drawn = Drawn()
    parts = []
    for number, slide in enumerate(slides, start=1):
        _as_seen(slide.shapes._spTree)
        texts = [text for shape in slide.shapes for text in _shape(shape, drawn)]
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


def _shape(shape: Any, drawn: Drawn, depth: int = 0) -> Iterator[str]:
    if depth > 20:
        return
    if shape.has_text_frame:
        yield shape.text_frame.text
    elif getattr(shape, "has_table", False):
        yield "\n".join(_rows(shape.table))
    elif hasattr(shape, "shapes"):
        for inner in shape.shapes:
            yield from _shape(inner, drawn, depth + 1)
    elif (graphic := shape._element.find(f".//{GRAPHIC}")) is not None:
        yield "\n".join(drawn.lines(graphic, shape.part.rels))


def _rows(table: Any) -> Iterator[str]:
    for row in table.rows:
        yield "\t".join(cell.text.strip().replace("\n", " ") for cell in row.cells)
