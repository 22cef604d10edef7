"""Turn events of coding agents into observations. A repeated event becomes one row with a count.

An agent's hook writes the events. Each event has an id, so an event that is sent again is not counted twice.
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

EVENTS_MAX = 500  # maximum number of events in one request
CONTENT_MAX = 8000
KEPT_DAYS: dict[ObservationKind, float] = {
    "search": 30, "read": 60, "session": 90, "command": 180, "prompt": 180, "write": 365, "edit": 365, "error": 365,
}  # fmt: skip


class Identity(msgspec.Struct, frozen=True):
    """The project name and root of a folder, as a client reports them.

    `source`: where the name comes from. `machine`: the id of the client's machine.
    """

    name: Name
    root: Path
    source: RootSource
    machine: MachineId | UnsetType = UNSET

    def __post_init__(self) -> None:
        if not is_name(self.name):
            raise ValueError("a project name has 1 to 100 visible characters and is not `*`")


class Event(msgspec.Struct, frozen=True, rename="camel"):
    """One step of an agent, as stored in the spool. `redactions`: the number of secrets already hidden in it."""

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


def add_event(row: Json | None, event: Event, row_id: str, project_id: str) -> Json:
    """Return the row with the event added, or a new row if `row` is None."""
    if row is None:
        return {
            "id": row_id,
            "createdAt": event.at,
            "updatedAt": event.at,
            "_deleted": False,
            "projectId": project_id,
            "agentSession": event.session,
            "kind": event.kind,
            **_content_fields(event),
            "count": 1,
            "pinned": False,
            "redactions": event.redactions,
        }
    newest = _content_fields(event) if event.at >= row["updatedAt"] else {}
    return {
        **row,
        **newest,
        "createdAt": min(row["createdAt"], event.at),
        "updatedAt": max(row["updatedAt"], event.at),
        "count": row["count"] + 1,
        "redactions": row["redactions"] + event.redactions,
    }


def _content_fields(event: Event) -> Json:
    optional = {"path": event.path, "tool": event.tool}
    return {"content": event.content} | {name: value for name, value in optional.items() if value}


def merge_rows(row: Json, other: Json) -> Json:
    """Merge two rows about the same step into one row, with the newest content and the sum of the counts."""
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
    """Return the time that is `days` days before `now`, in the format of rows."""
    time = datetime.fromisoformat(now) - timedelta(days=days)
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z")


def is_expired(row: Json, now: str, kept_days: Mapping[ObservationKind, float]) -> bool:
    """Return whether a row's retention period has ended. Pinned rows and kinds without a period never expire."""
    days = kept_days.get(row["kind"])
    return days is not None and not row["pinned"] and age_days(row["updatedAt"], now) > days
