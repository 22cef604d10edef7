"""Observations: what a coding agent did, from an event to a row. What repeats is one row with a count.

An event is what an agent's hook has written; its id is its identity, so that it counts once however often it is sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from vademecum.model.agents.project_identity import is_name
from vademecum.model.schema.collections import (
    Count,
    Id,
    Json,
    MachineId,
    Name,
    ObservationKind,
    Path,
    RootSource,
    Time,
)
from vademecum.model.schema.timestamps import age_days

EVENTS_MAX = 500  # of one request
CONTENT_MAX = 8000
KEPT_DAYS: dict[ObservationKind, float] = {
    "search": 30, "read": 60, "session": 90, "command": 180, "prompt": 180, "write": 365, "edit": 365, "error": 365,
}  # fmt: skip


class Identity(msgspec.Struct, frozen=True):
    """What a folder says it is: the name of its project, where its root is, and what said so; `machine`: a mark of where
    that was seen."""

    name: Name
    root: Path
    source: RootSource
    machine: MachineId | UnsetType = UNSET

    def __post_init__(self) -> None:
        if not is_name(self.name):
            raise ValueError("a project's name is 1 to 100 characters that can be seen, and not `*`")


class Event(msgspec.Struct, frozen=True, rename="camel"):
    """One line of an agent's work, as it lies in the spool. `at`: when; `redactions`: secrets hidden in it by then."""

    v: Literal[1]
    id: Id
    at: Time
    project: Identity
    session: Name
    kind: ObservationKind
    content: Annotated[str, Meta(max_length=CONTENT_MAX)]
    path: Path | None = None
    tool: Name | None = None
    redactions: Count = 0


def fold(row: Json | None, event: Event, row_id: str, project_id: str) -> Json:
    """The row with this event in it; `row`: what it was by now, if it was seen before."""
    if row is None:
        return {
            "id": row_id,
            "createdAt": event.at,
            "updatedAt": event.at,
            "_deleted": False,
            "projectId": project_id,
            "agentSession": event.session,
            "kind": event.kind,
            **_said(event),
            "count": 1,
            "pinned": False,
            "redactions": event.redactions,
        }
    newest = _said(event) if event.at >= row["updatedAt"] else {}
    return {
        **row,
        **newest,
        "createdAt": min(row["createdAt"], event.at),
        "updatedAt": max(row["updatedAt"], event.at),
        "count": row["count"] + 1,
        "redactions": row["redactions"] + event.redactions,
    }


def _said(event: Event) -> Json:
    optional = {"path": event.path, "tool": event.tool}
    return {"content": event.content} | {name: value for name, value in optional.items() if value}


def joined(row: Json, other: Json) -> Json:
    """Two rows that say the same of one session, as one: what was said last, all the times it was."""
    newest = max(row, other, key=lambda one: one["updatedAt"])
    return {
        **newest,
        "id": row["id"],
        "projectId": row["projectId"],
        "createdAt": min(row["createdAt"], other["createdAt"]),
        "count": row["count"] + other["count"],
        "redactions": row["redactions"] + other["redactions"],
        "pinned": row["pinned"] or other["pinned"],
    }


def days_before(now: str, days: float) -> str:
    """A time as rows have it."""
    then = datetime.fromisoformat(now) - timedelta(days=days)
    return then.strftime("%Y-%m-%dT%H:%M:%S.000Z")


def expired(row: Json, now: str, kept_days: Mapping[ObservationKind, float]) -> bool:
    """Is its time over? Of a kind without a time, as decisions are, it never is, nor of what is pinned."""
    days = kept_days.get(row["kind"])
    return days is not None and not row["pinned"] and age_days(row["updatedAt"], now) > days
