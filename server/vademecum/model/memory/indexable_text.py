"""Return the searchable text of memory rows, and split it for the index.

A turn often means little without the previous turn ("and why?"), so the end of the previous turn is embedded with it.
The index stores only a row's own text, which is deleted with the row.
"""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from vademecum.model.chat.answers import enters_prompts
from vademecum.model.documents.chunking import BUDGET, chunk, cost
from vademecum.model.text import dates_in_text
from vademecum.model.text.normalization import normalize

Kind = Literal["episodes", "memories", "entities", "summaries", "observations"]
KINDS: tuple[Kind, ...] = get_args(Kind)
DATED_KINDS = ("episodes", "memories", "observations")
FINISHED = ("done", "stopped")
MAX_CONTEXT = 300  # the number of characters from the end of the previous turn that are embedded


class MemoryRow(msgspec.Struct, rename="camel", frozen=True):
    """The fields that memory search reads, for rows of all kinds. Fields that a kind lacks are empty."""

    created_at: str = ""
    updated_at: str = ""
    deleted: bool = msgspec.field(name="_deleted", default=False)
    status: str = ""
    user_message: str = ""
    ai_response: str = ""
    model: str = ""
    text: str = ""
    name: str = ""
    type: str = ""
    notes: str = ""
    content: str = ""
    path: str = ""
    superseded_by: str = ""
    pinned: bool = False


decode = msgspec.json.Decoder(MemoryRow).decode


def kind_of(key: str) -> str:
    """Return the collection from a row's key, "collection/id"."""
    return key.partition("/")[0]


def index_text(key: str, row: MemoryRow) -> str:
    """Return the searchable text of a row: "" for a deleted row, an unfinished turn or a superseded memory."""
    if row.deleted or row.superseded_by:
        return ""
    match kind_of(key):
        case "episodes":
            return turn_text(row) if row.status in FINISHED else ""
        case "memories":
            return normalize(row.text)
        case "entities":
            return normalize(f"{row.name} ({row.type}): {row.notes}".removesuffix(": "))
        case "summaries":
            return normalize(row.content)
        case "observations":
            return normalize(f"{row.path}\n{row.content}".strip())
        case _:
            return ""


def may_enter_prompts(key: str, row: MemoryRow) -> bool:
    """Return whether prompts may contain the row. The user's own searches find the row in any case."""
    return kind_of(key) != "episodes" or enters_prompts(row.model, row.ai_response)


def row_date_terms(key: str, row: MemoryRow) -> str:
    """Return the date terms of a row, or "" for entities and summaries, which belong to no day."""
    return dates_in_text.date_terms(row.created_at) if kind_of(key) in DATED_KINDS else ""


def turn_text(row: MemoryRow) -> str:
    """Return the normalized question and answer of a turn."""
    return normalize(f"{row.user_message}\n\n{row.ai_response}")


class Piece(msgspec.Struct, frozen=True):
    """A chunk of a row, and the text that is embedded for it."""

    text: str
    embedded: str


class _Part(msgspec.Struct, frozen=True):
    text: str
    page: int | None = None
    section: str | None = None


def split_text(text: str, previous: str = "") -> list[Piece]:
    """Split a row's text into chunks.

    The first chunk is embedded together with the end of `previous`, the turn before.
    """
    context = context_of(previous)
    if not text.strip() or not context:
        return [Piece(one.text, one.text) for one in chunk([_Part(text)])]
    first, *others = chunk([_Part(context), _Part(text)])
    own = first.text.removeprefix(context).strip()
    if not first.text.startswith(context) or not own:  # omit the context if rare characters split it
        return split_text(text)
    return [Piece(own, first.text), *(Piece(one.text, one.text) for one in others)]


def context_of(text: str) -> str:
    """Return the end of a text, shorter than a quarter of a chunk, so that it never becomes a chunk of its own."""
    end = normalize(text[-MAX_CONTEXT:])
    while sum(cost(ord(character)) for character in end) >= BUDGET // 4:
        end = end[10:]
    return end.strip()
