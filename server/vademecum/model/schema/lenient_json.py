"""Read JSON that is embedded in prose, truncated, or contains values that decoders reject."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec

_MAX_OBJECT_DEPTH = 8  # maximum nesting of an object that is found within a text
_MAX_CANDIDATES = 50
_CLOSING = {"{": "}", "[": "]"}
# A JSON escape: a surrogate pair, a lone surrogate (which is invalid), or any other.
_ESCAPE = re.compile(
    r"\\(?:u[Dd][89ABab][\dA-Fa-f]{2}\\u[Dd][C-Fc-f][\dA-Fa-f]{2}|(?P<lone>u[Dd][89A-Fa-f][\dA-Fa-f]{2})|.)",
    re.ASCII | re.DOTALL,
)
# Matches brackets and whole strings, so that brackets within strings are skipped. An unterminated string extends to the
# end of the text. Otherwise each quote in the string could start a match, which would take quadratic time.
_BRACKET = re.compile(rb'"(?:[^"\\]++|\\.|\\\Z)*+(?:"|\Z)|[\[{]|[\]}]', re.DOTALL)
_BRACKET_IN_TEXT = re.compile(_BRACKET.pattern.decode(), re.DOTALL)
_REPAIRABLE = re.compile(r'"(?:[^"\\]++|\\.|\\\Z)*+(?:"|\Z)|\bNaN\b|-?\bInfinity\b', re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f]")
MAX_DEPTH = 64  # maximum nesting of arrays and objects; valid rows are nested less deeply
REPLACEMENT = r"\ufffd"  # replaces a lone surrogate


def replace_lone_surrogates(text: str) -> str:
    """Replace escapes of lone surrogates in JSON. A JavaScript string may end within a surrogate pair."""
    if "\\ud" not in text and "\\uD" not in text:
        return text
    return _ESCAPE.sub(lambda escape: REPLACEMENT if escape["lone"] else escape[0], text)


def truncate_depth(text: bytes) -> bytes:
    """Replace values in JSON that are nested deeper than `MAX_DEPTH` with null."""
    kept, depth, start = bytearray(), 0, 0
    for match in _BRACKET.finditer(text):
        if match[0] in (b"[", b"{"):
            depth += 1
            if depth == MAX_DEPTH + 1:
                kept += text[start : match.start()] + b"null"
        elif match[0] in (b"]", b"}"):
            if depth == MAX_DEPTH + 1:
                start = match.end()
            depth -= 1
    return bytes(kept + text[start:])


def split_array(text: str) -> list[str]:
    """Return the text of each object and array in a JSON array. Their contents may be invalid.

    Raises ValueError if the text is not an array of objects.
    """
    parts: list[str] = []
    depth = start = end = 0
    for match in _BRACKET_IN_TEXT.finditer(text):
        if match[0] in "[{":
            depth += 1
            if depth == 2:
                if text[end : match.start()].strip() != ("," if parts else "["):
                    raise ValueError("not an array of objects")
                start = match.start()
        elif match[0] in "]}":
            depth -= 1
            end = match.end()
            if depth == 1:
                parts.append(text[start:end])
            elif depth == 0:
                break
    if depth or not parts or text[end:].strip():
        raise ValueError("not an array of objects")
    return parts


def repair_json(text: str) -> str:
    """Escape raw control characters in strings, and replace NaN and Infinity with null."""
    return _REPAIRABLE.sub(_repair, text)


def _repair(match: re.Match[str]) -> str:
    if not match[0].startswith('"'):
        return "null"
    return _CONTROL.sub(lambda control: f"\\u{ord(control[0]):04x}", match[0])


def find_objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in a text, such as a model's reply, in order. Nested objects are not yielded separately."""
    start = text.find("{")
    for _ in range(_MAX_CANDIDATES):
        if start < 0:
            return
        candidate, end = _extract_object(text, start)
        decoded = _decode_object(candidate)
        if decoded is not None:
            yield decoded
        start = text.find("{", start + 1 if decoded is None else end)


def _decode_object(text: str) -> dict[str, Any] | None:
    try:
        return msgspec.json.decode(text.encode(errors="replace"), type=dict[str, Any], strict=True)
    except (msgspec.DecodeError, RecursionError):
        return None


def _extract_object(text: str, start: int) -> tuple[str, int]:
    """Return the object that begins at `start`, and its end position.

    A truncated object is closed after its last complete member. The text is "" if the brackets do not match or are
    nested too deeply.
    """
    open_: list[str] = []
    safe_end, open_at_safe_end = start + 1, ["{"]
    in_string = is_escaped = False
    for at in range(start, len(text)):
        letter = text[at]
        if in_string:
            in_string = is_escaped or letter != '"'
            is_escaped = letter == "\\" and not is_escaped
        elif letter == '"':
            in_string = True
        elif letter in "{[":
            open_.append(letter)
            if len(open_) > _MAX_OBJECT_DEPTH:
                return "", at
        elif letter in "}]":
            if _CLOSING[open_.pop()] != letter:
                return "", at
            if not open_:
                return text[start : at + 1], at + 1
            safe_end, open_at_safe_end = at + 1, open_.copy()
        elif letter == ",":
            safe_end, open_at_safe_end = at, open_.copy()
    return text[start:safe_end] + "".join(_CLOSING[bracket] for bracket in reversed(open_at_safe_end)), len(
        text
    )


def decode_large_numbers(text: bytes) -> Any:
    """Decode JSON with None for each number that is out of range, such as 1e400.

    Raises UnicodeDecodeError for invalid UTF-8. (`json.loads` of bytes would accept lone surrogates, which cannot be
    encoded.)
    """
    return json.loads(text.decode(), parse_int=_parse_number, parse_float=_parse_number)


def _parse_number(text: str) -> int | float | None:
    try:
        return msgspec.json.decode(text, type=int | float)
    except msgspec.ValidationError:
        return None


def join_json_lines(text: bytes) -> bytes:
    """Put JSON on one line. In valid JSON, line breaks occur only as whitespace between tokens."""
    return text.replace(b"\n", b" ").replace(b"\r", b" ")
