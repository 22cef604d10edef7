"""Plain text and its kin: Markdown, CSV, JSON, RTF, source code. Text stays as it is; only its places are found."""

from __future__ import annotations

import re

from striprtf.striprtf import rtf_to_text

from vademecum.engines.files.parsed import Limits, Parsed, Part
from vademecum.engines.files.sniff import decode

_FENCE = re.compile(r"^ {0,3}(```|~~~)")
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(.+?)[ \t#]*$")


def parse_plain(data: bytes, mime_type: str) -> Parsed:
    """A form feed is a page break, as in an RFC."""
    pages = decode(data).split("\f")
    if len(pages) == 1:
        return Parsed(mime_type, [Part(pages[0])])
    parts = [Part(text, page=number) for number, text in enumerate(pages, start=1) if text.strip()]
    return Parsed(mime_type, parts, parts[-1].page if parts else None)


def parse_markdown(data: bytes) -> Parsed:
    parts: list[Part] = []
    lines: list[str] = []
    section: str | None = None
    fenced = False
    for line in decode(data).splitlines():
        if _FENCE.match(line):
            fenced = not fenced
        found = None if fenced else _HEADING.match(line)
        if found:
            parts.append(Part("\n".join(lines), section=section))
            lines, section = [], found.group(1)
        lines.append(line)
    parts.append(Part("\n".join(lines), section=section))
    return Parsed("text/markdown", [part for part in parts if part.text.strip()])


def parse_rtf(data: bytes, limits: Limits) -> Parsed:
    text: str = rtf_to_text(data.decode("latin-1"), errors="ignore")  # type: ignore[no-untyped-call]
    return Parsed("text/rtf", [Part(text)])
