"""Recollection: what a row of memory says to those who look for it, and how it is cut for the index.

A turn of talk often means little without the one before ("and why?"), so the end of that one is embedded with it. It is
never kept beside it: what the index holds of a row is the row's own text, which goes when the row goes.
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
OF_A_DAY = ("episodes", "memories", "observations")
FINISHED = ("done", "stopped")
BEFORE = 300  # characters of the turn before, at most


class Remembered(msgspec.Struct, rename="camel", frozen=True):
    """The fields of all kinds that recall asks for; those that a row's kind has not are empty."""

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


decode = msgspec.json.Decoder(Remembered).decode


def kind_of(key: str) -> str:
    """The collection that a row's key ("collection/id") names."""
    return key.partition("/")[0]


def said(key: str, row: Remembered) -> str:
    """What the row says; empty if it is not to be recalled: deleted, a turn that is not finished, a superseded memory."""
    if row.deleted or row.superseded_by:
        return ""
    match kind_of(key):
        case "episodes":
            return turn(row) if row.status in FINISHED else ""
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


def may_be_told(key: str, row: Remembered) -> bool:
    """Return whether a prompt may hold what the row says. Its user finds it in any case."""
    return kind_of(key) != "episodes" or enters_prompts(row.model, row.ai_response)


def dated(key: str, row: Remembered) -> str:
    """The marks of the day when the row was said, by which it is found, too. Others, such as a summary, are not of a day."""
    return dates_in_text.date_terms(row.created_at) if kind_of(key) in OF_A_DAY else ""


def turn(row: Remembered) -> str:
    """What was asked and what was answered."""
    return normalize(f"{row.user_message}\n\n{row.ai_response}")


class Piece(msgspec.Struct, frozen=True):
    """A chunk of what a row says, and the text whose vector it gets."""

    text: str
    embedded: str


class _Part(msgspec.Struct, frozen=True):
    text: str
    page: int | None = None
    section: str | None = None


def pieces(own: str, before: str = "") -> list[Piece]:
    """What a row says in chunks of the model's length. The first is embedded together with the end of `before`."""
    end = ending(before)
    if not own.strip() or not end:
        return [Piece(one.text, one.text) for one in chunk([_Part(own)])]
    first, *others = chunk([_Part(end), _Part(own)])
    text = first.text.removeprefix(end).strip()
    if (
        not first.text.startswith(end) or not text
    ):  # odd characters: better no context than another row's text
        return pieces(own)
    return [Piece(text, first.text), *(Piece(one.text, one.text) for one in others)]


def ending(text: str) -> str:
    """The last characters of a text, too few for the chunker to make a chunk of them alone: less than a quarter of one."""
    end = normalize(text[-BEFORE:])
    while sum(cost(ord(character)) for character in end) >= BUDGET // 4:
        end = end[10:]
    return end.strip()
