"""PPTX in reading order: a slide is a page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pptx

from vademecum.engines.files import archive
from vademecum.engines.files.parsed import PPTX, Limits, Parsed, Part


def parse(data: bytes, limits: Limits) -> Parsed:
    slides = list(pptx.Presentation(archive.office(data, limits)).slides)
    parts = []
    for number, slide in enumerate(slides, start=1):
        texts = [text for shape in slide.shapes for text in _shape(shape, 0)]
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            texts.append(slide.notes_slide.notes_text_frame.text)
        title = slide.shapes.title.text_frame.text.strip() if slide.shapes.title is not None else ""
        parts.append(Part("\n\n".join(t for t in texts if t.strip()), page=number, section=title or None))
    return Parsed(PPTX, parts, len(slides))


def _shape(shape: Any, depth: int) -> Iterator[str]:
    if depth > 20:
        return
    if shape.has_text_frame:
        yield shape.text_frame.text
    elif getattr(shape, "has_table", False):
        yield "\n".join(_rows(shape.table))
    elif hasattr(shape, "shapes"):
        for inner in shape.shapes:
            yield from _shape(inner, depth + 1)


def _rows(table: Any) -> Iterator[str]:
    for row in table.rows:
        yield "\t".join(cell.text.strip().replace("\n", " ") for cell in row.cells)
