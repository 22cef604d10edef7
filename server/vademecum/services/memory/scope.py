"""Decide which memory a read may see and where a write belongs. No other module decides this."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from vademecum.errors import BadRequest, Conflict, NotFound, no_such
from vademecum.model.memory.scope import (
    PROJECTS,
    SESSIONS,
    Everything,
    InProject,
    MemoryPartition,
    MemoryScope,
    partition_of,
    sees,
)
from vademecum.model.records.store_interface import UserStore
from vademecum.model.sync.transaction import RowHead, state_of
from vademecum.model.text.display_text import short_name
from vademecum.model.text.tokenize import fold
from vademecum.services.sync.batches import list_live_keys, read_batches

# A string selects a project by id or name, None selects all projects, and UNSET selects the session's project.
ProjectSelector = str | None | UnsetType


class RowLocation(NamedTuple):
    """The session and project that a row is in now."""

    session_id: str | None
    project_id: str | None


class _Named(msgspec.Struct):
    id: str
    name: str


_named = msgspec.json.Decoder(_Named)


async def resolve_scope(store: UserStore, session_id: str | None, project: ProjectSelector) -> MemoryScope:
    """Return the scope of a request.

    Raises NotFound for a missing session or project, Conflict for an ambiguous project name, and BadRequest if the
    request names neither a session nor a project.
    """
    if project is None:
        return Everything()
    if isinstance(project, str):
        return InProject(await find_project_by_name(store, project))
    if session_id is None:
        raise BadRequest(
            "Name a session or a project. For all projects, send `project` as null, or as `*` in a URL."
        )
    return find_session_home(store.row_index.rows.get, session_id)


def parse_project_parameter(project: str | None) -> ProjectSelector:
    """Parse the `project` query parameter. The value `*` selects all projects."""
    if project is None:
        return UNSET
    return None if project == "*" else project


def find_session_home(head_of: Callable[[str], RowHead | None], session_id: str) -> MemoryPartition:
    """Return the current project of a session, or the pool of sessions without a project.

    Raises NotFound for a missing session.
    """
    session = head_of(SESSIONS + session_id)
    if session is None or session.deleted:
        raise no_such("sessions")
    return partition_of(find_project_id(session.references))


def find_project_id(references: Iterable[str]) -> str | None:
    """Return the id of the project among the references of a row, or None."""
    return next((name.removeprefix(PROJECTS) for name in references if name.startswith(PROJECTS)), None)


def locate_row(key: str, head_of: Callable[[str], RowHead | None]) -> RowLocation | None:
    """Return the current location of a memory row, or None if the row is not live.

    A turn or a session summary has the location of its session, even if the row names another project. Rows without a
    session are in the project that they name.
    """
    head = head_of(key)
    if head is None or state_of(head) != "live":
        return None
    name = next((name for name in head.parents if name.startswith(SESSIONS)), None)
    session = head_of(name) if name is not None else None
    if name is None or session is None:
        return RowLocation(None, find_project_id(head.parents))
    return RowLocation(name.removeprefix(SESSIONS), find_project_id(session.references))


def is_within(scope: MemoryScope, head: RowHead | None) -> bool:
    """Return whether a memory, entity or observation exists and its own project is in the scope."""
    return head is not None and not head.deleted and sees(scope, find_project_id(head.parents))


async def list_scoped_keys(store: UserStore, scope: MemoryScope, collection: str) -> list[str]:
    """Return the keys of the rows in scope. Use this only for collections whose rows name their project themselves."""
    heads = store.row_index.rows
    return [key for key in await list_live_keys(store, collection) if is_within(scope, heads.get(key))]


async def find_project_by_name(store: UserStore, name: str) -> str:
    """Return the id of the live project with this id or name, ignoring case and accents.

    Raises NotFound if there is none, or Conflict if several projects have the name.
    """
    if store.is_live(PROJECTS + name):
        return name
    keys = await list_live_keys(store, "projects")
    folded_name = fold(name.strip())
    project_ids: list[str] = []
    async for portion in read_batches(store, keys):
        rows = await asyncio.to_thread(
            lambda bodies: [_named.decode(body) for body in bodies], [body for _, body in portion]
        )
        project_ids += [row.id for row in rows if fold(row.name.strip()) == folded_name]
    if not project_ids:
        raise NotFound(f"There is no project with the name “{short_name(name)}”.")
    if len(project_ids) > 1:
        raise Conflict(
            f"{len(project_ids)} projects have the name “{short_name(name)}”. Use an id: {', '.join(sorted(project_ids)[:5])}."
        )
    return project_ids[0]
