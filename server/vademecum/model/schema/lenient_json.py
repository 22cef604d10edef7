"""JSON in a text that is not JSON: in prose, in a fence, or cut off, in which case what was whole is kept; strings with
half a letter in them; what is nested so deeply, or counts so much, that no decoder takes it; and line breaks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec

DEPTH_MAX = 8
CANDIDATES_MAX = 50
_CLOSING = {"{": "}", "[": "]"}
# An escape in JSON: a pair, half of a pair alone (which is no letter, and no JSON), or any other.
_ESCAPE = re.compile(
    r"\\(?:u[Dd][89ABab][\dA-Fa-f]{2}\\u[Dd][C-Fc-f][\dA-Fa-f]{2}|(?P<lone>u[Dd][89A-Fa-f][\dA-Fa-f]{2})|.)",
    re.ASCII | re.DOTALL,
)
# Where JSON opens and closes, strings passed over. One that does not end goes to the end: else each quote in it would be
# tried for the beginning of one, which takes time by the square.
_BRACKET = re.compile(rb'"(?:[^"\\]++|\\.|\\\Z)*+(?:"|\Z)|[\[{]|[\]}]', re.DOTALL)
_BRACKET_OF_TEXT = re.compile(_BRACKET.pattern.decode(), re.DOTALL)
_NOT_JSON = re.compile(r'"(?:[^"\\]++|\\.|\\\Z)*+(?:"|\Z)|\bNaN\b|-?\bInfinity\b', re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f]")
DEEPEST = 64  # arrays and objects within each other; nothing that fits a schema has as many
HALF = r"\ufffd"  # what stands for half a letter


def without_halves(text: str) -> str:
    """JSON with `HALF` where an escape is half of a surrogate pair: JavaScript's strings may end within a letter."""
    if "\\ud" not in text and "\\uD" not in text:  # as in most that is no JSON for another reason
        return text
    return _ESCAPE.sub(lambda escape: HALF if escape["lone"] else escape[0], text)


def without_depths(text: bytes) -> bytes:
    """JSON with null in place of what lies deeper than `DEEPEST`."""
    kept, depth, since = bytearray(), 0, 0
    for found in _BRACKET.finditer(text):
        if found[0] in (b"[", b"{"):
            depth += 1
            if depth == DEEPEST + 1:
                kept += text[since : found.start()] + b"null"
        elif found[0] in (b"]", b"}"):
            if depth == DEEPEST + 1:
                since = found.end()
            depth -= 1
    return bytes(kept + text[since:])


def elements(text: str) -> list[str]:
    """The objects and arrays of a JSON array, each as its text, whatever is wrong within one. Raises ValueError for what
    is no such array."""
    found: list[str] = []
    depth = start = end = 0
    for token in _BRACKET_OF_TEXT.finditer(text):
        sign = token[0]
        if sign in "[{":
            depth += 1
            if depth == 2:
                _check_between(text[end : token.start()], first=not found)
                start = token.start()
        elif sign in "]}":
            depth -= 1
            end = token.end()
            if depth == 1:
                found.append(text[start:end])
            elif depth == 0:
                break
    if depth or not found or text[end:].strip():
        raise ValueError("it is no array of objects")
    return found


def _check_between(text: str, *, first: bool) -> None:
    if text.strip() != ("[" if first else ","):
        raise ValueError("it is no array of objects")


def as_json(text: str) -> str:
    """JSON with escapes for raw control characters in strings, and null for NaN and Infinity."""
    return _NOT_JSON.sub(_mended, text)


def _mended(found: re.Match[str]) -> str:
    if not found[0].startswith('"'):
        return "null"
    return _CONTROL.sub(lambda control: f"\\u{ord(control[0]):04x}", found[0])


def objects_in(text: str) -> Iterator[dict[str, Any]]:
    """The objects of a text, in its order; not those within one that was found."""
    at = text.find("{")
    for _ in range(CANDIDATES_MAX):
        if at < 0:
            return
        span, end = _whole(text, at)
        decoded = _decoded(span)
        if decoded is not None:
            yield decoded
        at = text.find("{", at + 1 if decoded is None else end)


def _decoded(span: str) -> dict[str, Any] | None:
    try:
        return msgspec.json.decode(span.encode(errors="replace"), type=dict[str, Any], strict=True)
    except (msgspec.DecodeError, RecursionError):
        return None


def _whole(text: str, start: int) -> tuple[str, int]:
    """The object that begins at `start`, closed after its last whole part if the text ends before it does; and where it
    ends."""
    open_: list[str] = []
    safe, still_open = start + 1, ["{"]  # where it could be closed, and what would have to be
    in_string = escaped = False
    for at in range(start, len(text)):
        letter = text[at]
        if in_string:
            in_string = escaped or letter != '"'
            escaped = letter == "\\" and not escaped
        elif letter == '"':
            in_string = True
        elif letter in "{[":
            open_.append(letter)
            if len(open_) > DEPTH_MAX:
                return "", at
        elif letter in "}]":
            if _CLOSING[open_.pop()] != letter:
                return "", at
            if not open_:
                return text[start : at + 1], at + 1
            safe, still_open = at + 1, open_.copy()
        elif letter == ",":
            safe, still_open = at, open_.copy()
    return text[start:safe] + "".join(_CLOSING[one] for one in reversed(still_open)), len(text)


def without_excess(text: bytes) -> Any:
    """What JSON says, with None in place of each number that is too large to be one, such as 1e400. Raises
    UnicodeDecodeError: given bytes, the library would let halves of letters pass, which nothing can write."""
    return json.loads(text.decode(), parse_int=_number, parse_float=_number)


def _number(text: str) -> int | float | None:
    try:
        return msgspec.json.decode(text, type=int | float)
    except msgspec.ValidationError:
        return None


def on_one_line(text: bytes) -> bytes:
    """JSON without line breaks. One can only stand between two tokens; a blank means the same there."""
    return text.replace(b"\n", b" ").replace(b"\r", b" ")
