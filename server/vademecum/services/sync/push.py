"""Apply a device's batch of rows under the conflict rules. Deletes come first, then live rows in the order sent.

A batch is not all or nothing. A rejected row is returned with `syncError` and the rest of the batch is stored, so that
no row can block a device's queue.
"""

from __future__ import annotations

from vademecum.model.memory import job_triggers
from vademecum.model.schema.collections import Collection, Json
from vademecum.model.sync import cascade
from vademecum.model.sync.conflict_rules import is_outdated_delete
from vademecum.model.sync.quotas import Limits, has_free_tombstone
from vademecum.model.sync.rejections import with_sync_error
from vademecum.model.sync.transaction import Transaction
from vademecum.services.sync.push_decoding import IncomingRow
from vademecum.services.sync.row_writer import Accepted, Rejected, RowWriter


def push(tx: Transaction, collection: Collection, batch: list[IncomingRow], limits: Limits) -> list[Json]:
    """Apply the batch. Return the rows that were not stored as sent, in the order sent."""
    tx.prefetch([incoming.key for incoming in batch])
    # Only new rows count as imported. A row that already exists has, or had, its own extraction job.
    imported = [i.key for i in batch if i.imported and tx.head(i.key) is None]
    deletes = [incoming for incoming in batch if incoming.deletes]
    refused = _delete(tx, deletes) if deletes else {}
    writer = RowWriter(tx, collection, limits)
    answers = [
        refused.get(incoming.key) if incoming.deletes else _answer(writer.write(incoming), tx.now)
        for incoming in batch
    ]
    job_triggers.mark_imported_done(tx, imported)
    return [answer for answer in answers if answer is not None]


def _answer(outcome: Accepted | Rejected, now: str) -> Json | None:
    if isinstance(outcome, Rejected):
        return with_sync_error(outcome.row, outcome.code, outcome.message, now, outcome.base)
    return outcome.answer


def _delete(tx: Transaction, deletes: list[IncomingRow]) -> dict[str, Json]:
    """Apply deletes. Map the keys of rows that outdated deletes do not delete to the stored rows.

    The delete of an unknown row is stored only while tombstones are free. Otherwise a client could fill the disk with
    tombstones of invented ids. If the delete is not stored and the row arrives later, it counts as a new row.
    """
    deleted: list[str] = []
    refused: dict[str, Json] = {}
    for incoming in deletes:
        head = tx.head(incoming.key)
        if head is None and incoming.has_id and has_free_tombstone(tx.totals.tombstones):
            tx.put_tombstone(incoming.key, incoming.row)
        elif head is not None and not head.deleted:
            stored = tx.row(incoming.key)
            if incoming.assumed is None and is_outdated_delete(incoming.row, stored, tx.now):
                refused[incoming.key] = stored
                continue
            tx.put_tombstone(incoming.key, stored)
            refused.pop(incoming.key, None)
        else:
            continue
        deleted.append(incoming.key)
    cascade.delete_dependents(tx, deleted)
    return refused
