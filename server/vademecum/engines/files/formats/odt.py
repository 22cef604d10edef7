"""Parse the visible text of ODT: headings become sections, table rows become lines, notes follow the block that refers to
them. Page headers are read once, before the body, and page footers after it."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from itertools import chain
from typing import Any

from vademecum.engines.files.formats.ooxml import zip_container
from vademecum.engines.files.result import ODT, Limits, Parsed, Part, Unreadable, merge_sections

_NAMES = "{urn:oasis:names:tc:opendocument:xmlns:%s:1.0}"
_TEXT, _TABLE, _OFFICE, _STYLE, _DRAW, _SVG = (
    _NAMES % name for name in ("text", "table", "office", "style", "drawing", "svg-compatible")
)
_HEADING, _PARAGRAPH, _ROW = f"{_TEXT}h", f"{_TEXT}p", f"{_TABLE}table-row"
_NOTE, _BOX = f"{_TEXT}note", f"{_DRAW}text-box"
# Tracked deletions, scripts, annotations, alternative texts and ruby pronunciations are not part of the text.
_SKIPPED = {f"{_TEXT}{name}" for name in ("tracked-changes", "script", "note-citation", "ruby-text")} | {
    f"{_OFFICE}annotation",
    f"{_SVG}title",
    f"{_SVG}desc",
}
_SPECIAL_CHARACTERS = {f"{_TEXT}s": " ", f"{_TEXT}tab": "\t", f"{_TEXT}line-break": "\n"}
_BLOCKS = {_HEADING, _PARAGRAPH, _ROW}
_HIDDEN_MARK = f"{_TEXT}hidden-paragraph"
_STANDARD, _PAGES = "Standard", f"{_STYLE}master-page-name"
_FAMILIES = {_HEADING: "paragraph", _PARAGRAPH: "paragraph", f"{_TEXT}span": "text"}


def parse(data: bytes, limits: Limits) -> Parsed:
    zip_container.check_limits(data, limits)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if "META-INF/manifest.xml" in archive.namelist() and b"encryption-data" in archive.read(
            "META-INF/manifest.xml"
        ):
            raise Unreadable("ENCRYPTED")
        names = [
            name
            for name in ("styles.xml", "content.xml")
            if name in archive.namelist() or name == "content.xml"
        ]
        roots = [zip_container.parse_xml(zip_container.read_member(archive, name, limits)) for name in names]
    reader = _Reader(_read_visibility(roots))
    body = roots[-1].find(f".//{_OFFICE}text")
    parts = reader.page_texts(roots, "header")
    section: str | None = None
    for block in reader.blocks(body) if body is not None else ():
        text, *notes = reader.block_texts(block)
        if block.tag == _HEADING and text.strip():
            section = text.strip()
        parts.append(Part("\n".join([text, *notes]), section=section))
    return Parsed(ODT, merge_sections(parts + reader.page_texts(roots, "footer")))


def _read_visibility(roots: list[Any]) -> dict[tuple[str, str], bool]:
    """Map family and name of each style that shows or hides text, also by inheritance, to whether the text is shown."""
    styles = {}
    for style in chain.from_iterable(root.iter(f"{_STYLE}style") for root in roots):
        styles[style.get(f"{_STYLE}family"), style.get(f"{_STYLE}name")] = style
    visible = {}
    for (family, name), style in styles.items():
        above, seen, display = style, 0, None
        while above is not None and seen < 20:
            properties = above.find(f"{_STYLE}text-properties")
            display = None if properties is None else properties.get(f"{_TEXT}display")
            above, seen = styles.get((family, above.get(f"{_STYLE}parent-style-name"))), seen + 1
            if display is not None:
                visible[family, name] = display != "none"
                break
    return visible


class _Reader:
    def __init__(self, shows: dict[tuple[str, str], bool]) -> None:
        self._shows = shows

    def page_texts(self, roots: list[Any], place: str) -> list[Part]:
        """Return the distinct headers or footers (`place`) of the used page styles.

        Headers and footers without letters, such as a page number, are skipped.
        """
        pages = [page for root in roots for page in root.iter(f"{_STYLE}master-page")]
        used = {_STANDARD} | {n.get(_PAGES) for root in roots for n in root.iter("*") if n.get(_PAGES)}
        texts: dict[str, Part] = {}
        for page in pages:
            for side in ("", "-first", "-left") if page.get(f"{_STYLE}name") in used else ():
                for shown in page.iterchildren(f"{_STYLE}{place}{side}"):
                    text = "\n".join(
                        "\n".join(self.block_texts(block)) for block in self.blocks(shown)
                    ).strip()
                    if shown.get(f"{_STYLE}display") != "false" and any(map(str.isalpha, text)):
                        texts[text] = Part(text)
        return list(texts.values())

    def blocks(self, node: Any) -> Iterator[Any]:
        """Yield the visible headings, paragraphs and table rows."""
        for child in node.iterchildren("*"):
            if child.tag in _BLOCKS:
                yield child
            elif child.tag not in _SKIPPED and not _is_hidden(child):
                yield from self.blocks(child)

    def block_texts(self, block: Any) -> list[str]:
        """Return the text of a block, followed by its notes."""
        notes: list[str] = []
        if block.tag == _ROW:
            cells = [
                [self._line(inner, notes) for inner in self.blocks(cell)] for cell in block.iterchildren("*")
            ]
            return ["\t".join(map(" ".join, cells)), *notes]
        return ["".join(self._text_pieces(block, True, notes)), *notes]

    def _line(self, block: Any, notes: list[str]) -> str:
        text, *own_notes = self.block_texts(block)
        notes += own_notes
        return text.strip()

    def _text_pieces(self, node: Any, is_shown: bool, notes: list[str]) -> Iterator[str]:
        """Yield the text in document order. Each paragraph of a text box is a line."""
        style = (_FAMILIES.get(node.tag, ""), node.get(f"{_TEXT}style-name"))
        is_shown = self._shows.get(style, is_shown) and not _is_hidden(node)
        if is_shown:
            yield _SPECIAL_CHARACTERS.get(node.tag, "") + (node.text or "")
        for child in node.iterchildren("*"):
            if child.tag == _NOTE and is_shown:
                notes += [
                    "\n".join("\n".join(self.block_texts(block)) for block in self.blocks(child)).strip()
                ]
            elif child.tag == _BOX and is_shown:
                lines = [self._line(block, notes) for block in self.blocks(child)]
                yield "\n".join(["", *lines, ""])
            elif child.tag not in _SKIPPED and child.tag not in (_NOTE, _BOX):
                yield from self._text_pieces(child, is_shown, notes)
            if is_shown:
                yield child.tail or ""


def _is_hidden(node: Any) -> bool:
    """Return whether the node's attributes, or a `hidden-paragraph` child, hide it."""
    mark = node.find(_HIDDEN_MARK) if node.tag in _FAMILIES else None
    source = node if mark is None else mark
    return bool(source.get(f"{_TEXT}is-hidden") == "true" or source.get(f"{_TEXT}display") == "none")
