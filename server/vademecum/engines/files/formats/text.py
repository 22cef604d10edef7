"""Parse plain text, Markdown, CSV, JSON, RTF and source code.

Text is unchanged, with three exceptions: long tables repeat their header row, JSON escapes become characters, and Base64
data is removed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from striprtf import striprtf

from vademecum.engines.files.charset.detect import decode
from vademecum.engines.files.result import Limits, Parsed, Part
from vademecum.engines.files.tables import Row, join_quoted, split_table

_FENCE = re.compile(r"^ {0,3}(`{3,}+(?=[^`]*$)|~{3,}+)")
_LINE_END = re.compile("\r\n|[\r\n]")
_TOKEN = re.compile(
    rb"\\bin([0-9]{1,9}) ?"
    rb"|(?:\\\*)?\\(footnote|shptxt|shpinst|shpgrp|shp|(?:header|footer)[lrf]?)(?![A-Za-z])(?:-?[0-9]+)? ?"
    rb"|\\([A-Za-z]{1,32})(-?[0-9]{1,10})? ?"
    rb"|(\\'[0-9A-Fa-f]{2}|\\[^A-Za-z*\r\n]|[^\\{}]+)"
    rb"|\\[*\r\n]|.",
    re.DOTALL,
)
_HIDDEN_WORDS = {b"v", b"deleted"}
_FRAMES = {b"shp", b"shpinst", b"shpgrp"}  # groups around the text of a text box
# Maps headers and footers of first, left and right pages to the control word without which they are not shown.
_ENABLED_BY = {
    place + side: control_word
    for place in (b"header", b"footer")
    for side, control_word in ((b"l", b"\\facingp"), (b"r", b"\\facingp"), (b"f", b"\\titlepg"))
}
_JSON_ESCAPE = re.compile(
    r"\\(?:u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})|u([0-9a-f]{4})|.)", re.IGNORECASE | re.DOTALL
)
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{512,}+")
_BASE64_KINDS = [re.compile(letters) for letters in ("[A-Z]", "[a-z]", "[0-9]")]
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(.*)$")


def parse_plain(data: bytes, mime_type: str) -> Parsed:
    """Parse plain text. A form feed is a page break, as in RFCs."""
    pages = decode(data).split("\f")
    if len(pages) == 1:
        return Parsed(mime_type, [Part(pages[0])])
    parts = [Part(text, page=number) for number, text in enumerate(pages, start=1) if text.strip()]
    return Parsed(mime_type, parts, parts[-1].page if parts else None)


def parse_csv(data: bytes, limits: Limits) -> Parsed:
    return _parse_table(data, "text/csv", ",;\t|")


def parse_tsv(data: bytes, limits: Limits) -> Parsed:
    return _parse_table(data, "text/tab-separated-values", "\t")


def _parse_table(data: bytes, mime_type: str, separators: str) -> Parsed:
    """Parse a table, or plain text if it contains form feeds.

    Empty lines are counted in row numbers but are not rows, because a passage of empty rows would contain only column
    names.
    """
    text = decode(data)
    if "\f" in text:
        return parse_plain(data, mime_type)
    rows = (Row(number, row) for number, row in enumerate(join_quoted(_lines(text), "\n"), start=1) if row)
    return Parsed(mime_type, split_table(Part(text), rows, separators))


def _lines(text: str) -> Iterator[str]:
    """Yield the lines lazily, because a list of very short lines takes fifty times the memory of the text."""
    at = 0
    for end in _LINE_END.finditer(text):
        yield text[at : end.start()]
        at = end.end()
    yield text[at:]


def parse_json(data: bytes, limits: Limits) -> Parsed:
    text = _JSON_ESCAPE.sub(_unescape, decode(data))
    return Parsed("application/json", [Part(_without_base64(text))])


def _unescape(escape: re.Match[str]) -> str:
    """Return the character of a JSON escape, or the escape if JSON requires it."""
    high, low, number = escape.groups()
    if high:
        return chr(0x10000 + (int(high, 16) - 0xD800) * 0x400 + int(low, 16) - 0xDC00)
    letter = chr(int(number, 16)) if number else ""
    is_unescaped = letter >= " " and letter not in '"\\\x7f' and not "\ud800" <= letter <= "\udfff"
    return letter if is_unescaped else escape[0]


def _without_base64(text: str) -> str:
    """Replace Base64 data, which is not searchable, with "…".

    Otherwise one diagram of a notebook would become hundreds of passages.
    """
    return _BASE64.sub(
        lambda run: "…" if all(kind.search(run[0]) for kind in _BASE64_KINDS) else run[0], text
    )


def parse_markdown(data: bytes, limits: Limits) -> Parsed:
    parts: list[Part] = []
    lines: list[str] = []
    section: str | None = None
    fence = ""  # the marker of the open code block, or ""
    for line in _without_base64(decode(data)).splitlines():
        marker = _FENCE.match(line)
        title = "" if fence else _heading_title(line)
        if fence and marker and _is_closing_fence(line, fence):
            fence = ""
        elif marker and not fence:
            fence = marker.group(1)
        if title:
            parts.append(Part("\n".join(lines), section=section))
            lines, section = [], title
        lines.append(line)
    parts.append(Part("\n".join(lines), section=section))
    return Parsed("text/markdown", [part for part in parts if part.text.strip()])


def _heading_title(line: str) -> str:
    """Return the text of a heading, or "". Closing #s after a space are removed; the # of "C#" stays."""
    match = _HEADING.match(line)
    if not match:
        return ""
    title = match.group(1).rstrip()
    stripped = title.rstrip("#")
    return stripped.rstrip() if stripped[-1:] in ("", " ", "\t") else title


def _is_closing_fence(line: str, fence: str) -> bool:
    """Return whether the line closes a code block: the same marker, at least as long, alone on the line."""
    mark = line.strip()
    return mark.startswith(fence) and not mark.strip(fence[0])


# Replace two patterns of striprtf. From each font and field, they would scan the file to its end, which takes quadratic
# time.
striprtf.FONTTABLE = re.compile(r"\\f(\d{1,9})(?:(?!\\f\d).){0,1000}?\\fcharset(\d{1,9})([^;]{1,1000});")
striprtf.HYPERLINKS = re.compile(
    r"(\{\\field\{\s{0,9}\\\*\\fldinst\{[^{}\n]{0,1000}?HYPERLINK\s(\"[^\"\n]{0,1000}\")\}{2}\s{0,9}\{.{0,1000}?\}{2,3})",
    re.IGNORECASE,
)


def parse_rtf(data: bytes, limits: Limits) -> Parsed:
    visible = _visible_rtf(data).decode("latin-1")
    text: str = striprtf.rtf_to_text(visible, errors="ignore")  # type: ignore[no-untyped-call]
    # Combine surrogates, because striprtf returns each character above U+FFFF as two surrogates.
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return Parsed("text/rtf", [Part(whole)])


def _visible_rtf(data: bytes) -> bytes:
    """Return RTF from which striprtf extracts all visible text and no hidden text.

    striprtf skips text boxes, notes, headers and footers, so their control words are removed or replaced with line
    breaks. striprtf would read hidden text, so hidden text is removed. Binary data (`bin` with a length) is removed,
    too.
    """
    disabled = {place for place, control_word in _ENABLED_BY.items() if control_word not in data}
    visible = bytearray()
    outer_groups: list[tuple[set[bytes], bool]] = []
    hiding: set[bytes] = set()  # control words that hide the current text
    is_line = False  # whether the current group ends with a line break
    at = 0
    while token := _TOKEN.match(data, at):
        at = token.end()
        binary, own_line, word, argument, letters = token.groups()
        if binary is not None:
            at += int(binary)
        elif own_line in _FRAMES:
            pass
        elif own_line is not None and own_line not in disabled:
            visible += b"\\line "
            is_line = own_line != b"footnote"
        elif word in _HIDDEN_WORDS:
            hiding = hiding - {word} if argument == b"0" else hiding | {word}
        elif token[0] == b"{":
            outer_groups.append((hiding, is_line))
            is_line = False
            visible += b"{"
        elif token[0] == b"}":
            visible += b"\\line }" if is_line else b"}"
            hiding, is_line = outer_groups.pop() if outer_groups else (hiding, False)
        elif not hiding or not (letters or word == b"u"):
            hiding = set() if word == b"plain" else hiding
            visible += token[0]
    return bytes(visible)
