"""Rows that a route writes, judged as if a device had pushed them: the same schema, limits, uniqueness and cascades.

One thing is stricter. A device may push a row before what it names, for its collections go side by side; whoever
writes one row by itself must name what is there.
"""

from __future__ import annotations

import msgspec

from vademecum.engines.duckdb.user_store import UserStore
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
from vademecum.model.schema.collections import Collection, Json, links
from vademecum.model.sync import cascade
from vademecum.model.sync.quotas import Limits, message_for_api_client
from vademecum.model.sync.transaction import Transaction
from vademecum.services.memory.scope import locate_row
from vademecum.services.runtime.ids import new_id
from vademecum.services.sync.push import push
from vademecum.services.sync.push_decoding import PushRow, decode_row

_REFUSALS: dict[str, type[VademecumError]] = {
    "INVALID": BadRequest,
    "DUPLICATE": Duplicate,
    "TIER": TierTooLow,
    "TOO_LARGE": TooLarge,
    "STORAGE_LIMIT": LimitReached,
}


async def read(store: UserStore, collection: str, row_id: str) -> bytes:
    """The row as it is stored. Raises NotFound."""
    key = f"{collection}/{row_id}"
    body = (await store.bodies([key])).get(key)
    if body is None or not store.live(key):
        raise no_such(collection)
    return body


def check_live(store: UserStore, collection: str, row_id: str) -> None:
    """Raises NotFound."""
    if not store.live(f"{collection}/{row_id}"):
        raise no_such(collection)


def require_live_key(tx: Transaction, collection: str, row_id: str) -> str:
    """Raises NotFound."""
    key = f"{collection}/{row_id}"
    if tx.row_state(key) != "live":
        raise no_such(collection)
    return key


def require_live_row(tx: Transaction, collection: str, row_id: str) -> Json:
    """The row inside a transaction. Raises NotFound."""
    return tx.row(require_live_key(tx, collection, row_id))


def delete_unscoped(tx: Transaction, collection: str, row_id: str) -> None:
    """With what belongs to it. For what has no place; see `delete`. Raises NotFound."""
    cascade.delete_with_dependents(tx, require_live_key(tx, collection, row_id))


def check_within(tx: Transaction, scope: MemoryScope, collection: str, row_id: str) -> None:
    """For what has a place: turns, summaries, entities, memories, observations. Raises NotFound for a row that is not within the scope,
    as for one that is not there."""
    place = locate_row(f"{collection}/{row_id}", tx.head)
    if place is None or not sees(scope, place.project_id):
        raise no_such(collection)


def delete(tx: Transaction, scope: MemoryScope, collection: str, row_id: str) -> None:
    """With what belongs to it. Raises as `check_within`."""
    check_within(tx, scope, collection, row_id)
    cascade.delete_with_dependents(tx, f"{collection}/{row_id}")


def add(tx: Transaction, collection: str, fields: Json, limits: Limits, row_id: str | None = None) -> Json:
    """A new row; fields that are None are left out. With the id of one that was deleted it is that row, alive again:
    somebody asks for it by name, which no stale device does."""
    row_id = row_id or new_id()
    key = f"{collection}/{row_id}"
    before = tx.row(key) if tx.head(key) is not None else None
    # after the last "forget everything", even if the clock was set back
    now = max(tx.now, tx.forgotten_at)
    row = {"id": row_id, "createdAt": now, "updatedAt": now, "_deleted": False, **_given(fields)}
    return _write(tx, tx.collections[collection], row, before, limits)


def change(tx: Transaction, collection: str, row_id: str, fields: Json, limits: Limits) -> Json:
    """The row with these fields; one that is None leaves it. Raises NotFound. Nothing is written if nothing changes."""
    before = require_live_row(tx, collection, row_id)
    after = _changed(before, fields)
    if after == before:
        return before
    after["updatedAt"] = max(tx.now, before["updatedAt"])
    return _write(tx, tx.collections[collection], after, before, limits)


def change_keeping_updated_at(
    tx: Transaction, collection: str, row_id: str, fields: Json, limits: Limits
) -> Json:
    """As `change`, but `updatedAt` stays: nobody edited it, and what is old does not become fresh."""
    before = require_live_row(tx, collection, row_id)
    return _write(tx, tx.collections[collection], _changed(before, fields), before, limits)


def _changed(before: Json, fields: Json) -> Json:
    return {**{name: value for name, value in before.items() if name not in fields}, **_given(fields)}


def _given(fields: Json) -> Json:
    return {name: value for name, value in fields.items() if value is not None}


def _write(tx: Transaction, collection: Collection, row: Json, before: Json | None, limits: Limits) -> Json:
    _check_named(tx, collection, row, before)
    sent = PushRow(msgspec.Raw(msgspec.json.encode(row)), msgspec.Raw(msgspec.json.encode(before)))
    answers = push(tx, collection, [decode_row(collection, sent, "")], limits)
    mark = answers[0].get("syncError") if answers else None
    if mark is not None:
        raise _refusal(mark["code"], mark["message"])
    return answers[0] if answers else row


def _refusal(code: str, message: str) -> VademecumError:
    said, kind = message_for_api_client(message), _REFUSALS[code]
    return kind(said, code=code) if kind is LimitReached else kind(said)


def _check_named(tx: Transaction, collection: Collection, row: Json, before: Json | None) -> None:
    """What a row names anew must be live. What a live one named already may still be on its way here."""
    lives = tx.row_state(f"{collection.name}/{row['id']}") == "live"
    known = _named(collection, before) if before is not None and lives else set()
    for name in sorted(_named(collection, row) - known):
        if tx.row_state(name) != "live":
            raise no_such(name.partition("/")[0])


def _named(collection: Collection, row: Json) -> set[str]:
    parents, references = links(collection, row)
    return {*parents, *references}
