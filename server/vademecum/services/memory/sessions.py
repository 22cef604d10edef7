"""Read and write sessions by `externalId`, an id that another program chose.

The id is unique among a user's sessions.
"""

from __future__ import annotations

from vademecum.errors import no_such
from vademecum.model.records.store_interface import UserStore
from vademecum.model.schema.collections import Json
from vademecum.model.sync.quotas import Limits
from vademecum.model.sync.transaction import Transaction
from vademecum.services.sync import row_operations
from vademecum.services.sync.batches import list_live_keys
from vademecum.services.sync.pagination import Page, PageRequest, list_newest


def create(tx: Transaction, fields: Json, limits: Limits) -> Json:
    """Create a session that searches chosen documents only, because its client may not show a scope to the user.

    Raises Duplicate for an external id in use, NotFound for a missing project.
    """
    defaults = {"mode": "analysis", "documentScope": "chosen", "memory": "on"}
    return row_operations.add(tx, "sessions", {**fields, **defaults}, limits)


def change(tx: Transaction, external_id: str, fields: Json, limits: Limits) -> Json:
    """Set fields of a session. A `projectId` of None removes the session from its project.

    Raises NotFound for a missing session or project.
    """
    return row_operations.change(tx, "sessions", _find_id(tx, external_id), fields, limits)


def delete(tx: Transaction, external_id: str) -> None:
    """Delete the session with its dependents. Raises NotFound for a missing session."""
    row_operations.delete_unscoped(tx, "sessions", _find_id(tx, external_id))


async def read(store: UserStore, external_id: str) -> bytes:
    """Return the stored session. Raises NotFound for a missing session."""
    return await row_operations.read(
        store, "sessions", _require_id(store.row_index.links.unique_owners.get(f"sessions/{external_id}"))
    )


async def list_sessions(store: UserStore, page_request: PageRequest) -> Page:
    return await list_newest(store, await list_live_keys(store, "sessions"), page_request)


def _find_id(tx: Transaction, external_id: str) -> str:
    return _require_id(tx.find_unique("sessions", external_id))


def _require_id(key: str | None) -> str:
    if key is None:
        raise no_such("sessions")
    return key.partition("/")[2]
