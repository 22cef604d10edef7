"""Merge: one project becomes a part of another, in one transaction, because its owner asks for it."""

from __future__ import annotations

import sys

import msgspec

from vademecum.errors import BadRequest, LimitReached
from vademecum.model.agents.observations import joined
from vademecum.model.memory.scope import PROJECTS, InProject
from vademecum.model.schema import derived_ids
from vademecum.model.schema.derived_ids import joined_notes, normal_name
from vademecum.model.schema.timestamps import later
from vademecum.model.sync import cascade
from vademecum.model.sync.quotas import Limits, outgrown
from vademecum.model.sync.transaction import Draft
from vademecum.services.agents import ingest
from vademecum.services.memory import entities, relationships
from vademecum.services.memory.scope import is_within
from vademecum.services.sync import write_row

MOVED = ("sessions", "memories", "summaries", "roots", "merged")


def merge(draft: Draft, project_id: str, into: str, limits: Limits) -> int:
    """All that is in the project is in the other, and the project is gone. Returns how many rows went over. Raises
    NotFound for either, BadRequest for one and the same, LimitReached if more is stored in the end than may be."""
    for each in (project_id, into):
        write_row.require_live_row(draft, "projects", each)
    if project_id == into:
        raise BadRequest("A project cannot become a part of itself. Nothing was changed.")
    # What is moved is here twice for a while; what counts is what stays.
    before, roomy = draft.usage.bytes, msgspec.structs.replace(limits, storage_bytes=sys.maxsize)
    inside = [key for key in draft.dependents(PROJECTS + project_id) if draft.life(key) == "live"]
    draft.prefetch(inside)
    moved = [key for key in inside if key.partition("/")[0] in MOVED]
    for key in moved:
        collection, _, row_id = key.partition("/")
        fields = {"projectId": into, "updatedAt": _a_moment_later(draft.row(key)["updatedAt"])}
        write_row.change_keeping_updated_at(draft, collection, row_id, fields, roomy)
    done = [key for key in inside if key.startswith(f"{ingest.OBSERVATIONS}/")]
    for key in done:
        _move_observation(draft, key, into, roomy)
    known = [key for key in inside if key.startswith("entities/")]
    _move_entities(draft, known, into, roomy)
    cascade.kill(draft, PROJECTS + project_id)
    no = outgrown(before, draft.usage.bytes, limits)
    if no is not None:
        raise LimitReached(
            no.message.replace("This stays on this device", "Nothing was changed"), code=no.code
        )
    write_row.add(draft, "merged", {"projectId": into}, roomy, project_id)  # less than the project was
    return len(moved) + len(done) + len(known)


def _a_moment_later(time: str) -> str:
    """What is old does not become fresh; but of two devices, the one that knows of the merge knows more."""
    try:
        return later(time, 0.001)
    except (OverflowError, ValueError):  # the last moment there is, or one of an older row that never was
        return time


def _move_observation(draft: Draft, key: str, into: str, limits: Limits) -> None:
    """Its id says its project, so it is another row there, or a part of one."""
    row = draft.row(key)
    told_by = derived_ids.told_by(row.get("path"), row["content"])
    row_id = derived_ids.observation_id(draft.id_key, into, row["agentSession"], row["kind"], told_by)
    there = ingest.key_of(row_id)
    before = draft.row(there) if draft.life(there) == "live" else None
    cascade.kill(draft, key)
    moved = {**row, "id": row_id, "projectId": into}
    ingest.put(draft, before, joined(moved, before) if before is not None else moved, limits)


def _move_entities(draft: Draft, keys: list[str], into: str, limits: Limits) -> None:
    """An entity's project is frozen: it is made anew there, or is the one that is there already."""
    edges = {edge for key in keys for edge in draft.dependents(key) if draft.life(edge) == "live"}
    ends = {edge: draft.row(edge) for edge in sorted(edges)}
    became: dict[str, str] = {}
    for key in keys:
        row = draft.row(key)
        there = f"entities/{derived_ids.entity_id(into, row['type'], row['name'])}"
        known = draft.row(there).get("notes") if draft.life(there) == "live" else None
        fields = {**row, "notes": joined_notes(known, row.get("notes"))}
        if normal_name(row["name"]):
            became[row["id"]] = entities.upsert(draft, InProject(into), fields, limits)[0]["id"]
    for row in ends.values():
        from_id, to_id = (str(became.get(row[end], row[end])) for end in ("fromId", "toId"))
        if normal_name(row["label"]) and _are_in(draft, into, from_id, to_id):
            edge = relationships.Edge(from_id, to_id, row["label"])
            relationships.connect(draft, InProject(into), edge, limits)


def _are_in(draft: Draft, project_id: str, *entity_ids: str) -> bool:
    heads = [draft.head(f"entities/{entity_id}") for entity_id in entity_ids]
    return all(is_within(InProject(project_id), head) for head in heads)
