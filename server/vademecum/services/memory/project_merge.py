"""Merge one project into another in one transaction, at the request of the user."""

from __future__ import annotations

import sys

import msgspec

from vademecum.errors import BadRequest, LimitReached
from vademecum.model.agents.observations import merge_rows
from vademecum.model.memory.scope import PROJECTS, InProject
from vademecum.model.schema import derived_ids
from vademecum.model.schema.derived_ids import join_notes, normalize_name
from vademecum.model.schema.timestamps import later
from vademecum.model.sync import cascade
from vademecum.model.sync.quotas import Limits, check_storage_quota
from vademecum.model.sync.transaction import Transaction
from vademecum.services.agents import ingest
from vademecum.services.memory import entities, relationships
from vademecum.services.memory.scope import is_within
from vademecum.services.sync import row_operations

MOVED = ("sessions", "memories", "summaries", "roots", "merged")


def merge(tx: Transaction, project_id: str, into: str, limits: Limits) -> int:
    """Move all rows of a project into the project `into`, and delete the old project. Return the number of moved rows.

    Raises NotFound for a missing project, BadRequest for merging a project into itself, and LimitReached if the result
    exceeds the storage quota.
    """
    for each in (project_id, into):
        row_operations.require_live_row(tx, "projects", each)
    if project_id == into:
        raise BadRequest("A project cannot be merged into itself. Nothing was changed.")
    # Moved rows exist twice during the transaction, so the storage quota is checked only at the end.
    before, roomy = tx.totals.usage.bytes, msgspec.structs.replace(limits, storage_bytes=sys.maxsize)
    inside = [key for key in tx.dependents(PROJECTS + project_id) if tx.row_state(key) == "live"]
    tx.prefetch(inside)
    moved = [key for key in inside if key.partition("/")[0] in MOVED]
    for key in moved:
        collection, _, row_id = key.partition("/")
        fields = {"projectId": into, "updatedAt": _a_moment_later(tx.row(key)["updatedAt"])}
        row_operations.change_keeping_updated_at(tx, collection, row_id, fields, roomy)
    done = [key for key in inside if key.startswith(f"{ingest.OBSERVATIONS}/")]
    for key in done:
        _move_observation(tx, key, into, roomy)
    known = [key for key in inside if key.startswith("entities/")]
    _move_entities(tx, known, into, roomy)
    cascade.delete_with_dependents(tx, PROJECTS + project_id)
    exceeded = check_storage_quota(before, tx.totals.usage.bytes, limits)
    if exceeded is not None:
        raise LimitReached(exceeded.message("Nothing was changed."), code=exceeded.code)
    # No quota check is needed, because this row is smaller than the deleted row of the project.
    row_operations.add(tx, "merged", {"projectId": into}, roomy, project_id)
    return len(moved) + len(done) + len(known)


def _a_moment_later(time: str) -> str:
    """Return the timestamp one millisecond later.

    A moved row must be newer than the version that a device still has, but it must not gain recency.
    """
    try:
        return later(time, 0.001)
    except (OverflowError, ValueError):  # it is the maximum, or invalid in a row from an earlier version
        return time


def _move_observation(tx: Transaction, key: str, into: str, limits: Limits) -> None:
    """Move an observation to the project `into`. Its id depends on the project, so it gets a new id.

    If the project `into` already has this observation, the two are merged.
    """
    row = tx.row(key)
    content_key = derived_ids.dedup_key(row.get("path"), row["content"])
    row_id = derived_ids.observation_id(tx.meta.id_key, into, row["agentSession"], row["kind"], content_key)
    target_key = ingest.observation_key(row_id)
    before = tx.row(target_key) if tx.row_state(target_key) == "live" else None
    cascade.delete_with_dependents(tx, key)
    moved = {**row, "id": row_id, "projectId": into}
    merged = merge_rows(moved, before) if before is not None else moved
    ingest.put_observation(tx, before, merged, limits)


def _move_entities(tx: Transaction, keys: list[str], into: str, limits: Limits) -> None:
    """Recreate entities and relationships in the project `into`, because `projectId` of an entity is a frozen field."""
    edges = {edge for key in keys for edge in tx.dependents(key) if tx.row_state(edge) == "live"}
    ends = {edge: tx.row(edge) for edge in sorted(edges)}
    became: dict[str, str] = {}
    for key in keys:
        row = tx.row(key)
        target_key = f"entities/{derived_ids.entity_id(into, row['type'], row['name'])}"
        known = tx.row(target_key).get("notes") if tx.row_state(target_key) == "live" else None
        fields = {**row, "notes": join_notes(known, row.get("notes"))}
        if normalize_name(row["name"]):
            became[row["id"]] = entities.upsert(tx, InProject(into), fields, limits)[0]["id"]
    for row in ends.values():
        from_id, to_id = (str(became.get(row[end], row[end])) for end in ("fromId", "toId"))
        if normalize_name(row["label"]) and _are_in(tx, into, from_id, to_id):
            edge = relationships.Edge(from_id, to_id, row["label"])
            relationships.connect(tx, InProject(into), edge, limits)


def _are_in(tx: Transaction, project_id: str, *entity_ids: str) -> bool:
    heads = [tx.head(f"entities/{entity_id}") for entity_id in entity_ids]
    return all(is_within(InProject(project_id), head) for head in heads)
