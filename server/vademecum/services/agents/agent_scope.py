"""The scope of what agents ask: one project, or, if that was asked for by name, all. There is none that is left out."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from vademecum.engines.duckdb.user_store import UserStore
from vademecum.errors import BadRequest
from vademecum.model.memory.scope import Everything, InProject, MemoryScope
from vademecum.services.memory.scope import ProjectSelector, find_project_by_name
from vademecum.services.sync import write_row


class NamedProject(msgspec.Struct, frozen=True):
    id: str
    name: str


class AgentScope(msgspec.Struct, frozen=True):
    """What was looked at: a project, or null for all of them."""

    project: NamedProject | None


class Scoped(NamedTuple):
    """The scope to ask in, and as it is told in the answer."""

    asked: MemoryScope
    told: AgentScope


_named = msgspec.json.Decoder(NamedProject)


async def scope_called(store: UserStore, project: ProjectSelector) -> Scoped:
    """`project`: an id or a name; None or `*`, all. Raises BadRequest when it is absent, NotFound for one that is not
    there, and Conflict for a name that several have."""
    if project is msgspec.UNSET:
        raise BadRequest("Name the project: `project` is its id or its name, or `*` for all of yours.")
    if project is None or project == "*":
        return Scoped(Everything(), AgentScope(None))
    project_id = await find_project_by_name(store, str(project))
    return Scoped(InProject(project_id), AgentScope(await named(store, project_id)))


async def named(store: UserStore, project_id: str) -> NamedProject:
    """Raises NotFound."""
    return _named.decode(await write_row.read(store, "projects", project_id))
