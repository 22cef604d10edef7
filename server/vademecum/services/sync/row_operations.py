"""Write single rows for routes, under the rules of a push: schema, limits, uniqueness and cascades.

One rule is stricter: a row that a route writes must refer to existing rows. A device, in contrast, may push a row
before the rows to which it refers, because its collections sync in parallel.
"""

from __future__ import annotations

import msgspec

from vademecum.errors import (
    BadRequest,
    Duplicate,
    LimitReached,
    TierTooLow,
    TooLarge,
    VademecumError,
    no_such,
)
from vademecum.model.memory.scope import MemoryScope, sees
from vademecum.model.records.store_interface import UserStore
from vademecum.model.schema.collections import Collection, Json, links
from vademecum.model.sync import cascade
from vademecum.model.sync.quotas import Limits
from vademecum.model.sync.transaction import Transaction
from vademecum.services.memory.scope import locate_row
from vademecum.services.runtime.ids import new_id
from vademecum.services.sync.push_decoding import IncomingRow, find_problem
from vademecum.services.sync.row_writer import Rejected, RowWriter

_ERRORS: dict[str, type[VademecumError]] = {
    "INVALID": BadRequest,
    "DUPLICATE": Duplicate,
    "TIER": TierTooLow,
    "TOO_LARGE": TooLarge,
    "STORAGE_LIMIT": LimitReached,
    "DOCUMENT_LIMIT": LimitReached,
}


async def read(store: UserStore, collection: str, row_id: str) -> bytes:
    """Return the stored row. Raises NotFound for a row that is not live."""
    key = f"{collection}/{row_id}"
    body = (await store.read_bodies([key])).get(key)
    if body is None or not store.is_live(key):
        raise no_such(collection)
    return body


def check_live(store: UserStore, collection: str, row_id: str) -> None:
    """Raise NotFound if the row is not live."""
    if not store.is_live(f"{collection}/{row_id}"):
        raise no_such(collection)


def require_live_key(tx: Transaction, collection: str, row_id: str) -> str:
    """Return the key of a row. Raises NotFound if the row is not live."""
    key = f"{collection}/{row_id}"
    if tx.row_state(key) != "live":
        raise no_such(collection)
    return key


def require_live_row(tx: Transaction, collection: str, row_id: str) -> Json:
    """Return a row within a transaction. Raises NotFound if the row is not live."""
    return tx.row(require_live_key(tx, collection, row_id))


def delete_unscoped(tx: Transaction, collection: str, row_id: str) -> None:
    """Delete a row, without checking a scope, and its dependents. Raises NotFound if the row is not live."""
    cascade.delete_with_dependents(tx, require_live_key(tx, collection, row_id))


def check_within(tx: Transaction, scope: MemoryScope, collection: str, row_id: str) -> None:
    """Check that a turn, summary, entity, memory or observation is within the scope.

    Raises NotFound for a missing row or one outside the scope.
    """
    location = locate_row(f"{collection}/{row_id}", tx.head)
    if location is None or not sees(scope, location.project_id):
        raise no_such(collection)


def delete(tx: Transaction, scope: MemoryScope, collection: str, row_id: str) -> None:
    """Delete a row within the scope, with its dependents. Raises NotFound, as `check_within` does."""
    check_within(tx, scope, collection, row_id)
    cascade.delete_with_dependents(tx, f"{collection}/{row_id}")


def add(tx: Transaction, collection: str, fields: Json, limits: Limits, row_id: str | None = None) -> Json:
    """Add a row, omitting fields that are None.

    If `row_id` is the id of a deleted row, the row is revived. Unlike a stale device, the caller intends the revival.
    """
    row_id = row_id or new_id()
    key = f"{collection}/{row_id}"
    before = tx.row(key) if tx.head(key) is not None else None
    # The time must not be before the last "forget everything", even if the clock was set back.
    now = max(tx.now, tx.meta.forgotten_at)
    row = {"id": row_id, "createdAt": now, "updatedAt": now, "_deleted": False, **_given(fields)}
    return _write(tx, tx.collections[collection], row, before, limits)


def change(tx: Transaction, collection: str, row_id: str, fields: Json, limits: Limits) -> Json:
    """Set the fields of a row and return the row. None removes a field, and an unchanged row is not written.

    Raises NotFound if the row is not live.
    """
    before = require_live_row(tx, collection, row_id)
    after = _changed(before, fields)
    if after == before:
        return before
    after["updatedAt"] = max(tx.now, before["updatedAt"])
    return _write(tx, tx.collections[collection], after, before, limits)


def change_keeping_updated_at(
    tx: Transaction, collection: str, row_id: str, fields: Json, limits: Limits
) -> Json:
    """Set fields as `change` does, but keep `updatedAt`, so that a row that the user did not edit gains no recency."""
    before = require_live_row(tx, collection, row_id)
    return _write(tx, tx.collections[collection], _changed(before, fields), before, limits)


def put(tx: Transaction, collection: str, row: Json, limits: Limits) -> Json:
    """Store a complete row, replacing a stored version. The rows to which it refers may be missing."""
    key = f"{collection}/{row['id']}"
    before = tx.row(key) if tx.head(key) is not None else None
    return _store(tx, tx.collections[collection], row, before, limits)


def _changed(before: Json, fields: Json) -> Json:
    return {**{name: value for name, value in before.items() if name not in fields}, **_given(fields)}


def _given(fields: Json) -> Json:
    return {name: value for name, value in fields.items() if value is not None}


def _write(tx: Transaction, collection: Collection, row: Json, before: Json | None, limits: Limits) -> Json:
    _check_links(tx, collection, row, before)
    return _store(tx, collection, row, before, limits)


def _store(tx: Transaction, collection: Collection, row: Json, before: Json | None, limits: Limits) -> Json:
    """Store a row as a push with the assumed state `before` would. Return the stored row."""
    problem = find_problem(collection, row, user_id=row.get("userId", ""))
    incoming = IncomingRow(f"{collection.name}/{row['id']}", row, msgspec.json.encode(row), before, problem)
    outcome = RowWriter(tx, collection, limits).write(incoming)
    if isinstance(outcome, Rejected):
        raise _error_of(outcome)
    return outcome.answer or row


def _error_of(rejected: Rejected) -> VademecumError:
    kind, exceeded = _ERRORS[rejected.code], rejected.exceeded
    message = exceeded.message_for_api if exceeded is not None else rejected.message
    return kind(message, code=rejected.code) if kind is LimitReached else kind(message)


def _check_links(tx: Transaction, collection: Collection, row: Json, before: Json | None) -> None:
    """Raise NotFound unless all newly referenced rows are live.

    Existing references of a live row are not checked, because their rows may not have arrived yet.
    """
    is_live = tx.row_state(f"{collection.name}/{row['id']}") == "live"
    earlier = _linked_keys(collection, before) if before is not None and is_live else set()
    for key in sorted(_linked_keys(collection, row) - earlier):
        if tx.row_state(key) != "live":
            raise no_such(key.partition("/")[0])


def _linked_keys(collection: Collection, row: Json) -> set[str]:
    parents, references = links(collection, row)
    return {*parents, *references}
