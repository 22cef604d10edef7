"""Apply a device's batch of rows under the conflict rules: deletes first, then the rest in the order sent.

A batch is not all or nothing. A rejected row is returned with `syncError` and the others are stored, so no row can
block a device's queue.
"""

from __future__ import annotations

from functools import partial

import msgspec

from vademecum.model.memory import job_triggers
from vademecum.model.schema.collections import Collection, Json, Links, links
from vademecum.model.schema.derived_ids import entity_id, join_notes
from vademecum.model.sync import cascade
from vademecum.model.sync.conflict_rules import (
    Decision,
    DecisionContext,
    StoredRow,
    decide,
    is_repeated_rejection,
    with_sync_error,
    without_sync_error,
)
from vademecum.model.sync.quotas import Limits, check_quota, has_free_tombstone
from vademecum.model.sync.transaction import WAITING, RowHead, Transaction
from vademecum.services.sync.push_decoding import IncomingRow

ENTITIES = "entities"
PROJECT = "projectId"


def push(tx: Transaction, collection: Collection, batch: list[IncomingRow], limits: Limits) -> list[Json]:
    """Apply the batch. Return the rows that were not stored as sent, in the order sent."""
    tx.prefetch([incoming.key for incoming in batch])
    # Rows that exist already have an extraction job of their own, or had one.
    imported = [i.key for i in batch if i.imported and tx.head(i.key) is None]
    deletes = [incoming for incoming in batch if incoming.deletes]
    if deletes:
        _delete(tx, deletes)
        batch = [incoming for incoming in batch if not incoming.deletes]
    judge = _Judge(tx, collection, limits)
    answers = [judge.answer(incoming) for incoming in batch]
    job_triggers.mark_imported_done(tx, imported)
    return [answer for answer in answers if answer is not None]


def _delete(tx: Transaction, deletes: list[IncomingRow]) -> None:
    """Apply deletes, which are always accepted.

    The delete of an unknown row is stored only while tombstones are free, or a client could fill the disk with invented
    ids. Without that tombstone, the row counts as a new one if it arrives later.
    """
    dead: list[str] = []
    for incoming in deletes:
        head = tx.head(incoming.key)
        if head is None and incoming.has_id and has_free_tombstone(tx.totals.tombstones):
            tx.put_tombstone(incoming.key, incoming.row)
        elif head is not None and not head.deleted:
            tx.put_tombstone(incoming.key, tx.row(incoming.key))
        else:
            continue
        dead.append(incoming.key)
    cascade.delete_dependents(tx, dead)


class _Judge:
    """Decides on the live rows of one push. `_about` is the context that all decisions share."""

    def __init__(self, tx: Transaction, collection: Collection, limits: Limits) -> None:
        self._tx = tx
        self._collection = collection
        self._limits = limits
        self._names_projects = PROJECT in collection.parents or any(
            reference.field == PROJECT for reference in collection.references
        )
        healed = partial(cascade.without_dangling_references, tx, collection)
        self._about = DecisionContext(tx.row_state, healed, tx.meta.forgotten_at, tx.now)

    def answer(self, sent: IncomingRow) -> Json | None:
        """Return the row to send back to the device, or None if it was stored as sent."""
        incoming = self._brought_along(sent) if self._names_projects else sent
        if incoming.key != sent.key:
            return self._received_elsewhere(sent, incoming)
        answer = self._judged(incoming)
        if answer is None and incoming.altered and not is_repeated_rejection(sent.row, sent.assumed):
            return self._tx.row(sent.key)
        return answer

    def _brought_along(self, sent: IncomingRow) -> IncomingRow:
        """Return the row with merged projects replaced by the projects that they were merged into."""
        tx = self._tx
        into = cascade.find_merged_project(tx, sent.row) if sent.problem is None else None
        before = cascade.find_merged_project(tx, sent.assumed) if sent.assumed is not None else None
        if into is None and before is None:
            return sent
        row, assumed, key = sent.row, sent.assumed, sent.key
        if assumed is not None and before is not None:
            assumed = {**assumed, PROJECT: before}
        if into is not None:
            row = {**row, PROJECT: into}
        if into is not None and self._collection.name == ENTITIES:  # whose id contains its project
            row["id"] = entity_id(into, row["type"], row["name"])
            key = f"{ENTITIES}/{row['id']}"
        return IncomingRow(
            key,
            row,
            msgspec.json.encode(row),
            assumed,
            sent.problem,
            altered=into is not None or sent.altered,
        )

    def _received_elsewhere(self, sent: IncomingRow, incoming: IncomingRow) -> Json | None:
        """Merge an entity into the one of its name, unless that was deleted, and put a tombstone under the id sent."""
        if is_repeated_rejection(sent.row, sent.assumed):
            return None
        tx = self._tx
        head = tx.head(incoming.key)
        stored = _stored(tx, incoming.key, head)
        is_forgotten = sent.row["createdAt"] < tx.meta.forgotten_at
        if not is_forgotten and (stored is None or not stored.deleted):
            known = stored.row if stored is not None else without_sync_error(incoming.row)
            before = (sent.assumed or {}).get("notes")
            row = {**known, "notes": join_notes(known.get("notes"), incoming.row.get("notes"), before)}
            row = {name: value for name, value in row.items() if value is not None}
            joined = IncomingRow(incoming.key, row, msgspec.json.encode(row), None, None)
            named = links(self._collection, row)
            no = self._store(joined, Decision("store", row), named, head, stored)
            if no is not None and "syncError" in no:
                return {**sent.row, "syncError": no["syncError"]}
        if tx.row_state(sent.key) != "deleted":
            tx.put_tombstone(sent.key, sent.row)
            cascade.delete_dependents(tx, [sent.key])
        return tx.row(sent.key)

    def _judged(self, incoming: IncomingRow) -> Json | None:
        collection, tx = self._collection, self._tx
        head = tx.head(incoming.key)
        stored = _stored(tx, incoming.key, head)
        named = links(collection, incoming.row) if incoming.problem is None else ((), ())
        verdict = decide(
            collection, incoming.row, incoming.assumed, stored, named[0], incoming.problem, self._about
        )
        if verdict.kind == "refuse":
            return with_sync_error(incoming.row, verdict.code, verdict.message, tx.now, verdict.base)
        if verdict.kind == "answer":
            return verdict.row
        return self._store(incoming, verdict, named, head, stored)

    def _store(
        self,
        incoming: IncomingRow,
        verdict: Decision,
        named: Links,
        head: RowHead | None,
        stored: StoredRow | None,
    ) -> Json | None:
        """Store a row that the rules accept. Return the row to send back, or None.

        `named`: the rows that the sent row refers to. `head` and `stored`: the server's version of the row.
        """
        assert verdict.row is not None
        collection, tx, key = self._collection, self._tx, incoming.key
        row = cascade.without_dangling_references(tx, collection, _thawed(collection, verdict.row, stored))
        body = incoming.body
        if row is not incoming.row:
            body, named = msgspec.json.encode(row), links(collection, row)
            if (problem := _misfit(collection, row)) is not None:
                return with_sync_error(incoming.row, "INVALID", problem, tx.now, None)
        lives = [tx.row_state(parent) for parent in named[0]]
        no = self._refused(key, row, body, named, stored)
        if no is not None:
            # Return the sent row, or the merged one, so that the next edit does not undo changes the device has not seen.
            mine = row if verdict.merged else incoming.row
            return with_sync_error(mine, no[0], no[1], tx.now, verdict.base)
        waiting = "missing" in lives and (head is None or head.seq == WAITING)
        tx.put(key, row, body, waiting=waiting, named=named)
        if (
            "deleted" in lives
        ):  # an edit moved it under a deleted parent: delete it as that parent's rows were
            cascade.delete_with_dependents(tx, key)
            return tx.row(key)
        if not waiting and (head is None or head.deleted or head.seq == WAITING):
            cascade.admit_waiting_children(tx, key)
        return None if row is incoming.row or row == incoming.row else row

    def _refused(
        self, key: str, row: Json, body: bytes, named: Links, stored: StoredRow | None
    ) -> tuple[str, str] | None:
        collection, tx = self._collection, self._tx
        if collection.unique and row.get(collection.unique):
            holder = tx.find_unique(collection.name, row[collection.unique])
            if holder not in (None, key):
                return "DUPLICATE", f"Another of your {collection.name} has this {collection.unique} already."
        before = stored.row if stored is not None and not stored.deleted else None
        growth = tx.measure_growth(key, row, body, named)
        no = check_quota(collection.name, before, row, growth, len(body), tx.totals.usage, self._limits)
        return (no.code, no.message) if no is not None else None


def _stored(tx: Transaction, key: str, head: RowHead | None) -> StoredRow | None:
    if head is None:
        return None
    if head.seq == WAITING:
        return StoredRow(tx.row(key), head.deleted, None)
    restored = head.seq <= tx.meta.restored_seq
    return StoredRow(tx.row(key), head.deleted, f"{tx.meta.epoch}:{head.seq}", restored)


def _misfit(collection: Collection, row: Json) -> str | None:
    """Return why a merged row does not fit its schema, or None if it fits.

    Both sides fit, but sets and counts can grow beyond their bounds in a merge. The row is rejected like a merge that
    exceeds a quota. The stored row is not returned: a plain client would replace its own by it and lose its edit. The
    rejected row stays as it is, and its `syncError` names no base, because the device does not know the stored row.
    """
    try:
        collection.validate(row)
    except msgspec.ValidationError as error:
        return f"Together with what another device changed, this is more than a row can hold: {error}"
    return None


def _thawed(collection: Collection, wanted: Json, stored: StoredRow | None) -> Json:
    """Return `wanted` with the frozen fields of the live row."""
    if stored is None or stored.deleted:
        return wanted
    changed = {
        f: stored.row[f] for f in collection.frozen if f in stored.row and wanted.get(f) != stored.row[f]
    }
    return {**wanted, **changed} if changed else wanted
