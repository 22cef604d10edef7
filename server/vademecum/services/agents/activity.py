"""Count the observations of each project and of each agent session within a scope, with their first and last times."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import msgspec

from vademecum.model.memory.scope import PROJECTS, MemoryScope, sees
from vademecum.model.records.store_interface import UserStore
from vademecum.services.agents import project_claims
from vademecum.services.agents.agent_scope import NamedProject
from vademecum.services.memory.scope import find_project_id, list_scoped_keys
from vademecum.services.sync.batches import list_live_keys
from vademecum.services.sync.pagination import ListEntry, read_list_entries

_named_project = msgspec.json.Decoder(NamedProject)


class Activity(msgspec.Struct, frozen=True):
    observations: int
    first_at: str
    last_at: str


class ProjectActivity(msgspec.Struct, frozen=True, rename="camel"):
    """The activity in a project. `notice`: a sentence for the user if another folder or project has the same name."""

    project: NamedProject
    observations: int
    last_at: str | None
    notice: str | None


class SessionActivity(msgspec.Struct, frozen=True, rename="camel"):
    agent_session: str
    observations: int
    first_at: str
    last_at: str


async def list_project_activity(store: UserStore, scope: MemoryScope) -> list[ProjectActivity]:
    """Return all projects of the scope with the latest activity first, including projects without observations."""
    keys = await list_live_keys(store, "projects")
    bodies = await store.read_bodies([key for key in keys if sees(scope, key.removeprefix(PROJECTS))])
    heads = store.row_index.rows
    activities = await _count_by(
        store, scope, lambda key, _: find_project_id(heads[key].parents) if key in heads else None
    )
    notices = await project_claims.build_notices(store)
    result = []
    for project in map(_named_project.decode, bodies.values()):
        activity = activities.get(project.id)
        count, last_at = (activity.observations, activity.last_at) if activity else (0, None)
        result.append(ProjectActivity(project, count, last_at, notices.get(project.id)))
    return sorted(result, key=lambda one: (one.last_at or "", one.project.id), reverse=True)


async def list_session_activity(store: UserStore, scope: MemoryScope) -> list[SessionActivity]:
    """Return the agent sessions of the scope with the latest activity first."""
    activities = await _count_by(store, scope, lambda _, entry: entry.agent_session)
    result = [
        SessionActivity(name, one.observations, one.first_at, one.last_at) for name, one in activities.items()
    ]
    return sorted(result, key=lambda one: (one.last_at, one.agent_session), reverse=True)


async def _count_by(
    store: UserStore, scope: MemoryScope, group_of: Callable[[str, ListEntry], str | None]
) -> Mapping[str, Activity]:
    """Count observations by the group that `group_of(key, entry)` returns. Omit observations with the group None."""
    entries = await read_list_entries(store, await list_scoped_keys(store, scope, "observations"))
    return await asyncio.to_thread(_count, [(group_of(key, entry), entry) for key, entry in entries.items()])


def _count(entries: list[tuple[str | None, ListEntry]]) -> Mapping[str, Activity]:
    activities: dict[str, Activity] = {}
    for group, entry in entries:
        if group is None:
            continue
        before = activities.get(group, Activity(0, entry.created_at, entry.updated_at))
        activities[group] = Activity(
            before.observations + 1,
            min(before.first_at, entry.created_at),
            max(before.last_at, entry.updated_at),
        )
    return activities
