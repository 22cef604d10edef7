"""Read the parts of an Office file (Open Packaging Conventions): XML, and relations between parts.

A part is read only when a parser needs it. So a damaged part without text, such as a picture, ink or properties, does
not make the file unreadable.
"""

from __future__ import annotations

import io
import posixpath
import zipfile
from collections.abc import Iterator
from typing import Any, NamedTuple

from vademecum.engines.files.formats.ooxml import zip_container
from vademecum.engines.files.result import Limits, Unreadable

_NAMESPACES = {
    "w": "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "p": "http://schemas.openxmlformats.org/presentationml/2006/main",
    "a": "http://schemas.openxmlformats.org/drawingml/2006/main",
    "wp": "http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing",
    "r": "http://schemas.openxmlformats.org/officeDocument/2006/relationships",
    "m": "http://schemas.openxmlformats.org/officeDocument/2006/math",
    "mc": "http://schemas.openxmlformats.org/markup-compatibility/2006",
}


def qn(name: str) -> str:
    """Return a name with a prefix, such as "w:p", in the notation of lxml."""
    prefix, _, local = name.partition(":")
    return f"{{{_NAMESPACES[prefix]}}}{local}"


class Relation(NamedTuple):
    """A relation. `kind` is the last word of its type. `place` is the archive member of its target, or None."""

    kind: str
    place: str | None


class Package:
    def __init__(self, data: bytes, limits: Limits) -> None:
        zip_container.check_limits(data, limits)
        self._limits = limits
        self._zip = zipfile.ZipFile(io.BytesIO(data))
        self._find = zip_container.member_finder(self._zip)

    def main(self, default: str) -> str:
        """Return the name of the main part: the one that the package declares, or else the default.

        Raises Unreadable.
        """
        name = next(self.related(self.relations(""), "officeDocument"), None) or self._find(default)
        if name is None:
            raise Unreadable("DAMAGED")
        return name

    def relations(self, place: str) -> dict[str, Relation]:
        """Map the id of each relation of a part to the relation."""
        folder, name = posixpath.split(place)
        member = self._find(posixpath.join(folder, "_rels", f"{name}.rels"))
        if member is None:
            return {}
        return {
            relation.get("Id", ""): Relation(
                relation.get("Type", "").rpartition("/")[2], self._target(folder, relation)
            )
            for relation in self.xml(member).iterchildren("*")
        }

    @staticmethod
    def related(relations: dict[str, Relation], *kinds: str) -> Iterator[str]:
        """Yield the archive members of the related parts of these kinds."""
        return (one.place for one in relations.values() if one.kind in kinds and one.place is not None)

    def bytes(self, place: str) -> bytes:
        return zip_container.read_member(self._zip, place, self._limits)

    def xml(self, place: str) -> Any:
        """Return the root element of a part, with the usual namespaces instead of "Strict Open XML".

        Raises Unreadable.
        """
        return zip_container.parse_xml(zip_container.use_transitional_names(self.bytes(place)))

    def optional_xml(self, place: str | None) -> Any:
        """Return the root element of a part, or None if the part is missing or damaged."""
        try:
            return None if place is None else self.xml(place)
        except Unreadable as error:
            if error.code != "DAMAGED":
                raise
            return None

    def _target(self, folder: str, relation: Any) -> str | None:
        if relation.get("TargetMode") == "External":
            return None
        return self._find(
            posixpath.normpath(posixpath.join("/", folder, relation.get("Target", ""))).lstrip("/")
        )
