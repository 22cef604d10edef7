"""Push: a device's batch of rows becomes what the rules allow. Deletes first, then the rest in the order sent.

Never all or nothing: a refused row comes back marked and the others go on, so no row can block a device's queue.
"""

from __future__ import annotations

from functools import partial

import msgspec

from vademecum.model.memory import job_triggers
from vademecum.model.schema.collections import Collection, Json, Links, links
from vademecum.model.schema.derived_ids import entity_id, joined_notes
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
    """Judge the whole batch. Returns the rows that did not become what was sent, in the order sent."""
    tx.prefetch([incoming.key for incoming in batch])
    # What is here already has been looked at, or will be, for what it says here.
    imported = [i.key for i in batch if i.imported and tx.head(i.key) is None]
    deletes = [incoming for incoming in batch if incoming.deletes]
    if deletes:
        _delete(tx, deletes)
        batch = [incoming for incoming in batch if not incoming.deletes]
    judge = _Judge(tx, collection, limits)
    answers = [judge.answer(incoming) for incoming in batch]
    job_triggers.know(tx, imported)
    return [answer for answer in answers if answer is not None]


def _delete(tx: Transaction, deletes: list[IncomingRow]) -> None:
    """Always accepted. Of an unknown row it is only remembered while tombstones are free, or a client could fill the
    disk with ids it made up. What is given up then: should the row itself come later, it is taken for a new one.
    """
    dead: list[str] = []
    for incoming in deletes:
        head = tx.head(incoming.key)
        if head is None and incoming.has_id and has_free_tombstone(tx.tombstones):
            tx.put_tombstone(incoming.key, incoming.row)
        elif head is not None and not head.deleted:
            tx.put_tombstone(incoming.key, tx.row(incoming.key))
        else:
            continue
        dead.append(incoming.key)
    cascade.delete_dependents(tx, dead)


class _Judge:
    """What becomes of the live rows of one push. `about`: what all of them are decided by."""

    def __init__(self, tx: Transaction, collection: Collection, limits: Limits) -> None:
        self._tx = tx
        self._collection = collection
        self._limits = limits
        self._names_projects = PROJECT in collection.parents or any(
            reference.field == PROJECT for reference in collection.references
        )
        healed = partial(cascade.without_dangling_references, tx, collection)
        self._about = DecisionContext(tx.row_state, healed, tx.forgotten_at, tx.now)

    def answer(self, sent: IncomingRow) -> Json | None:
        """What the device is told of a row; None when it became what was sent."""
        incoming = self._brought_along(sent) if self._names_projects else sent
        if incoming.key != sent.key:
            return self._received_elsewhere(sent, incoming)
        answer = self._judged(incoming)
        if answer is None and incoming.altered and not is_repeated_rejection(sent.row, sent.assumed):
            return self._tx.row(sent.key)
        return answer

    def _brought_along(self, sent: IncomingRow) -> IncomingRow:
        """As the device would have sent it, had it known which projects are a part of others now."""
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
        if into is not None and self._collection.name == ENTITIES:  # whose id says its project
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
        """An entity joins the one of its name, if that was not deleted, and is gone where the device has it."""
        if is_repeated_rejection(sent.row, sent.assumed):
            return None
        tx = self._tx
        head = tx.head(incoming.key)
        stored = _stored(tx, incoming.key, head)
        is_forgotten = sent.row["createdAt"] < tx.forgotten_at
        if not is_forgotten and (stored is None or not stored.deleted):
            known = stored.row if stored is not None else without_sync_error(incoming.row)
            before = (sent.assumed or {}).get("notes")
            row = {**known, "notes": joined_notes(known.get("notes"), incoming.row.get("notes"), before)}
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
        """`named`: what the row as it was sent names. `head` and `stored`: of the row that is here."""
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
            # As it was sent; or merged, so that the next edit does not undo what others did and the device has not seen.
            mine = row if verdict.merged else incoming.row
            return with_sync_error(mine, no[0], no[1], tx.now, verdict.base)
        waiting = "missing" in lives and (head is None or head.seq == WAITING)
        tx.put(key, row, body, waiting=waiting, named=named)
        if (
            "deleted" in lives
        ):  # an edit moved it under a parent that is gone: it goes the way of that parent's rows
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
        no = check_quota(collection.name, before, row, growth, len(body), tx.usage, self._limits)
        return (no.code, no.message) if no is not None else None


def _stored(tx: Transaction, key: str, head: RowHead | None) -> StoredRow | None:
    if head is None:
        return None
    if head.seq == WAITING:
        return StoredRow(tx.row(key), head.deleted, None)
    restored = head.seq <= tx.restored_seq
    return StoredRow(tx.row(key), head.deleted, f"{tx.epoch}:{head.seq}", restored)


def _misfit(collection: Collection, row: Json) -> str | None:
    """Why a row that the server has merged does not fit its schema, though both sides did: sets and counts can grow
    beyond their bounds. It is refused like a merge that breaks a limit, and the stored row is not answered: a plain
    client would take that over its own, and lose what it wrote. Marked, its row stays as it is,
    and the mark names no base: the device does not know the stored row.
    """
    try:
        collection.fit(row)
    except msgspec.ValidationError as error:
        return f"Together with what another device changed, this is more than a row can hold: {error}"
    return None


def _thawed(collection: Collection, wanted: Json, stored: StoredRow | None) -> Json:
    """`wanted` with the fields that never change after birth as the live row has them."""
    if stored is None or stored.deleted:
        return wanted
    changed = {
        f: stored.row[f] for f in collection.frozen if f in stored.row and wanted.get(f) != stored.row[f]
    }
    return {**wanted, **changed} if changed else wanted
