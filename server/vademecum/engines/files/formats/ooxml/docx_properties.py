"""What Word says about a paragraph, a run, a style or a level: elements with a value."""

from __future__ import annotations

from typing import Any

from vademecum.engines.files.formats.ooxml.package import qn

VALUE = qn("w:val")
_NAMES = VALUE.removesuffix("val")


def child(node: Any, *path: str) -> Any:
    """The first child of each name in turn."""
    for name in path:
        node = None if node is None else node.find(_NAMES + name)
    return node


def value(node: Any, *path: str) -> str:
    """Empty if there is none."""
    found = child(node, *path)
    return "" if found is None else found.get(VALUE, "")


def switch(properties: Any, name: str) -> bool | None:
    """Whether a property is on; None if nothing is said of it."""
    found = child(properties, name)
    return None if found is None else found.get(VALUE) not in ("0", "false", "off")
