"""What the next session of an agent should know of a project: pinned, decided, remembered, and done lately, in a bound."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from vademecum.engines.duckdb.user_store import UserStore
from vademecum.model import secrets
from vademecum.model.agents.briefing import Briefing, BriefingPiece, brief, rank
from vademecum.model.memory.indexable_text import kind_of
from vademecum.services.agents import project_claims
from vademecum.services.agents.agent_scope import Scoped
from vademecum.services.memory.scope import list_scoped_keys
from vademecum.services.models.active_model import Inference
from vademecum.services.sync.batches import read_batches
from vademecum.services.sync.pagination import ListEntry, read_list_entries

PIECES = 300  # as many as a large budget takes of short ones


class AgentBriefing(msgspec.Struct, frozen=True):
    briefing: Briefing
    notice: str | None


class _Told(msgspec.Struct, rename="camel"):
    """The fields of an observation or a memory that are told."""

    updated_at: str
    pinned: bool
    kind: str = "memory"
    content: str = ""
    text: str = ""
    path: str = ""
    count: int = 1


_told = msgspec.json.Decoder(_Told)


async def context(
    store: UserStore, scope: Scoped, tokens: int, inference: Inference, clock: Callable[[], str]
) -> AgentBriefing:
    """Without anything to tell, the text is empty."""
    project = scope.told.project
    now = clock()
    pieces = await _pieces(store, scope, now)
    told = await brief(
        project.name if project else "all projects", pieces, now, tokens, inference.count_tokens
    )
    return AgentBriefing(told, await project_claims.notice_of(store, project.id) if project else None)


async def _pieces(store: UserStore, scope: Scoped, now: str) -> list[BriefingPiece]:
    keys = [
        *await list_scoped_keys(store, scope.asked, "observations"),
        *await list_scoped_keys(store, scope.asked, "memories"),
    ]
    cards = await read_list_entries(store, keys)
    best = await asyncio.to_thread(_best, cards, now)
    found: list[BriefingPiece] = []
    async for portion in read_batches(store, best):
        found += await asyncio.to_thread(lambda rows: [_piece(key, body) for key, body in rows], portion)
    return found


def _best(cards: dict[str, ListEntry], now: str) -> list[str]:
    """Keys of the rows that are told first; a memory whose place another has taken is none of them."""
    current = [key for key, card in cards.items() if not card.superseded_by]
    ranks = {
        key: rank(_kind(key, cards[key]), cards[key].updated_at, cards[key].pinned, now) for key in current
    }
    return sorted(current, key=lambda key: (*ranks[key], key))[:PIECES]


def _kind(key: str, card: ListEntry) -> str:
    return "memory" if kind_of(key) == "memories" else card.kind


def _piece(key: str, body: bytes) -> BriefingPiece:
    """Without secrets: a device may have stored some in a memory."""
    row = _told.decode(body)
    text = secrets.redact(row.content or row.text)
    return BriefingPiece(key, row.kind, row.updated_at, text, row.pinned, row.path, row.count)
