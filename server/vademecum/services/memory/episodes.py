"""Episodes: the turns of a session. They are where their session is now: a session that moves takes them along."""

from __future__ import annotations

import asyncio

from vademecum.engines.duckdb.user_store import UserStore
from vademecum.errors import Conflict, no_such
from vademecum.model.memory.scope import Home, InProject, MemoryScope, sees
from vademecum.model.schema.collections import Json
from vademecum.model.sync.quotas import Limits
from vademecum.model.sync.transaction import Draft
from vademecum.services.memory.scope import home_of, place_of, project_of
from vademecum.services.sync import write_row
from vademecum.services.sync.batches import children, live_keys
from vademecum.services.sync.pagination import Page, Window, newest


def create(draft: Draft, fields: Json, limits: Limits) -> Json:
    """Store a finished turn. `projectId` in `fields` is the expected project of its session and is not stored.
    Raises NotFound for a session that is not there, Conflict for one that is in another project."""
    expected = fields.pop("projectId", None)
    if expected is not None:
        home = home_of(draft.head, fields["sessionId"])
        if home != InProject(expected):
            raise Conflict("The session is not in that project. Nothing was stored.")
    return write_row.add(draft, "episodes", {**fields, "citations": [], "status": "done"}, limits)


def session_of(store: UserStore, episode_id: str) -> str | None:
    """Return the session that a turn is in. Raises NotFound."""
    place = place_of(f"episodes/{episode_id}", store.heads.rows.get)
    if place is None:
        raise no_such("episodes")
    return place.session_id


async def read(store: UserStore, scope: MemoryScope, episode_id: str) -> bytes:
    """Return a turn as it is stored. Raises NotFound for one that is not within the scope, as for one that is not there."""
    place = place_of(f"episodes/{episode_id}", store.heads.rows.get)
    if place is None or not sees(scope, place.project_id):
        raise no_such("episodes")
    return await write_row.read(store, "episodes", episode_id)


async def of_session(store: UserStore, session_id: str, asked: Window) -> tuple[Home, Page]:
    """With where the session is. Raises NotFound."""
    session = f"sessions/{session_id}"
    home = home_of(store.heads.rows.get, session_id)
    return home, await newest(store, children(store, session, "episodes"), asked)


async def within(store: UserStore, scope: MemoryScope, asked: Window) -> Page:
    """The turns of all the sessions that are in the scope now."""
    return await newest(store, await keys_within(store, scope), asked)


async def keys_within(store: UserStore, scope: MemoryScope) -> list[str]:
    turns = await live_keys(store, "episodes")
    return await asyncio.to_thread(lambda: [key for key in turns if _is_within(store, scope, key)])


def _is_within(store: UserStore, scope: MemoryScope, key: str) -> bool:
    heads = store.heads.rows
    return any(sees(scope, project_of(heads[session].references)) for session in heads[key].parents)
