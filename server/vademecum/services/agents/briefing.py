"""Build the briefing for a new agent session from the observations and memories of a scope, within a token budget."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from vademecum.model import secrets
from vademecum.model.agents.briefing import Briefing, BriefingEntry, compose_briefing, rank
from vademecum.model.memory.indexable_text import kind_of
from vademecum.model.records.store_interface import UserStore
from vademecum.services.agents import project_claims
from vademecum.services.agents.agent_scope import ResolvedScope
from vademecum.services.memory.scope import list_scoped_keys
from vademecum.services.models.active_model import Inference
from vademecum.services.sync.batches import Batch, read_batches
from vademecum.services.sync.pagination import ListEntry, read_list_entries

ENTRIES_MAX = 300  # enough to fill a large budget even with short entries


class AgentBriefing(msgspec.Struct, frozen=True):
    briefing: Briefing
    notice: str | None


class _BriefedRow(msgspec.Struct, rename="camel"):
    """The fields of an observation or a memory that a briefing shows."""

    updated_at: str
    pinned: bool
    kind: str = "memory"
    content: str = ""
    text: str = ""
    path: str = ""
    count: int = 1


_briefed_row = msgspec.json.Decoder(_BriefedRow)


async def build_briefing(
    store: UserStore, scope: ResolvedScope, tokens: int, inference: Inference, clock: Callable[[], str]
) -> AgentBriefing:
    """Return a briefing of at most `tokens` tokens. Its text is empty if the scope has no entries."""
    project = scope.agent_scope.project
    now = clock()
    entries = await _read_entries(store, scope, now)
    name = project.name if project else "all projects"
    briefing = await compose_briefing(name, entries, now, tokens, inference.count_tokens)
    return AgentBriefing(briefing, await project_claims.build_notice(store, project.id) if project else None)


async def _read_entries(store: UserStore, scope: ResolvedScope, now: str) -> list[BriefingEntry]:
    keys = [
        *await list_scoped_keys(store, scope.memory_scope, "observations"),
        *await list_scoped_keys(store, scope.memory_scope, "memories"),
    ]
    best = await asyncio.to_thread(_select_best, await read_list_entries(store, keys), now)
    entries: list[BriefingEntry] = []
    async for batch in read_batches(store, best):
        entries += await asyncio.to_thread(_decode_batch, batch)
    return entries


def _select_best(entries: dict[str, ListEntry], now: str) -> list[str]:
    """Return the keys of the best-ranked rows, without superseded memories."""
    ranks = {
        key: rank("memory" if _is_memory(key) else entry.kind, entry.updated_at, entry.pinned, now)
        for key, entry in entries.items()
        if not entry.superseded_by
    }
    return sorted(ranks, key=lambda key: (*ranks[key], key))[:ENTRIES_MAX]


def _is_memory(key: str) -> bool:
    return kind_of(key) == "memories"


def _decode_batch(batch: Batch) -> list[BriefingEntry]:
    return [_decode_entry(key, body) for key, body in batch]


def _decode_entry(key: str, body: bytes) -> BriefingEntry:
    """Decode a row and redact secrets, which a device may have stored in a memory."""
    row = _briefed_row.decode(body)
    text = secrets.redact(row.content or row.text)
    return BriefingEntry(key, row.kind, row.updated_at, text, row.pinned, row.path, row.count)
