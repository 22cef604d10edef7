"""Parse the server-sent events of an endpoint into pieces of an answer, one per line.

The parser works on lines, not events: no endpoint splits its JSON over lines, and some omit the blank line between events.
"""

from __future__ import annotations

import codecs
import json
from typing import Any, Literal, get_args

import msgspec

from vademecum.engines.llm.errors import endpoint_failure, invalid_reply_error

LINE_MAX = 2**20
Finish = Literal["stop", "length", "content_filter", "other"]
FINISHES: tuple[Finish, ...] = get_args(Finish)


class AnswerPiece(msgspec.Struct, frozen=True):
    """A piece of an answer. `finish` is the reason why the answer ends with this piece, or None.

    If `restarts` is true, all text before this piece was reasoning.
    """

    text: str
    finish: Finish | None = None
    restarts: bool = False


class _ContentPart(msgspec.Struct):
    type: str = ""
    text: str | None = None


class _Delta(msgspec.Struct):
    """New text of a reply. `content` is a string or, from Mistral's Magistral, a list of parts.

    The parts of type "text" form the answer.
    """

    content: str | list[_ContentPart] | None = None

    def text(self) -> str:
        parts = self.content or ""
        text = parts if isinstance(parts, str) else "".join(p.text or "" for p in parts if p.type == "text")
        # Lone halves of surrogate pairs become U+FFFD.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class _Choice(msgspec.Struct):
    """One of the replies of an endpoint. If the endpoint does not stream, `message` is set instead of `delta`."""

    index: int | None = 0
    delta: _Delta | None = None
    message: _Delta | None = None
    finish_reason: str | None = None


class _Chunk(msgspec.Struct):
    """A JSON object that an endpoint sends. `object` is "error" if vLLM reports an error."""

    choices: list[_Choice] | None = None
    error: Any = None
    object: str | None = None


_chunk = msgspec.json.Decoder(_Chunk)
_DONE = AnswerPiece("", "stop")


class LineBuffer:
    """A buffer that splits a byte stream into lines.

    The buffer does not decode the bytes, because data may end inside a character.
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[bytes]:
        first, *others = data.split(b"\n")
        self._parts.append(first)
        self._size += len(first)
        if self._size > LINE_MAX:
            raise invalid_reply_error()
        if not others:
            return []
        line = b"".join(self._parts)
        *complete, rest = others
        self._parts, self._size = [rest], len(rest)
        return [line, *complete]

    def flush(self) -> bytes:
        """Return the incomplete last line."""
        return b"".join(self._parts)


def parse_line(line: bytes) -> AnswerPiece | None:
    """Parse a line; return None if it has no content, such as a comment or token counts. Raises AssistantBroke."""
    line = line.removeprefix(codecs.BOM_UTF8).strip()
    if line.startswith(b"{"):
        return parse_json_answer(line)
    field, _, value = line.partition(b":")
    value = value.strip()
    if field == b"error":  # as llama.cpp reports errors
        raise endpoint_failure()
    if field != b"data" or not value:
        return None
    return _DONE if value == b"[DONE]" else _extract_piece(_decode_chunk(value))


def parse_json_answer(body: bytes) -> AnswerPiece | None:
    """Parse the single JSON object of an endpoint that ignores `stream`. Raises AssistantBroke."""
    piece = _extract_piece(_decode_chunk(body.removeprefix(codecs.BOM_UTF8)))
    return None if piece is None else msgspec.structs.replace(piece, finish=piece.finish or "stop")


def _decode_chunk(value: bytes) -> _Chunk:
    text = value.decode(errors="replace")
    try:
        return _chunk.decode(text)
    except msgspec.DecodeError:
        pass  # try `json`, because msgspec rejects lone surrogates
    except RecursionError:
        raise invalid_reply_error() from None
    try:
        return msgspec.convert(json.loads(text), _Chunk)
    except (ValueError, RecursionError):  # msgspec.ValidationError is a ValueError
        raise invalid_reply_error() from None


def _extract_piece(chunk: _Chunk) -> AnswerPiece | None:
    if chunk.error is not None or chunk.object == "error":
        raise endpoint_failure()
    choice = next((choice for choice in chunk.choices or () if not choice.index), None)
    if choice is None:
        return None
    delta = choice.delta or choice.message
    return AnswerPiece(delta.text() if delta is not None else "", _normalize_finish(choice.finish_reason))


def _normalize_finish(reason: str | None) -> Finish | None:
    if not reason:
        return None
    return next((finish for finish in FINISHES if finish == reason), "other")
