"""What an endpoint streams, out of bytes as they arrive: each line of its server-sent events is a piece of the answer.

Lines and not whole events: no endpoint cuts its JSON into lines, and some forget the empty one between events.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import msgspec

from vademecum.engines.llm.refusals import failed, garbled

LINE_MAX = 2**20
Finish = Literal["stop", "length", "content_filter", "other"]
FINISHES: tuple[Finish, ...] = get_args(Finish)


class Piece(msgspec.Struct, frozen=True):
    """`finish`: why the answer ends with this piece."""

    text: str
    finish: Finish | None = None


class _Delta(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    finish_reason: str | None = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | None = None
    error: Any = None


_chunk = msgspec.json.Decoder(_Chunk)
_DONE = Piece("", "stop")


class Lines:
    """Whole lines out of bytes. Cut at bytes, so that a character that arrives in two halves is whole again."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[bytes]:
        first, *others = data.split(b"\n")
        self._parts.append(first)
        self._size += len(first)
        if self._size > LINE_MAX:
            raise garbled()
        if not others:
            return []
        line = b"".join(self._parts)
        *whole, rest = others
        self._parts, self._size = [rest], len(rest)
        return [line, *whole]


def piece(line: bytes) -> Piece | None:
    """None for a line that says nothing: a comment, a chunk that counts tokens. Raises AssistantBroke."""
    field, _, value = line.strip().partition(b":")
    value = value.strip()
    if field != b"data" or not value:
        return None
    if value == b"[DONE]":
        return _DONE
    try:
        chunk = _chunk.decode(value.decode(errors="replace"))
    except (msgspec.DecodeError, RecursionError):
        raise garbled() from None
    if chunk.error is not None:
        raise failed()
    if not chunk.choices:
        return None
    choice = chunk.choices[0]
    text = choice.delta.content if choice.delta is not None else None
    return Piece(text or "", _finish(choice.finish_reason))


def _finish(reason: str | None) -> Finish | None:
    if not reason:
        return None
    return next((known for known in FINISHES if known == reason), "other")
