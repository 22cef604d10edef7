"""List, read and delete memories, with the older memories that they supersede.

A superseded memory stays as history: its `supersededBy` is the id of the new memory, whose `supersedes` is the id of
the old one. Devices write these rows, too, so a chain may be broken or cyclic.
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
from vademecum.services.sync import row_operations
from vademecum.services.sync.batches import Batch, list_live_children, read_batches
from vademecum.services.sync.pagination import Page, PageRequest, count_fitting, list_newest

HISTORY_MAX = 1000
_decoder = msgspec.json.Decoder(Memory)


class Stats(msgspec.Struct, rename="camel"):
    """Counts of memories.

    `total` includes `superseded` ones. `totalSessions`: the number of sessions that memories come from.
    """

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
    """Yield the memories with these keys in batches, each memory with its stored row."""
    async for batch in read_batches(store, keys):
        yield await asyncio.to_thread(_decoded, batch)


def _decoded(batch: Batch) -> list[tuple[Memory, bytes]]:
    return [(_decoder.decode(body), body) for _, body in batch]


async def read(store: UserStore, scope: MemoryScope, memory_id: str) -> bytes:
    """Return the stored memory. Raises NotFound for a missing memory or one outside the scope."""
    if not is_within(scope, store.row_index.rows.get(key_of(memory_id))):
        raise no_such("memories")
    return await row_operations.read(store, "memories", memory_id)


async def list_by_session(
    store: UserStore, session_id: str, page_request: PageRequest
) -> tuple[MemoryScope, Page]:
    """Return the session's current scope, and a page of its current memories in that scope.

    Raises NotFound for a missing session.
    """
    scope = find_session_home(store.row_index.rows.get, session_id)
    dependents = list_live_children(store, f"sessions/{session_id}", "memories")
    keys = [key for key in dependents if is_within(scope, store.row_index.rows.get(key))]
    return scope, await list_newest(store, keys, page_request, lambda entry: not entry.superseded_by)


async def history(store: UserStore, scope: MemoryScope, memory_id: str) -> list[bytes]:
    """Return the versions of a memory that fit into a page: the current one first, then those that it supersedes.

    Raises NotFound for a missing memory.
    """
    memory = _decoder.decode(await read(store, scope, memory_id))
    newer = await _read_chain(store, scope, memory.superseded_by, "superseded_by", {memory.id})
    older = await _read_chain(store, scope, memory.supersedes, "supersedes", {memory.id, *newer})
    keys = [key_of(i) for i in (*reversed(newer), memory.id, *older)]
    keys = keys[: count_fitting(store, keys)]
    bodies = await store.read_bodies(keys)
    return [bodies[key] for key in keys if key in bodies and store.is_live(key)]


async def _read_chain(
    store: UserStore, scope: MemoryScope, start: object, link: str, seen: set[str]
) -> list[str]:
    """Return the ids of the chain from `start` on, up to its end, a missing row or a row outside the scope."""
    chain: list[str] = []
    memory_id = start
    while isinstance(memory_id, str) and memory_id not in seen and len(chain) < HISTORY_MAX:
        key = key_of(memory_id)
        body = (await store.read_bodies([key])).get(key)
        if body is None or not is_within(scope, store.row_index.rows.get(key)):
            break
        seen.add(memory_id)
        chain.append(memory_id)
        memory_id = getattr(_decoder.decode(body), link)
    return chain


async def count_memories(store: UserStore, scope: MemoryScope) -> Stats:
    stats, sources, sessions = Stats(scope), Counter[str](), set[str]()
    async for batch in read_memories(store, await list_keys_in_scope(store, scope)):
        for memory, _ in batch:
            stats.total += 1
            stats.superseded += not is_current(memory)
            stats.pinned += memory.pinned
            sources[memory.source] += 1
            sessions.update(memory.session_ids)
    stats.by_source, stats.total_sessions = dict(sources), len(sessions)
    return stats


def undo_supersession(
    tx: Transaction, scope: MemoryScope, memory_id: str, limits: Limits
) -> tuple[Json, Json]:
    """Make a memory and the memory that it supersedes both current again. Return the rows of both.

    Raises NotFound for a missing memory, and Conflict if it supersedes none.
    """
    old_id = _require_row(tx, scope, memory_id).get("supersedes")
    if not old_id or not is_within(scope, tx.head(key_of(old_id))):
        raise Conflict("This memory replaced no other. Nothing was changed.")
    restored = row_operations.change_keeping_updated_at(
        tx, "memories", old_id, {"supersededBy": None}, limits
    )
    memory = row_operations.change_keeping_updated_at(tx, "memories", memory_id, {"supersedes": None}, limits)
    return memory, restored


def delete(tx: Transaction, scope: MemoryScope, memory_id: str) -> int:
    """Delete a memory and all older versions that it supersedes. Return the number of deleted rows.

    Raises NotFound for a missing memory.
    """
    key = key_of(_require_row(tx, scope, memory_id)["id"])
    keys: list[str] = []
    while key not in keys and is_within(scope, tx.head(key)):
        keys.append(key)
        key = key_of(tx.row(key).get("supersedes") or "")
    return len(cascade.delete_with_dependents(tx, *keys))


def _require_row(tx: Transaction, scope: MemoryScope, memory_id: str) -> Json:
    row_operations.check_within(tx, scope, "memories", memory_id)
    return row_operations.require_live_row(tx, "memories", memory_id)
