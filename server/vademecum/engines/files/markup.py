"""HTML, OpenDocument text and EPUB: the words that are shown, headings as sections."""

from __future__ import annotations

import io
import posixpath
import zipfile
from typing import Any
from urllib.parse import unquote

import lxml.html
from lxml import etree

from vademecum.engines.files import archive
from vademecum.engines.files.parsed import Limits, Parsed, Part, Unreadable
from vademecum.engines.files.sniff import decode

_UNSEEN = {"script", "style", "template", "noscript", "svg", "math", "head", "iframe", "object"}
_HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
_BLOCKS = _HEADINGS | {
    *(
        "p",
        "div",
        "li",
        "ul",
        "ol",
        "dl",
        "dt",
        "dd",
        "table",
        "tr",
        "section",
        "article",
        "header",
        "footer",
    ),
    *(
        "nav",
        "aside",
        "main",
        "pre",
        "blockquote",
        "figure",
        "figcaption",
        "form",
        "hr",
        "address",
        "details",
    ),
    *("summary", "body", "html"),
}
_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_HIDDEN_STYLES = ("display:none", "visibility:hidden")


def parse_html(data: bytes, limits: Limits) -> Parsed:
    return Parsed("text/html", html_parts(decode(data)))


def html_parts(text: str, page: int | None = None) -> list[Part]:
    """Parts by heading; the title of the page is the first section."""
    try:
        root = lxml.html.document_fromstring(
            text.encode("utf-8", "replace"), parser=lxml.html.HTMLParser(encoding="utf-8")
        )
    except (etree.ParserError, ValueError) as error:
        raise Unreadable("EMPTY") from error
    title = (root.findtext(".//title") or "").strip() or None
    walk = _Walk(title, page)
    walk.go(root)
    return walk.done()


class _Walk:
    """Document order, without recursion: a page may be nested a hundred thousand deep."""

    def __init__(self, title: str | None, page: int | None) -> None:
        self.parts: list[Part] = []
        self.pieces: list[str] = []
        self.section = title
        self.page = page

    def go(self, root: Any) -> None:
        skip: Any = None
        for event, node in etree.iterwalk(root, events=("start", "end", "comment", "pi")):
            if event in ("comment", "pi"):
                if skip is None and node.tail:
                    self.pieces.append(node.tail)
                continue
            tag = node.tag if isinstance(node.tag, str) else ""
            if event == "start":
                if skip is None and (tag in _UNSEEN or _is_hidden(node)):
                    skip = node
                if skip is None:
                    self._enter(tag, node)
                continue
            if skip is None:
                self._leave(tag)
            if skip is node:
                skip = None
            if skip is None and node.tail:
                self.pieces.append(node.tail if node.getparent() is not None else "")

    def _enter(self, tag: str, node: Any) -> None:
        if tag in _HEADINGS:
            self._close()
            self.section = " ".join("".join(node.itertext()).split()) or self.section
        elif tag in _BLOCKS:
            self.pieces.append("\n\n" if tag in ("p", "table", "pre", "section") else "\n")
        elif tag == "br":
            self.pieces.append("\n")
        if node.text:
            self.pieces.append(node.text)

    def _leave(self, tag: str) -> None:
        if tag in ("td", "th"):
            self.pieces.append("\t")
        elif tag in _BLOCKS:
            self.pieces.append("\n\n" if tag in _HEADINGS or tag == "p" else "\n")

    def _close(self) -> None:
        text = "".join(self.pieces)
        self.pieces = []
        lines = [" ".join(line.split()) for line in text.split("\n")]
        tidy = "\n".join(lines).strip()
        while "\n\n\n" in tidy:
            tidy = tidy.replace("\n\n\n", "\n\n")
        if tidy:
            self.parts.append(Part(tidy, self.page, self.section))

    def done(self) -> list[Part]:
        self._close()
        return self.parts


def _is_hidden(node: Any) -> bool:
    if node.get("hidden") is not None or node.get("aria-hidden") == "true":
        return True
    style = (node.get("style") or "").replace(" ", "").lower()
    return any(hidden in style for hidden in _HIDDEN_STYLES)


def parse_odt(data: bytes, limits: Limits) -> Parsed:
    archive.check(data, limits)
    with zipfile.ZipFile(io.BytesIO(data)) as opened:
        if "META-INF/manifest.xml" in opened.namelist() and b"encryption-data" in opened.read(
            "META-INF/manifest.xml"
        ):
            raise Unreadable("ENCRYPTED")
        root = archive.xml(archive.member(opened, "content.xml", limits))
    parts: list[Part] = []
    section: str | None = None
    body = root.find(f".//{_OFFICE}text")
    for node in body.iter(f"{_TEXT}h", f"{_TEXT}p", f"{_TABLE}table-row") if body is not None else ():
        if node.tag == f"{_TABLE}table-row":
            text = "\t".join("".join(cell.itertext()).strip() for cell in node)
        elif any(a.tag == f"{_TABLE}table-row" for a in node.iterancestors()):
            continue
        else:
            text = _odt_text(node)
        if node.tag == f"{_TEXT}h" and text.strip():
            section = text.strip()
        if parts and parts[-1].section == section:
            parts[-1].text += "\n\n" + text
        else:
            parts.append(Part(text, section=section))
    return Parsed("application/vnd.oasis.opendocument.text", parts)


def _odt_text(node: Any) -> str:
    for blank, replacement in ((f"{_TEXT}s", " "), (f"{_TEXT}tab", "\t"), (f"{_TEXT}line-break", "\n")):
        for found in node.iter(blank):
            found.text = replacement
    return "".join(node.itertext())


def parse_epub(data: bytes, limits: Limits) -> Parsed:
    """In the order of the spine. Scripts and styles are no words."""
    archive.check(data, limits)
    parts: list[Part] = []
    with zipfile.ZipFile(io.BytesIO(data)) as opened:
        if "META-INF/encryption.xml" in opened.namelist() and b"xmlenc#aes" in opened.read(
            "META-INF/encryption.xml"
        ):
            raise Unreadable("ENCRYPTED")
        container = archive.xml(archive.member(opened, "META-INF/container.xml", limits))
        package = next((n.get("full-path") for n in container.iter("{*}rootfile")), None)
        if not package:
            raise Unreadable("DAMAGED")
        root = archive.xml(archive.member(opened, package, limits))
        items = {n.get("id"): n.get("href") or "" for n in root.iter("{*}item")}
        for reference in root.iter("{*}itemref"):
            href = unquote(items.get(reference.get("idref"), ""))
            name = posixpath.normpath(posixpath.join(posixpath.dirname(package), href))
            if href and name in opened.namelist():
                parts += html_parts(decode(archive.member(opened, name, limits)))
    return Parsed("application/epub+zip", parts)
