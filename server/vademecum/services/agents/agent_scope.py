"""Resolve the scope of an agent's request: one project, or all projects if the request selects them."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from vademecum.errors import BadRequest
from vademecum.model.memory.scope import Everything, InProject, MemoryScope
from vademecum.model.records.store_interface import UserStore
from vademecum.services.memory.scope import ProjectSelector, find_project_by_name
from vademecum.services.sync import row_operations


class NamedProject(msgspec.Struct, frozen=True):
    id: str
    name: str


class AgentScope(msgspec.Struct, frozen=True):
    """The scope of an answer: a project, or null for all projects."""

    project: NamedProject | None


class ResolvedScope(NamedTuple):
    """The scope of a read, and its representation in the response."""

    memory_scope: MemoryScope
    agent_scope: AgentScope


_named_project = msgspec.json.Decoder(NamedProject)


async def resolve_agent_scope(store: UserStore, project: ProjectSelector) -> ResolvedScope:
    """Resolve the id or name of a project; None or `*` means all projects.

    Raises BadRequest if no project is given, NotFound for an unknown project, and Conflict if several projects have the
    name.
    """
    if project is msgspec.UNSET:
        raise BadRequest("Name the project: `project` is its id or name, or `*` for all projects.")
    if project is None or project == "*":
        return ResolvedScope(Everything(), AgentScope(None))
    project_id = await find_project_by_name(store, str(project))
    return ResolvedScope(InProject(project_id), AgentScope(await read_named_project(store, project_id)))


async def read_named_project(store: UserStore, project_id: str) -> NamedProject:
    """Return the id and name of a project. Raises NotFound for a missing project."""
    return _named_project.decode(await row_operations.read(store, "projects", project_id))
