"""Parse HTML and EPUB into their visible text, with headings as sections."""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
from collections.abc import Mapping

from lxml import etree

from vademecum.engines.files.charset.detect import decode
from vademecum.engines.files.formats.ooxml import zip_container
from vademecum.engines.files.result import EPUB, Limits, Parsed, Part, Unreadable

_INVISIBLE = {"script", "style", "template", "noscript", "svg", "math", "head", "iframe", "object"}
_HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
_BLOCKS = {
    *_HEADINGS,
    *("p", "div", "li", "ul", "ol", "dl", "dt", "dd", "table", "tr", "pre", "blockquote", "hr", "address"),
    *("section", "article", "header", "footer", "nav", "aside", "main", "figure", "figcaption", "form"),
    *("details", "summary", "body", "html"),
}
_LINES = {"caption", "legend", "option"}  # not block elements, but displayed on separate lines
_WHITESPACE = re.compile(r"[ \t\n\f\r]+")
_ANCHORS = " ¶"  # removed from the end of a heading: many manuals end headings with such a link sign
_HIDDEN_STYLES = ("display:none", "visibility:hidden")


def parse_html(data: bytes, limits: Limits) -> Parsed:
    return Parsed("text/html", html_parts(decode(data)))


def html_parts(text: str) -> list[Part]:
    """Return one part per heading. The page title names the first section."""
    page = _Page()
    parser = etree.HTMLParser(target=page, encoding="utf-8", huge_tree=True)
    etree.fromstring(text.encode("utf-8", "replace"), parser)
    # The parser stops when memory runs out, sometimes without raising an error.
    if page.open_tags or parser.error_log.filter_from_fatals():
        raise MemoryError
    return page.parts


class _Page:
    """A parser target that receives each tag. No tree is built, so a page may have a nesting depth of 100,000."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.open_tags = 0
        self._pieces: list[str] = []  # text of the part that is being read
        self._title: str | None = None
        self._section: str | None = None
        self._in_heading = False
        self._invisible: list[str] = []  # open tags, from the outermost invisible one on
        self._verbatim = 0  # the number of open `pre` tags

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self.open_tags += 1
        if self._invisible or tag in _INVISIBLE or _is_hidden(attributes):
            self._invisible.append(tag)
        elif tag in _HEADINGS:
            self.close()
            self._in_heading = True
        elif tag == "main":
            self._leave_section()
        elif tag in _BLOCKS:
            self._pieces.append("\n\n" if tag in ("p", "table", "pre", "section") else "\n")
            self._verbatim += tag == "pre"
        elif tag == "br" or tag in _LINES:
            self._pieces.append("\n")

    def data(self, text: str) -> None:
        if not self._invisible:
            # Outside of `pre`, a line break in the source is shown as a space.
            self._pieces.append(text if self._verbatim else _WHITESPACE.sub(" ", text))
        elif (self._invisible[0], self._invisible[-1]) == ("head", "title"):
            self._section = self._title = " ".join(((self._title or "") + text).split()) or None

    def end(self, tag: str) -> None:
        self.open_tags -= 1
        if self._invisible:
            self._invisible.pop()
        elif tag in ("td", "th"):
            self._pieces.append("\t")
        elif tag in _LINES:
            self._pieces.append("\n")
        elif tag == "main":
            self._leave_section()
        elif tag in _BLOCKS:
            if tag in _HEADINGS:
                self._name_section()
            self._verbatim -= tag == "pre"
            self._pieces.append("\n\n" if tag in _HEADINGS or tag == "p" else "\n")

    def close(self) -> None:
        """End the current part. The parser also calls this at the end of the page."""
        self._name_section()
        lines = [" ".join(line.split()) for line in "".join(self._pieces).split("\n")]
        self._pieces = []
        text_lines = "\n".join(lines).strip()
        while "\n\n\n" in text_lines:
            text_lines = text_lines.replace("\n\n\n", "\n\n")
        if text_lines:
            self.parts.append(Part(text_lines, section=self._section))

    def _leave_section(self) -> None:
        """Reset the section to the page title, because headings of menus and footers do not describe the main part."""
        self.close()
        self._section = self._title

    def _name_section(self) -> None:
        if self._in_heading:
            heading = " ".join("".join(self._pieces).split())
            self._section = heading.rstrip(_ANCHORS) or self._section
        self._in_heading = False


def _is_hidden(attributes: Mapping[str, str]) -> bool:
    if "hidden" in attributes or attributes.get("aria-hidden") == "true":
        return True
    style = "".join(attributes.get("style", "").split()).lower()
    return any(hidden in style for hidden in _HIDDEN_STYLES)


def parse_epub(data: bytes, limits: Limits) -> Parsed:
    """Parse the chapters in the order of the spine, without scripts and styles. Raises Unreadable."""
    zip_container.check_limits(data, limits)
    parts: list[Part] = []
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if "META-INF/encryption.xml" in archive.namelist() and b"xmlenc#aes" in archive.read(
            "META-INF/encryption.xml"
        ):
            raise Unreadable("ENCRYPTED")
        container = zip_container.parse_xml(
            zip_container.read_member(archive, "META-INF/container.xml", limits)
        )
        package = next((n.get("full-path") for n in container.iter("{*}rootfile")), None)
        if not package:
            raise Unreadable("DAMAGED")
        root = zip_container.parse_xml(zip_container.read_member(archive, package, limits))
        items = {n.get("id"): n.get("href") or "" for n in root.iter("{*}item")}
        find_member = zip_container.member_finder(archive)
        folder = posixpath.dirname(package)
        hrefs = [items.get(reference.get("idref")) for reference in root.iter("{*}itemref")]
        names = [find_member(posixpath.normpath(posixpath.join(folder, href))) for href in hrefs if href]
        for name in dict.fromkeys(name for name in names if name is not None):
            parts += html_parts(decode(zip_container.read_member(archive, name, limits)))
    return Parsed(EPUB, parts)
