"""Where agents work: how much they did in each project and in each of their sessions, and when last, within a scope."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import msgspec

from vademecum.engines.duckdb.user_store import UserStore
from vademecum.model.memory.scope import PROJECTS, MemoryScope, sees
from vademecum.services.agents import project_claims
from vademecum.services.agents.agent_scope import NamedProject
from vademecum.services.memory.scope import find_project_id, list_scoped_keys
from vademecum.services.sync.batches import list_live_keys
from vademecum.services.sync.pagination import ListEntry, read_list_entries

_named = msgspec.json.Decoder(NamedProject)


class Work(msgspec.Struct, frozen=True):
    """How many observations, and from when to when they are."""

    observations: int
    first_at: str
    last_at: str


class ProjectWork(msgspec.Struct, frozen=True, rename="camel"):
    """`notice`: a sentence for the person, when another folder or project is called the same."""

    project: NamedProject
    observations: int
    last_at: str | None
    notice: str | None


class SessionWork(msgspec.Struct, frozen=True, rename="camel"):
    agent_session: str
    observations: int
    first_at: str
    last_at: str


async def in_projects(store: UserStore, scope: MemoryScope) -> list[ProjectWork]:
    """Every project of the scope, also those without an agent; where work was done last comes first."""
    keys = await list_live_keys(store, "projects")
    bodies = await store.read_bodies([key for key in keys if sees(scope, key.removeprefix(PROJECTS))])
    heads = store.row_index.rows
    done = await _work(
        store, scope, lambda key, card: find_project_id(heads[key].parents) if key in heads else None
    )
    notices = await project_claims.notices(store)
    found = []
    for project in map(_named.decode, bodies.values()):
        work = done.get(project.id)
        count, last_at = (work.observations, work.last_at) if work else (0, None)
        found.append(ProjectWork(project, count, last_at, notices.get(project.id)))
    return sorted(found, key=lambda one: (one.last_at or "", one.project.id), reverse=True)


async def in_sessions(store: UserStore, scope: MemoryScope) -> list[SessionWork]:
    """The sessions of agents, the one that was last at work first."""
    done = await _work(store, scope, lambda _, card: card.agent_session)
    found = [SessionWork(name, work.observations, work.first_at, work.last_at) for name, work in done.items()]
    return sorted(found, key=lambda one: (one.last_at, one.agent_session), reverse=True)


async def _work(
    store: UserStore, scope: MemoryScope, part: Callable[[str, ListEntry], str | None]
) -> Mapping[str, Work]:
    """What was done in the scope, by what `part` says of an observation's key and card; None leaves it out."""
    cards = await read_list_entries(store, await list_scoped_keys(store, scope, "observations"))
    return await asyncio.to_thread(_summed, [(part(key, card), card) for key, card in cards.items()])


def _summed(cards: list[tuple[str | None, ListEntry]]) -> Mapping[str, Work]:
    done: dict[str, Work] = {}
    for name, card in cards:
        if name is None:
            continue
        before = done.get(name, Work(0, card.created_at, card.updated_at))
        done[name] = Work(
            before.observations + 1,
            min(before.first_at, card.created_at),
            max(before.last_at, card.updated_at),
        )
    return done
