"""Read the properties of paragraphs, runs, styles and levels. A property is an element with the attribute `w:val`."""

from __future__ import annotations

from typing import Any

from vademecum.engines.files.formats.ooxml.package import qn

VALUE = qn("w:val")
_NAMES = VALUE.removesuffix("val")


def child(node: Any, *path: str) -> Any:
    """Return the descendant at a path of Word element names, or None."""
    for name in path:
        node = None if node is None else node.find(_NAMES + name)
    return node


def value(node: Any, *path: str) -> str:
    """Return the value of the descendant at a path, or ""."""
    found = child(node, *path)
    return "" if found is None else found.get(VALUE, "")


def switch(properties: Any, name: str) -> bool | None:
    """Return whether a property is on; None if it is not set."""
    found = child(properties, name)
    return None if found is None else found.get(VALUE) not in ("0", "false", "off")
