"""Decide by the seven rules of the sync protocol how the server handles a pushed row. The first matching rule applies.

1. A deleted row is accepted unless it is outdated. `decide` handles live rows only.
2. An invalid row is rejected.
3. A row equal to the stored row is a retry. Nothing is stored.
4. A deleted row that the device does not know stays deleted.
5. A row replaces the stored row that the device assumed, or an older one from a restored backup.
6. A row based on another version is merged. Without a base for a merge, the stored row is returned.
7. An unknown row is stored, unless its parent was deleted. If the parent is missing, the row waits for it.

Rules 5 and 7 reject a row created before the user forgot everything. The functions here are pure. `transaction` holds
the state and `services/sync/push` handles the request.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from vademecum.model.schema.collections import Collection, Json, is_timestamp
from vademecum.model.sync.merge import is_valid_base, merge, merge_without_base
from vademecum.model.sync.rejections import FORGOTTEN_MESSAGE, is_repeated_rejection, without_sync_error
from vademecum.model.sync.tombstone import make_tombstone

RowState = Literal["live", "deleted", "missing"]


class StoredRow(msgspec.Struct, frozen=True):
    """The server's version of a row.

    `base`: identifies the version as "epoch:seq", or is None while the row waits for its parent. `restored`: the
    version comes unchanged from a restored backup.
    """

    row: Json
    deleted: bool
    base: str | None
    restored: bool = False


class Decision(msgspec.Struct, frozen=True):
    """The outcome for a pushed row.

    `store`: store `row` if the quotas allow it. `answer`: store nothing and return `row` to the device (None: return
    nothing). `refuse`: return the device's row with a `syncError` of `code` and `message`. The caller decides whether a
    stored row waits for its parent, after merging it and dropping dangling references.
    `base`: the version of the stored row, for the `syncError`. A later edit that names this base replaces that version
    without a merge. So `base` is None if the device has not received that version.
    `merged`: `row` also contains changes of other devices.
    """

    kind: Literal["store", "answer", "refuse"]
    row: Json | None = None
    code: str = ""
    message: str = ""
    base: str | None = None
    merged: bool = False


class DecisionContext(msgspec.Struct, frozen=True):
    """The state that `decide` depends on, besides the row.

    `row_state` returns the state of a key such as "sessions/abc". `without_dangling_references` returns a row of the
    collection without references to deleted rows.
    """

    row_state: Callable[[str], RowState]
    without_dangling_references: Callable[[Json], Json]
    forgotten_at: str
    now: str


def decide(
    collection: Collection,
    new: Json,
    assumed: Json | None,
    stored: StoredRow | None,
    parents: tuple[str, ...],
    problem: str | None,
    context: DecisionContext,
) -> Decision:
    """Decide on the live row `new`.

    `problem`: why the row does not match the schema or belongs to another user, or None.
    """
    is_known = stored is not None and _is_assumed(collection, assumed, stored, context)
    base = stored.base if stored is not None else None
    if problem is not None:
        return Decision("refuse", code="INVALID", message=problem, base=base if is_known else None)
    proposed = without_sync_error(new)
    if stored is not None and not stored.deleted and proposed == stored.row:
        return Decision("answer", stored.row if "syncError" in new else None)
    if is_repeated_rejection(new, assumed):
        return Decision("answer")
    if stored is None:
        return _decide_unknown(collection, proposed, parents, context)
    if is_known:
        # A device may have revived the row before the user forgot everything, and may push it only now.
        forgotten = stored.deleted and _is_forgotten(proposed, context)
        return _forgotten(base) if forgotten else Decision("store", proposed, base=base)
    if stored.restored and not stored.deleted and stored.base is not None:
        order = _order_after_restore(proposed, assumed, stored.row, context.now)
        if order == "newer":
            return Decision("store", proposed, base=base)
        if order == "unite":
            united = merge_without_base(collection, stored.row, proposed, context.now)
            if united == stored.row:
                return Decision("answer", stored.row)
            return Decision("store", united, base=base, merged=True)
    if stored.deleted or assumed is None or not collection.merges or not is_valid_base(collection, assumed):
        return Decision("answer", stored.row)
    # The server dropped dangling references from the stored row. Drop the same references from the device's two
    # versions, too, so that the difference does not count as an edit.
    merged = merge(
        collection,
        context.without_dangling_references(without_sync_error(assumed)),
        stored.row,
        context.without_dangling_references(proposed),
    )
    if merged == stored.row:
        return Decision("answer", stored.row)
    return Decision("store", merged, base=base, merged=True)


def is_outdated_delete(deleted: Json, stored: Json, now: str) -> bool:
    """Return whether a row pushed as deleted, without an assumed state, is older than the stored live row.

    A client that starts from zero also pushes tombstones that it only pulled. On the server, the row may have been
    revived since the tombstone was pulled. Times are capped at `now`. The browser decides in the same way
    (`mergeTwoWay`); shared cases: tests/conformance/outdated_deletes.json.
    """
    then = deleted.get("updatedAt")
    if not isinstance(then, str) or not is_timestamp(then):
        return False
    return bool(min(then, now) < min(stored["updatedAt"], now))


def _is_assumed(
    collection: Collection, assumed: Json | None, stored: StoredRow, context: DecisionContext
) -> bool:
    if assumed is None:
        return False
    mark = assumed.get("syncError")
    if isinstance(mark, dict) and stored.base is not None and mark.get("base") == stored.base:
        return True
    if stored.deleted:
        # A device that deleted the row sends it with its content, which the stored tombstone lacks.
        return (
            bool(assumed.get("_deleted")) and make_tombstone(collection, assumed, context.now) == stored.row
        )
    return without_sync_error(assumed) == stored.row


def _order_after_restore(
    proposed: Json, assumed: Json | None, here: Json, now: str
) -> Literal["newer", "unite", "unknown"]:
    """Return how a pushed row relates to a row from a restored backup.

    A client that continues after a restore may assume a version that the backup lacks, so a merge would treat the older
    text of the backup as an edit. A client that starts from zero assumes nothing. Times are capped at `now`, so that a
    device with a fast clock has no advantage.
    """
    if assumed is None:
        return "unite" if proposed["createdAt"] == here["createdAt"] else "unknown"
    then = assumed.get("updatedAt")
    if "syncError" in assumed or not isinstance(then, str) or not is_timestamp(then):
        return "unknown"
    then, stored = min(then, now), min(here["updatedAt"], now)
    if then == stored and proposed["createdAt"] == here["createdAt"]:
        return "unite"
    return "newer" if then > stored else "unknown"


def _decide_unknown(
    collection: Collection, proposed: Json, parents: tuple[str, ...], context: DecisionContext
) -> Decision:
    if _is_forgotten(proposed, context):
        return _forgotten(None)
    for parent in parents:
        if context.row_state(parent) == "deleted":
            return Decision("answer", make_tombstone(collection, proposed, context.now))
    return Decision("store", proposed)


def _forgotten(base: str | None) -> Decision:
    return Decision("refuse", code="FORGOTTEN", message=FORGOTTEN_MESSAGE, base=base)


def _is_forgotten(proposed: Json, context: DecisionContext) -> bool:
    if not context.forgotten_at:
        return False
    created = proposed.get("createdAt")
    return isinstance(created, str) and created < context.forgotten_at
