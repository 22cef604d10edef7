"""Detect records that lack acknowledged commits, and repeat the erasures that the ledger lists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
from msgspec.structs import replace

from vademecum.engines.duckdb.erasure_ledger import LedgerLine, newest
from vademecum.engines.duckdb.user_database import new_epoch
from vademecum.model.memory.scope import PROJECTS, SESSIONS
from vademecum.model.schema.collections import Collection
from vademecum.model.sync import cascade
from vademecum.model.sync.transaction import SEQ_JUMP, WAITING, RowHead, RowIndex, Transaction


@dataclass(frozen=True, slots=True)
class Rollback:
    """Evidence that a records file lacks acknowledged commits.

    `lines` is the content of the ledger, `seq` the highest seq in the records file, and `mark` the highest acknowledged
    seq, or 0 if there is no mark.
    """

    lines: list[LedgerLine]
    seq: int
    mark: int


def detect_rollback(
    row_index: RowIndex, lines: list[LedgerLine], mark: int, collections: Mapping[str, Collection]
) -> Rollback | None:
    """Return the evidence that a file lost the end of its log or was replaced by an old copy, or None.

    The evidence is a highest seq below the mark, or a row that is older than the ledger line of its key. The line of
    "forget everything" is no evidence, because devices may have uploaded rows again since then.
    """
    is_older = row_index.seq < mark or any(
        _is_outdated(row_index.rows.get(key), key, line, collections) for key, line in newest(lines).items()
    )
    return Rollback(lines, row_index.seq, mark) if is_older else None


def start_epoch_after_rollback(tx: Transaction, rollback: Rollback) -> int:
    """Start a new epoch with a seq above all acknowledged ones, and apply the ledger, as a restore does.

    Return the number of rows that were deleted again.
    """
    highest = max(tx.seq, rollback.mark, *(line.seq for line in rollback.lines))
    tx.begin_epoch(new_epoch(), highest + SEQ_JUMP)
    count = replay_erasures(tx, rollback.lines, {})
    tx.meta = replace(tx.meta, restored_seq=tx.seq)
    return count


def _is_outdated(
    head: RowHead | None, key: str, line: LedgerLine, collections: Mapping[str, Collection]
) -> bool:
    if head is None or head.seq == WAITING:
        return False
    if line.revived:
        return head.seq < line.seq and collections[key.partition("/")[0]].synced
    return not head.deleted and head.seq <= line.seq


def replay_erasures(tx: Transaction, lines: list[LedgerLine], places: Mapping[str, str | None]) -> int:
    """Apply the ledger to restored records. Return the number of rows that were deleted again.

    Only rows with their own ledger line become tombstones. A dependent without a line has moved since the backup: it is
    moved to its current project if that project exists in the restored records. Otherwise it is removed without a
    tombstone, and devices upload it again. `places` maps keys to current projects; None is the pool.

    The sessions of a deleted project do not fall back to the pool, where their memory would be visible, unless they
    have moved there. A row that was deleted and then revived is removed, too: the backup contains its deleted content,
    and the devices have its current content.
    """
    # Remember the restored seq of each row, because deleting a row gives a new seq to the rows that refer to it.
    restored_seqs = {
        key: head.seq
        for deleted in (False, True)
        for key in tx.keys(deleted=deleted)
        if (head := tx.head(key))
    }
    line_of = newest(lines)
    forgetting = line_of.pop("", None)
    deleted_count = _forget_again(tx, forgetting, restored_seqs) if forgetting is not None else 0
    deleted_keys = [
        key for key, line in line_of.items() if not line.revived and _is_due(tx, key, line, restored_seqs)
    ]
    tx.prefetch(deleted_keys)
    for key in deleted_keys:
        is_here = tx.head(key) is not None
        deleted_count += is_here
        tx.put_tombstone(key, tx.row(key) if is_here else {"id": key.partition("/")[2]})
    returning = [
        key
        for key, line in line_of.items()
        if line.revived and restored_seqs.get(key, line.seq) < line.seq and _is_synced(tx, key)
    ]
    # The rows listed in the ledger are tombstones now. Their remaining dependents have moved since the backup.
    elsewhere = [*cascade.find_dependents_to_delete(tx, deleted_keys), *_sessions_of(tx, deleted_keys)]
    tx.prefetch(elsewhere)
    staying = [key for key in elsewhere if _may_stay(tx, key, places)]
    for key in staying:
        _put_into(tx, key, places[key])
    cascade.purge_with_dependents(tx, [*returning, *set(elsewhere).difference(staying)])
    cascade.drop_dangling_references(tx, deleted_keys)
    return deleted_count


def _forget_again(tx: Transaction, line: LedgerLine, restored_seqs: Mapping[str, int]) -> int:
    tx.forget_everything(max(tx.meta.forgotten_at, line.forgotten_at))
    keys = list(tx.keys())
    forgotten = [key for key in keys if WAITING < restored_seqs[key] <= line.seq]
    count = len(cascade.delete_with_dependents(tx, *forgotten))
    for key in keys:
        head = tx.head(key)
        if head is not None and head.seq == WAITING and tx.row(key)["createdAt"] < line.forgotten_at:
            tx.purge(key)
    return count


def _is_due(tx: Transaction, key: str, line: LedgerLine, restored_seqs: Mapping[str, int]) -> bool:
    """Return whether the row of this ledger line must become a tombstone again."""
    head = tx.head(key)
    if head is None:
        return _is_synced(tx, key)  # devices need no tombstone of a row that they do not sync
    return not head.deleted and restored_seqs[key] <= line.seq  # a later seq means a revived row


def _is_synced(tx: Transaction, key: str) -> bool:
    """Return whether devices sync this row. The collection is unknown if another version wrote the ledger line."""
    collection = tx.collections.get(key.partition("/")[0])
    return collection is not None and collection.synced


def _sessions_of(tx: Transaction, deleted_keys: list[str]) -> list[str]:
    """Return the sessions of deleted projects, which the deletion of a project does not delete."""
    projects = [key for key in deleted_keys if key.startswith(PROJECTS)]
    dependents = sorted({key for project in projects for key in tx.dependents(project)})
    return [key for key in dependents if key.startswith(SESSIONS)]


def _may_stay(tx: Transaction, key: str, places: Mapping[str, str | None]) -> bool:
    """Return whether the row's current place is known: the pool, or a project that exists in these records."""
    if key not in places or tx.head(key) is None:
        return False
    project_id = places[key]
    return project_id is None or tx.row_state(PROJECTS + project_id) == "live"


def _put_into(tx: Transaction, key: str, project_id: str | None) -> None:
    """Move a row into a project or, if `project_id` is None, into the pool."""
    row = {name: value for name, value in tx.row(key).items() if name != "projectId"}
    row |= {"projectId": project_id} if project_id is not None else {}
    tx.put(key, row, msgspec.json.encode(row))
