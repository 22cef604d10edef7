"""What of a user's memory may be seen: the scope of a question, of a write, of a job.

A session in no project sees the pool: all sessions that are in none. One in a project sees that project alone. There is
no default and no way to leave a scope out: whatever reads or writes memory takes a `MemoryScope`, and whatever answers
names the one it used. A session that moves takes its episodes along; what was extracted keeps its project.
"""

from __future__ import annotations

from typing import assert_never

import msgspec

PROJECTS = "projects/"
SESSIONS = "sessions/"


class Pool(msgspec.Struct, frozen=True, tag="pool", tag_field="kind"):
    """Sessions that are in no project, together. Entities always belong to a project, so it has none."""


class InProject(msgspec.Struct, frozen=True, tag="project", tag_field="kind", rename="camel"):
    project_id: str


class Everything(msgspec.Struct, frozen=True, tag="all", tag_field="kind"):
    """All of the user's projects and the pool: only if it was asked for by name."""


MemoryScope = Pool | InProject | Everything
MemoryPartition = Pool | InProject  # where a row can be


def home(project_id: str | None) -> MemoryPartition:
    """The scope of a session, memory or summary in this project, or in none."""
    return InProject(project_id) if project_id else Pool()


def sees(scope: MemoryScope, project_id: str | None) -> bool:
    """Whether a row that is in this project, or in none, is within the scope. An episode is where its session is now."""
    match scope:
        case Everything():
            return True
        case Pool():
            return project_id is None
        case InProject(project_id=own):
            return project_id == own
        case _:
            assert_never(scope)
