"""Read and write episodes, the turns of a session. Their scope is the current scope of their session."""

from __future__ import annotations

import asyncio

from vademecum.errors import Conflict, no_such
from vademecum.model.memory.scope import InProject, MemoryPartition, MemoryScope, sees
from vademecum.model.records.store_interface import UserStore
from vademecum.model.schema.collections import Json
from vademecum.model.sync.quotas import Limits
from vademecum.model.sync.transaction import Transaction
from vademecum.services.memory.scope import find_project_id, find_session_home, locate_row
from vademecum.services.sync import row_operations
from vademecum.services.sync.batches import list_live_children, list_live_keys
from vademecum.services.sync.pagination import Page, PageRequest, list_newest


def create(tx: Transaction, fields: Json, limits: Limits) -> Json:
    """Store a finished turn. `projectId` in `fields` is the expected project of its session and is not stored.

    Raises NotFound for a missing session, and Conflict if the session is in another project.
    """
    expected = fields.pop("projectId", None)
    if expected is not None:
        home = find_session_home(tx.head, fields["sessionId"])
        if home != InProject(expected):
            raise Conflict("The session is not in that project. Nothing was stored.")
    return row_operations.add(tx, "episodes", {**fields, "citations": [], "status": "done"}, limits)


def find_session_id(store: UserStore, episode_id: str) -> str | None:
    """Return the id of the session that a turn belongs to. Raises NotFound for a missing turn."""
    location = locate_row(f"episodes/{episode_id}", store.row_index.rows.get)
    if location is None:
        raise no_such("episodes")
    return location.session_id


async def read(store: UserStore, scope: MemoryScope, episode_id: str) -> bytes:
    """Return a turn as it is stored. Raises NotFound for a missing turn or one outside the scope."""
    location = locate_row(f"episodes/{episode_id}", store.row_index.rows.get)
    if location is None or not sees(scope, location.project_id):
        raise no_such("episodes")
    return await row_operations.read(store, "episodes", episode_id)


async def list_by_session(
    store: UserStore, session_id: str, page_request: PageRequest
) -> tuple[MemoryPartition, Page]:
    """Return the project or pool of the session, and a page of its turns. Raises NotFound for a missing session."""
    session = f"sessions/{session_id}"
    home = find_session_home(store.row_index.rows.get, session_id)
    return home, await list_newest(store, list_live_children(store, session, "episodes"), page_request)


async def list_in_scope(store: UserStore, scope: MemoryScope, page_request: PageRequest) -> Page:
    """Return a page of the turns of all sessions currently in the scope."""
    return await list_newest(store, await list_keys_in_scope(store, scope), page_request)


async def list_keys_in_scope(store: UserStore, scope: MemoryScope) -> list[str]:
    turns = await list_live_keys(store, "episodes")
    return await asyncio.to_thread(lambda: [key for key in turns if _is_within(store, scope, key)])


def _is_within(store: UserStore, scope: MemoryScope, key: str) -> bool:
    heads = store.row_index.rows
    return any(sees(scope, find_project_id(heads[session].references)) for session in heads[key].parents)
