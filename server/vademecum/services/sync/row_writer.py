"""Store single live rows under the conflict rules and quotas. Pushes and routes both use `RowWriter`."""

from __future__ import annotations

from functools import partial

import msgspec

from vademecum.model.schema.collections import Collection, Json, Links, links
from vademecum.model.schema.derived_ids import entity_id, join_notes
from vademecum.model.sync import cascade
from vademecum.model.sync.conflict_rules import Decision, DecisionContext, StoredRow, decide
from vademecum.model.sync.quotas import Limits, QuotaExceeded, check_quota
from vademecum.model.sync.rejections import (
    duplicate_message,
    is_repeated_rejection,
    merge_message,
    without_sync_error,
)
from vademecum.model.sync.transaction import WAITING, Transaction
from vademecum.services.sync.push_decoding import IncomingRow

ENTITIES = "entities"
PROJECT = "projectId"


class Accepted(msgspec.Struct, frozen=True):
    """The row is accepted. `answer`: the current row to send to the device, or None if the device already has it."""

    answer: Json | None = None


ACCEPTED = Accepted()


class Rejected(msgspec.Struct, frozen=True):
    """The row is not stored.

    `row`: the row as sent, or the merged row if other devices have changed it, too. `base`: the stored version, for the
    `syncError`, as in `Decision`. `exceeded`: the exceeded limit, if that is the reason.
    """

    row: Json
    code: str
    message: str
    base: str | None = None
    exceeded: QuotaExceeded | None = None


class RowWriter:
    """Decides on live rows of a collection and stores them."""

    def __init__(self, tx: Transaction, collection: Collection, limits: Limits) -> None:
        self._tx = tx
        self._collection = collection
        self._limits = limits
        self._names_projects = PROJECT in collection.parents or any(
            reference.field == PROJECT for reference in collection.references
        )
        without_dangling = partial(cascade.without_dangling_references, tx, collection)
        self._context = DecisionContext(tx.row_state, without_dangling, tx.meta.forgotten_at, tx.now)

    def write(self, sent: IncomingRow) -> Accepted | Rejected:
        """Store the row if the conflict rules and quotas allow it, and apply the cascades."""
        incoming = self._rewrite_merged_project(sent) if self._names_projects else sent
        if incoming.key != sent.key:
            return self._merge_into_existing_entity(sent, incoming)
        outcome = self._decide(incoming)
        if incoming.altered and outcome == ACCEPTED and not is_repeated_rejection(sent.row, sent.assumed):
            return Accepted(self._tx.row(sent.key))
        return outcome

    def _rewrite_merged_project(self, sent: IncomingRow) -> IncomingRow:
        """Replace the id of a merged project with the id of the project that it was merged into."""
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
        if into is not None and self._collection.name == ENTITIES:  # an entity's id depends on its project
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

    def _merge_into_existing_entity(self, sent: IncomingRow, incoming: IncomingRow) -> Accepted | Rejected:
        """Merge an entity of a merged project into the entity with its new id, and put a tombstone under the sent id.

        If the entity with the new id was deleted, the sent entity is dropped.
        """
        if is_repeated_rejection(sent.row, sent.assumed):
            return ACCEPTED
        tx = self._tx
        stored = _read_stored(tx, incoming.key)
        is_forgotten = sent.row["createdAt"] < tx.meta.forgotten_at
        if not is_forgotten and (stored is None or not stored.deleted):
            current = stored.row if stored is not None else without_sync_error(incoming.row)
            assumed_notes = (sent.assumed or {}).get("notes")
            notes = join_notes(current.get("notes"), incoming.row.get("notes"), assumed_notes)
            row = {name: value for name, value in {**current, "notes": notes}.items() if value is not None}
            joined = IncomingRow(incoming.key, row, msgspec.json.encode(row), None, None)
            outcome = self._store(joined, Decision("store", row), links(self._collection, row), stored)
            if isinstance(outcome, Rejected):
                return msgspec.structs.replace(outcome, row=sent.row)
        if tx.row_state(sent.key) != "deleted":
            tx.put_tombstone(sent.key, sent.row)
            cascade.delete_dependents(tx, [sent.key])
        return Accepted(tx.row(sent.key))

    def _decide(self, incoming: IncomingRow) -> Accepted | Rejected:
        collection = self._collection
        stored = _read_stored(self._tx, incoming.key)
        row_links = links(collection, incoming.row) if incoming.problem is None else ((), ())
        decision = decide(
            collection, incoming.row, incoming.assumed, stored, row_links[0], incoming.problem, self._context
        )
        if decision.kind == "refuse":
            return Rejected(incoming.row, decision.code, decision.message, decision.base)
        if decision.kind == "answer":
            return Accepted(decision.row)
        return self._store(incoming, decision, row_links, stored)

    def _store(
        self, incoming: IncomingRow, decision: Decision, row_links: Links, stored: StoredRow | None
    ) -> Accepted | Rejected:
        """Store a row that the rules accept, within the quotas. `row_links`: the links of the sent row."""
        assert decision.row is not None
        collection, tx, key = self._collection, self._tx, incoming.key
        head = tx.head(key)
        row = _keep_frozen_fields(collection, decision.row, stored)
        row = cascade.without_dangling_references(tx, collection, row)
        body = incoming.body
        if row is not incoming.row:
            body, row_links = msgspec.json.encode(row), links(collection, row)
            if (problem := _find_merge_problem(collection, row)) is not None:
                return Rejected(incoming.row, "INVALID", problem)
        # Return the merged row instead of the sent one, so that the next edit does not undo changes of other devices.
        rejected_row = row if decision.merged else incoming.row
        if (problem := self._find_duplicate(key, row)) is not None:
            return Rejected(rejected_row, "DUPLICATE", problem, decision.base)
        before = stored.row if stored is not None and not stored.deleted else None
        growth = tx.measure_growth(key, row, body, row_links)
        exceeded = check_quota(collection.name, before, row, growth, len(body), tx.totals.usage, self._limits)
        if exceeded is not None:
            message = exceeded.message_for_device
            return Rejected(rejected_row, exceeded.code, message, decision.base, exceeded)
        parent_states = [tx.row_state(parent) for parent in row_links[0]]
        waiting = "missing" in parent_states and (head is None or head.seq == WAITING)
        tx.put(key, row, body, waiting=waiting, known_links=row_links)
        if "deleted" in parent_states:  # an edit moved the row under a deleted parent
            cascade.delete_with_dependents(tx, key)
            return Accepted(tx.row(key))
        if not waiting and (head is None or head.deleted or head.seq == WAITING):
            cascade.admit_waiting_children(tx, key)
        return ACCEPTED if row is incoming.row or row == incoming.row else Accepted(row)

    def _find_duplicate(self, key: str, row: Json) -> str | None:
        """Return a message if another live row has the same unique value, else None."""
        collection = self._collection
        if not collection.unique or not row.get(collection.unique):
            return None
        owner = self._tx.find_unique(collection.name, row[collection.unique])
        if owner in (None, key):
            return None
        return duplicate_message(collection.name, collection.unique)


def _read_stored(tx: Transaction, key: str) -> StoredRow | None:
    """Return the server's version of a row, or None."""
    head = tx.head(key)
    if head is None:
        return None
    if head.seq == WAITING:
        return StoredRow(tx.row(key), head.deleted, None)
    restored = head.seq <= tx.meta.restored_seq
    return StoredRow(tx.row(key), head.deleted, f"{tx.meta.epoch}:{head.seq}", restored)


def _find_merge_problem(collection: Collection, row: Json) -> str | None:
    """Return why a merged row does not fit its schema, or None if it fits.

    Each version fits the schema, but a merge can enlarge sets and counters beyond their bounds. The sent row is then
    rejected. The stored row is not returned instead, because a simple client would replace its own row with it and lose
    the edit. The `syncError` names no base, because the device has not received the stored row.
    """
    try:
        collection.validate(row)
    except msgspec.ValidationError as error:
        return merge_message(error)
    return None


def _keep_frozen_fields(collection: Collection, proposed: Json, stored: StoredRow | None) -> Json:
    """Return `proposed` with the frozen fields of the stored live row, if there is one, and with the server's own fields."""
    before = stored.row if stored is not None and not stored.deleted else {}
    fixed = {name: before[name] for name in collection.frozen if name in before}
    fixed |= {name: before.get(name, initial) for name, initial in collection.server_fields.items()}
    changed = {name: value for name, value in fixed.items() if proposed.get(name) != value}
    return {**proposed, **changed} if changed else proposed
