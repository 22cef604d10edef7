"""Read and write entities, the subjects of conversations.

An entity belongs to the project in which it was found and is visible only there. Reading it by its id requires a scope
that contains the project.
"""

from __future__ import annotations

from vademecum.errors import BadRequest, no_such
from vademecum.model.memory.scope import InProject, MemoryScope
from vademecum.model.records.store_interface import UserStore
from vademecum.model.schema.collections import Json
from vademecum.model.schema.derived_ids import entity_id, normalize_name
from vademecum.model.sync.quotas import Limits
from vademecum.model.sync.transaction import Transaction
from vademecum.services.memory.scope import is_within, list_scoped_keys
from vademecum.services.sync import row_operations
from vademecum.services.sync.pagination import Page, PageRequest, list_newest


def upsert(tx: Transaction, project: InProject, fields: Json, limits: Limits) -> tuple[Json, bool]:
    """Return the project's entity of this `type` and `name`, and whether it is new.

    An existing entity keeps its spelling and, unless `fields` has new notes, its `notes`. Raises NotFound for a missing
    project, and BadRequest for an empty name.
    """
    if not normalize_name(fields["name"]):
        raise BadRequest("An entity needs a name. Nothing was changed.")
    row_id = entity_id(project.project_id, fields["type"], fields["name"])
    notes = {"notes": fields["notes"]} if (fields.get("notes") or "").strip() else {}
    if tx.row_state(f"entities/{row_id}") == "live":
        return row_operations.change(tx, "entities", row_id, notes, limits), False
    new = {"name": fields["name"], "type": fields["type"], "projectId": project.project_id, **notes}
    return row_operations.add(tx, "entities", new, limits, row_id), True


async def list_by_type(store: UserStore, scope: MemoryScope, kind: str, page_request: PageRequest) -> Page:
    keys = await list_scoped_keys(store, scope, "entities")
    return await list_newest(store, keys, page_request, lambda entry: entry.type == kind)


async def read(store: UserStore, scope: MemoryScope, entity_id: str) -> bytes:
    """Return the stored entity. Raises NotFound for a missing entity or one outside the scope."""
    check_within(store, scope, entity_id)
    return await row_operations.read(store, "entities", entity_id)


def check_within(store: UserStore, scope: MemoryScope, entity_id: str) -> None:
    """Raise NotFound if the entity is missing or outside the scope."""
    if not is_within(scope, store.row_index.rows.get(f"entities/{entity_id}")):
        raise no_such("entities")
