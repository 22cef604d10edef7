"""Read and write relationships, which are labeled edges between two entities of one project."""

from __future__ import annotations

import msgspec

from vademecum.errors import BadRequest, no_such
from vademecum.model.memory.scope import MemoryScope
from vademecum.model.records.store_interface import UserStore
from vademecum.model.schema.collections import Id, Json, Name
from vademecum.model.schema.derived_ids import normalize_name, relationship_id
from vademecum.model.sync import cascade
from vademecum.model.sync.quotas import Limits
from vademecum.model.sync.transaction import Transaction
from vademecum.services.memory import entities
from vademecum.services.memory.scope import is_within, locate_row
from vademecum.services.sync import row_operations
from vademecum.services.sync.batches import list_live_children
from vademecum.services.sync.pagination import Page, PageRequest, list_newest


class Edge(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    from_id: Id
    to_id: Id
    label: Name


def connect(tx: Transaction, scope: MemoryScope, edge: Edge, limits: Limits) -> tuple[Json, bool]:
    """Add a relationship unless it exists. Return its row, and whether it is new.

    Raises NotFound for an entity outside the scope, and BadRequest for entities of different projects, because the
    relationship would disclose one project in the other.
    """
    if not normalize_name(edge.label):
        raise BadRequest("A relationship needs a label. Nothing was changed.")
    _check_within(tx, scope, edge)
    from_location, to_location = (locate_row(end, tx.head) for end in _ends(edge))
    if from_location != to_location:
        raise BadRequest(
            "The two entities are in different projects and cannot be connected. Nothing was changed."
        )
    existing = _find_edges(tx, edge)
    if existing:
        return tx.row(existing[0]), False
    row_id = relationship_id(edge.from_id, edge.to_id, edge.label)
    return row_operations.add(tx, "relationships", msgspec.to_builtins(edge), limits, row_id), True


def disconnect(tx: Transaction, scope: MemoryScope, edge: Edge) -> None:
    """Delete a relationship. Raises NotFound, also if one of the entities is outside the scope."""
    _check_within(tx, scope, edge)
    existing = _find_edges(tx, edge)
    if not existing:
        raise no_such("relationships")
    cascade.delete_with_dependents(tx, *existing)


async def outbound(store: UserStore, scope: MemoryScope, entity_id: str, page_request: PageRequest) -> Page:
    """Return the edges from an entity to entities within the scope. Raises NotFound for an entity outside the scope."""
    entities.check_within(store, scope, entity_id)
    heads = store.row_index.rows
    start = f"entities/{entity_id}"
    keys = [
        key
        for key in list_live_children(store, start, "relationships")
        if heads[key].parents[0] == start and is_within(scope, heads.get(heads[key].parents[1]))
    ]
    return await list_newest(store, keys, page_request)


def _check_within(tx: Transaction, scope: MemoryScope, edge: Edge) -> None:
    """Raise NotFound if an entity of the edge is outside the scope."""
    row_operations.check_within(tx, scope, "entities", edge.from_id)
    row_operations.check_within(tx, scope, "entities", edge.to_id)


def _ends(edge: Edge) -> tuple[str, str]:
    return f"entities/{edge.from_id}", f"entities/{edge.to_id}"


def _find_edges(tx: Transaction, edge: Edge) -> list[str]:
    """Return the keys of the live rows of this edge. Rows that devices pushed may not have the derived id."""
    ends = _ends(edge)
    dependents = [key for key in tx.dependents(ends[0]) if key.startswith("relationships/")]
    between = [key for key in dependents if (head := tx.head(key)) and head.parents == ends]
    live = [key for key in between if tx.row_state(key) == "live"]
    tx.prefetch(live)
    return [key for key in live if tx.row(key)["label"] == edge.label]
