"""Define memory scopes: the part of a user's memory that a question, a write or a job may see.

A session without a project sees the pool, which is all sessions without a project. A session in a project sees only
that project. Every function that reads or writes memory takes a `MemoryScope` without a default, and every response
names the scope that it used. When a session changes project, its episodes move with it, but extracted rows stay.
"""

from __future__ import annotations

from typing import assert_never

import msgspec

PROJECTS = "projects/"
SESSIONS = "sessions/"


class Pool(msgspec.Struct, frozen=True, tag="pool", tag_field="kind"):
    """All sessions without a project. The pool has no entities, because an entity always belongs to a project."""


class InProject(msgspec.Struct, frozen=True, tag="project", tag_field="kind", rename="camel"):
    """The memory of one project."""

    project_id: str


class Everything(msgspec.Struct, frozen=True, tag="all", tag_field="kind"):
    """All projects of the user and the pool. Used only if the caller requests it explicitly."""


MemoryScope = Pool | InProject | Everything
MemoryPartition = Pool | InProject  # the scopes that a row can belong to


def partition_of(project_id: str | None) -> MemoryPartition:
    """Return the scope of a session, memory or summary with this project, or without a project."""
    return InProject(project_id) if project_id else Pool()


def sees(scope: MemoryScope, project_id: str | None) -> bool:
    """Return whether a row of this project, or of no project, is in the scope. An episode has its session's project."""
    match scope:
        case Everything():
            return True
        case Pool():
            return project_id is None
        case InProject(project_id=own):
            return project_id == own
        case _:
            assert_never(scope)
