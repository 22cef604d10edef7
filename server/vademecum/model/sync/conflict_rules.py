"""What becomes of one pushed row: the seven rules of the sync wire, first that fits.

This file is the protocol. It sees values only; `transaction` keeps the state and `services/sync/push` does the talking.
Deletes are rule 1 and are simple (always accepted), so `decide` is for rows that want to live.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from vademecum.model.schema.collections import Collection, Json, is_time
from vademecum.model.sync.merge import is_valid_base, merge, merge_without_base
from vademecum.model.sync.tombstone import make_tombstone

RowState = Literal["live", "deleted", "missing"]


class StoredRow(msgspec.Struct, frozen=True):
    """The server's row. `base` names this very state ("epoch:seq"); a row that waits for its parent has none.
    `restored`: it is as a backup had it, and nobody has written it since."""

    row: Json
    deleted: bool
    base: str | None
    restored: bool = False


class Decision(msgspec.Struct, frozen=True):
    """`store`: becomes the row, if limits allow. `answer`: nothing changes, the device is told `row` (None: nothing).

    `refuse`: the device's row comes back marked with `code` and `message`. Whether a row that is stored waits for a
    parent is decided where it is stored, after it was merged and healed. `base`: the stored row, for the mark of a row
    that is refused; None if the device does not know it, for what is made upon a mark's base takes the stored row's
    place unseen. `merged`: `row` holds what others did, too.
    """

    kind: Literal["store", "answer", "refuse"]
    row: Json | None = None
    code: str = ""
    message: str = ""
    base: str | None = None
    merged: bool = False


class DecisionContext(msgspec.Struct, frozen=True):
    """What decides besides the row itself. `life("sessions/abc")` tells whether a row is here, dead or unknown; `healed`
    is a row of the collection without what it names and is dead."""

    row_state: Callable[[str], RowState]
    without_dangling_references: Callable[[Json], Json]
    forgotten_at: str
    now: str


def without_sync_error(row: Json) -> Json:
    return {k: v for k, v in row.items() if k != "syncError"} if "syncError" in row else row


def is_repeated_rejection(new: Json, assumed: Json | None) -> bool:
    """A refused row, sent once more as RxDB does: the device has heard why, and nobody has edited it since."""
    if assumed is None or "syncError" not in new or "syncError" not in assumed:
        return False
    return without_sync_error(new) == without_sync_error(assumed)


def with_sync_error(row: Json, code: str, message: str, at: str, base: str | None) -> Json:
    """A refused row, plus why. It stays on the device until it is edited."""
    mark: Json = {"code": code, "message": message, "at": at}
    if base is not None:
        mark["base"] = base
    return {**without_sync_error(row), "syncError": mark}


def decide(
    collection: Collection,
    new: Json,
    assumed: Json | None,
    stored: StoredRow | None,
    parents: tuple[str, ...],
    problem: str | None,
    about: DecisionContext,
) -> Decision:
    """The verdict on a live `new`. `problem` is why it does not fit the schema or belongs to another, or None."""
    known = stored is not None and _is_assumed(collection, assumed, stored, about)
    base = stored.base if stored is not None else None
    if problem is not None:
        return Decision("refuse", code="INVALID", message=problem, base=base if known else None)
    wanted = without_sync_error(new)
    if stored is not None and not stored.deleted and wanted == stored.row:
        return Decision("answer", stored.row if "syncError" in new else None)
    if is_repeated_rejection(new, assumed):
        return Decision("answer")
    if stored is None:
        return _decide_unknown(collection, wanted, parents, about)
    if known:
        # What was brought back to life on a device before everything was forgotten comes here only now.
        forgotten = stored.deleted and _is_forgotten(wanted, about)
        return _forgotten(base) if forgotten else Decision("store", wanted, base=base)
    if stored.restored and not stored.deleted and stored.base is not None:
        order = _order_after_restore(wanted, assumed, stored.row, about.now)
        if order == "newer":
            return Decision("store", wanted, base=base)
        if order == "unite":
            united = merge_without_base(collection, stored.row, wanted, about.now)
            if united == stored.row:
                return Decision("answer", stored.row)
            return Decision("store", united, base=base, merged=True)
    if stored.deleted or assumed is None or not collection.merges or not is_valid_base(collection, assumed):
        return Decision("answer", stored.row)
    # The stored row was healed, and what the server does to all rows is nobody's change.
    merged = merge(
        collection,
        about.without_dangling_references(without_sync_error(assumed)),
        stored.row,
        about.without_dangling_references(wanted),
    )
    if merged == stored.row:
        return Decision("answer", stored.row)
    return Decision("store", merged, base=base, merged=True)


def _is_assumed(
    collection: Collection, assumed: Json | None, stored: StoredRow, about: DecisionContext
) -> bool:
    if assumed is None:
        return False
    mark = assumed.get("syncError")
    if isinstance(mark, dict) and stored.base is not None and mark.get("base") == stored.base:
        return True
    if stored.deleted:
        # A device that deleted the row itself still holds its own unblanked tombstone: blanked, it is the stored one.
        return bool(assumed.get("_deleted")) and make_tombstone(collection, assumed, about.now) == stored.row
    return without_sync_error(assumed) == stored.row


def _order_after_restore(
    wanted: Json, assumed: Json | None, here: Json, now: str
) -> Literal["newer", "unite", "unknown"]:
    """Say how a pushed row relates to the row that a restore wrote last.

    A client that goes on after a restore assumes a row that the backup lacks: a merge would take the backup's words for
    an edit. A client that begins from zero assumes nothing. Times are capped at `now`: a clock that is ahead wins nothing.
    """
    if assumed is None:
        return "unite" if wanted["createdAt"] == here["createdAt"] else "unknown"
    then = assumed.get("updatedAt")
    if "syncError" in assumed or not isinstance(then, str) or not is_time(then):
        return "unknown"
    then, stored = min(then, now), min(here["updatedAt"], now)
    if then == stored and wanted["createdAt"] == here["createdAt"]:
        return "unite"
    return "newer" if then > stored else "unknown"


def _decide_unknown(
    collection: Collection, wanted: Json, parents: tuple[str, ...], about: DecisionContext
) -> Decision:
    if _is_forgotten(wanted, about):
        return _forgotten(None)
    for parent in parents:
        if about.row_state(parent) == "deleted":
            return Decision("answer", make_tombstone(collection, wanted, about.now))
    return Decision("store", wanted)


def _forgotten(base: str | None) -> Decision:
    message = (
        "Everything was forgotten after this was written. It is kept on this device only; "
        "to keep it everywhere, save it anew."
    )
    return Decision("refuse", code="FORGOTTEN", message=message, base=base)


def _is_forgotten(wanted: Json, about: DecisionContext) -> bool:
    if not about.forgotten_at:
        return False
    created = wanted.get("createdAt")
    return isinstance(created, str) and created < about.forgotten_at
