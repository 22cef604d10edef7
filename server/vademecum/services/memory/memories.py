"""List, read and delete memories, with the older memories that they supersede.

A memory restated in other words stays as history: its `supersededBy` names the new memory, whose `supersedes` names the
old one. Devices write these rows too, so a chain may be broken or cyclic.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable

import msgspec

from vademecum.errors import Conflict, no_such
from vademecum.model.memory.scope import MemoryScope
from vademecum.model.records.store_interface import UserStore
from vademecum.model.schema.collections import Json, Memory
from vademecum.model.sync import cascade
from vademecum.model.sync.quotas import Limits
from vademecum.model.sync.transaction import Transaction
from vademecum.services.memory.scope import find_session_home, is_within, list_scoped_keys
from vademecum.services.sync import write_row
from vademecum.services.sync.batches import Batch, list_live_children, read_batches
from vademecum.services.sync.pagination import Page, PageRequest, count_fitting, list_newest

HISTORY_MAX = 1000
_decoder = msgspec.json.Decoder(Memory)


class Stats(msgspec.Struct, rename="camel"):
    """Counts of memories. `total` includes `superseded` ones. `totalSessions`: the sessions that they came from."""

    scope: MemoryScope
    total: int = 0
    superseded: int = 0
    pinned: int = 0
    by_source: dict[str, int] = msgspec.field(default_factory=dict)
    total_sessions: int = 0


def key_of(memory_id: str) -> str:
    return f"memories/{memory_id}"


def is_current(memory: Memory) -> bool:
    return not memory.superseded_by


async def list_keys_in_scope(store: UserStore, scope: MemoryScope) -> list[str]:
    return await list_scoped_keys(store, scope, "memories")


async def read_memories(store: UserStore, keys: Iterable[str]) -> AsyncIterator[list[tuple[Memory, bytes]]]:
    """Yield the memories `keys` in batches, each memory with its stored row."""
    async for portion in read_batches(store, keys):
        yield await asyncio.to_thread(_decoded, portion)


def _decoded(portion: Batch) -> list[tuple[Memory, bytes]]:
    return [(_decoder.decode(body), body) for _, body in portion]


async def read(store: UserStore, scope: MemoryScope, memory_id: str) -> bytes:
    """Return the stored memory. Raises NotFound for one outside the scope, as for a missing one."""
    if not is_within(scope, store.row_index.rows.get(key_of(memory_id))):
        raise no_such("memories")
    return await write_row.read(store, "memories", memory_id)


async def list_by_session(store: UserStore, session_id: str, asked: PageRequest) -> tuple[MemoryScope, Page]:
    """Return the session's current scope and a page of its current memories in that scope. Raises NotFound."""
    scope = find_session_home(store.row_index.rows.get, session_id)
    named = list_live_children(store, f"sessions/{session_id}", "memories")
    keys = [key for key in named if is_within(scope, store.row_index.rows.get(key))]
    return scope, await list_newest(store, keys, asked, lambda card: not card.superseded_by)


async def history(store: UserStore, scope: MemoryScope, memory_id: str) -> list[bytes]:
    """Return the supersession chain of a memory, the current one first, as far as it fits into a page.

    Raises NotFound.
    """
    asked = _decoder.decode(await read(store, scope, memory_id))
    newer = await _chain(store, scope, asked.superseded_by, "superseded_by", {asked.id})
    older = await _chain(store, scope, asked.supersedes, "supersedes", {asked.id, *newer})
    ids = [*reversed(newer), asked.id, *older]
    keys = [key_of(one) for one in ids]
    ids = ids[: count_fitting(store, keys)]
    found = await store.read_bodies(keys[: len(ids)])
    return [found[key_of(one)] for one in ids if key_of(one) in found and store.is_live(key_of(one))]


async def _chain(store: UserStore, scope: MemoryScope, start: object, link: str, seen: set[str]) -> list[str]:
    """Return the ids along the chain from `start`, until it ends or leaves the scope."""
    found: list[str] = []
    at = start
    while isinstance(at, str) and at not in seen and len(found) < HISTORY_MAX:
        key = key_of(at)
        body = (await store.read_bodies([key])).get(key)
        if body is None or not is_within(scope, store.row_index.rows.get(key)):
            break
        seen.add(at)
        found.append(at)
        at = getattr(_decoder.decode(body), link)
    return found


async def count_memories(store: UserStore, scope: MemoryScope) -> Stats:
    counted, sources, sessions = Stats(scope), Counter[str](), set[str]()
    async for some in read_memories(store, await list_keys_in_scope(store, scope)):
        for memory, _ in some:
            counted.total += 1
            counted.superseded += not is_current(memory)
            counted.pinned += memory.pinned
            sources[memory.source] += 1
            sessions.update(memory.session_ids)
    counted.by_source, counted.total_sessions = dict(sources), len(sessions)
    return counted


def undo_supersession(
    tx: Transaction, scope: MemoryScope, memory_id: str, limits: Limits
) -> tuple[Json, Json]:
    """Make a memory and the one that it supersedes both current again.

    Raises NotFound, and Conflict if it supersedes none.
    """
    memory = _row_within(tx, scope, memory_id)
    old_id = memory.get("supersedes")
    if not old_id or not is_within(scope, tx.head(key_of(old_id))):
        raise Conflict("This memory replaced no other. Nothing was changed.")
    restored = write_row.change_keeping_updated_at(tx, "memories", old_id, {"supersededBy": None}, limits)
    return write_row.change_keeping_updated_at(
        tx, "memories", memory_id, {"supersedes": None}, limits
    ), restored


def delete(tx: Transaction, scope: MemoryScope, memory_id: str) -> int:
    """Delete a memory and the older ones that it supersedes, because they say the same. Return their number.

    Raises NotFound.
    """
    at: str | None = _row_within(tx, scope, memory_id)["id"]
    keys: list[str] = []
    while at and key_of(at) not in keys and is_within(scope, tx.head(key_of(at))):
        keys.append(key_of(at))
        at = tx.row(keys[-1]).get("supersedes")
    return len(cascade.delete_with_dependents(tx, *keys))


def _row_within(tx: Transaction, scope: MemoryScope, memory_id: str) -> Json:
    write_row.check_within(tx, scope, "memories", memory_id)
    return write_row.require_live_row(tx, "memories", memory_id)
