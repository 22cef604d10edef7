"""Extract the text of charts and diagrams in Office files. A chart becomes its titles and a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from vademecum.engines.files.formats.ooxml.package import Package, Relation

_DRAWING, _CHARTS, _DIAGRAMS = (
    f"{{http://schemas.openxmlformats.org/drawingml/2006/{name}}}" for name in ("main", "chart", "diagram")
)
_RELATED = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
GRAPHIC = f"{_DRAWING}graphicData"
_LAYOUT_POINTS = {"pres", "parTrans", "sibTrans"}  # types of points that describe a diagram's layout


class Drawings:
    """The charts and diagrams of one file. Each is parsed once."""

    def __init__(self, package: Package) -> None:
        self._package = package
        self._lines: dict[str, list[str]] = {}

    def lines(self, graphic: Any, relations: Mapping[str, Relation]) -> list[str]:
        """Return the lines of a `GRAPHIC`, given the relations of its part. Pictures and missing parts have no lines."""
        chart, diagram = graphic.find(f"{_CHARTS}chart"), graphic.find(f"{_DIAGRAMS}relIds")
        if chart is not None:
            return self._read(relations.get(chart.get(f"{_RELATED}id")), _chart_lines)
        if diagram is not None:
            return self._read(relations.get(diagram.get(f"{_RELATED}dm")), _diagram_lines)
        return []

    def _read(self, relation: Relation | None, reader: Any) -> list[str]:
        if relation is None or relation.place is None:
            return []
        if relation.place not in self._lines:
            root = self._package.optional_xml(relation.place)
            self._lines[relation.place] = [] if root is None else list(reader(root))
        return self._lines[relation.place]


def _diagram_lines(root: Any) -> Iterator[str]:
    """Yield the paragraphs of a diagram."""
    for point in root.iterfind(f"{_DIAGRAMS}ptLst/{_DIAGRAMS}pt"):
        if point.get("type") not in _LAYOUT_POINTS:
            for paragraph in point.iterfind(f"{_DIAGRAMS}t/{_DRAWING}p"):
                if (text := "".join(_texts(paragraph, f"{_DRAWING}t"))).strip():
                    yield text


def _chart_lines(root: Any) -> Iterator[str]:
    """Yield the titles, then one line per series.

    A line with the names of the points precedes a series whose names differ from the last printed ones.
    """
    for title in root.iter(f"{_CHARTS}title"):
        yield " ".join("".join(_texts(paragraph, f"{_DRAWING}t")) for paragraph in title.iter(f"{_DRAWING}p"))
    printed_points: list[str] = []
    for series in root.iter(f"{_CHARTS}ser"):
        values_by_tag = {child.tag: list(_texts(child, f"{_CHARTS}v")) for child in series.iterchildren("*")}
        points = values_by_tag.get(f"{_CHARTS}cat") or values_by_tag.get(f"{_CHARTS}xVal") or []
        if points and points != printed_points:
            yield "\t".join(["", *points])
            printed_points = points
        values = values_by_tag.get(f"{_CHARTS}val") or values_by_tag.get(f"{_CHARTS}yVal") or []
        yield "\t".join([" ".join(values_by_tag.get(f"{_CHARTS}tx", [])), *values])


def _texts(node: Any, name: str) -> Iterator[str]:
    return (found.text or "" for found in node.iter(name))
