"""Find out whether records lack acknowledged commits, and erase again what the ledger says was erased."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from vademecum.engines.duckdb.erasure_ledger import LedgerLine, newest
from vademecum.engines.duckdb.user_database import SEQ_JUMP, new_epoch
from vademecum.model.memory.scope import PROJECTS, SESSIONS
from vademecum.model.schema.collections import Collection
from vademecum.model.sync import cascade
from vademecum.model.sync.transaction import WAITING, Draft, Head, Heads


@dataclass(frozen=True, slots=True)
class Rollback:
    """Evidence that records lack acknowledged commits. `lines`: of the ledger. `seq`: the highest in the file. `mark`: the
    highest acknowledged one, or 0."""

    lines: list[LedgerLine]
    seq: int
    mark: int


def rollback_of(
    heads: Heads, lines: list[LedgerLine], mark: int, collections: Mapping[str, Collection]
) -> Rollback | None:
    """Return the evidence that a file lost the end of its log or was put back from a copy, or None.

    It is evidence if the highest seq is below the mark, or if a row is older than the ledger line of its key. The line of
    "forget everything" shows nothing: it covers rows that may have come since.
    """
    is_older = heads.seq < mark or any(
        _is_outdated(heads.rows.get(key), key, line, collections) for key, line in newest(lines).items()
    )
    return Rollback(lines, heads.seq, mark) if is_older else None


def begin_again(draft: Draft, rollback: Rollback) -> int:
    """Begin a new epoch above all that was acknowledged, and apply the ledger, as a restore does. Return the number of
    rows that were deleted again."""
    highest = max(draft.seq, rollback.mark, *(line.seq for line in rollback.lines))
    draft.begin_epoch(new_epoch(), highest + SEQ_JUMP)
    count = erase_again(draft, rollback.lines, {})
    draft.restored_seq = draft.seq
    return count


def _is_outdated(
    head: Head | None, key: str, line: LedgerLine, collections: Mapping[str, Collection]
) -> bool:
    if head is None or head.seq == WAITING:
        return False
    if line.revived:
        return head.seq < line.seq and collections[key.partition("/")[0]].synced
    return not head.deleted and head.seq <= line.seq


def erase_again(draft: Draft, lines: list[LedgerLine], places: Mapping[str, str | None]) -> int:
    """Apply the ledger to restored records. Return the number of rows that were deleted again.

    Only rows with a ledger line of their own become tombstones. A dependent without a line has moved since the backup:
    it is put into its current project (`places`) if that project exists here. Otherwise it is removed without a
    tombstone, and devices upload it again. The sessions of a deleted project do not fall back to the pool, where their
    memory would be visible, unless they have moved there. A row that was deleted and revived is removed too: its
    restored content was deleted, and its current content is on the devices.
    """
    # Remember each seq as restored: deleting a row changes the rows that refer to it, which then take a new seq.
    restored_seqs = {
        key: head.seq
        for gone in (False, True)
        for key in draft.keys(deleted=gone)
        if (head := draft.head(key))
    }
    line_of = newest(lines)
    forgetting = line_of.pop("", None)
    deleted_count = _forget_again(draft, forgetting, restored_seqs) if forgetting is not None else 0
    deleted_keys = [
        key for key, line in line_of.items() if not line.revived and _is_due(draft, key, line, restored_seqs)
    ]
    draft.prefetch(deleted_keys)
    for key in deleted_keys:
        is_here = draft.head(key) is not None
        deleted_count += is_here
        draft.bury(key, draft.row(key) if is_here else {"id": key.partition("/")[2]})
    returning = [
        key
        for key, line in line_of.items()
        if line.revived and restored_seqs.get(key, line.seq) < line.seq and _is_synced(draft, key)
    ]
    # The rows of the ledger are tombstones now. Their remaining dependents have moved since the backup.
    elsewhere = [*cascade.orphans(draft, deleted_keys), *_sessions_of(draft, deleted_keys)]
    draft.prefetch(elsewhere)
    staying = [key for key in elsewhere if _may_stay(draft, key, places)]
    for key in staying:
        _put_into(draft, key, places[key])
    cascade.take_out(draft, [*returning, *set(elsewhere).difference(staying)])
    cascade.heal(draft, deleted_keys)
    return deleted_count


def _forget_again(draft: Draft, line: LedgerLine, restored_seqs: Mapping[str, int]) -> int:
    draft.forgotten_at = max(draft.forgotten_at, line.forgotten_at)
    count = 0
    for key in list(draft.keys()):
        head = draft.head(key)
        if head is None:
            continue
        if head.seq == WAITING:
            if draft.row(key)["createdAt"] < line.forgotten_at:
                draft.take_out(key)
        elif restored_seqs[key] <= line.seq:
            count += len(cascade.kill(draft, key))
    return count


def _is_due(draft: Draft, key: str, line: LedgerLine, restored_seqs: Mapping[str, int]) -> bool:
    """Return whether devices need the tombstone of this line again."""
    head = draft.head(key)
    if head is None:
        return _is_synced(draft, key)  # devices do not have rows of other collections
    return not head.deleted and restored_seqs[key] <= line.seq  # with a later seq, it was revived


def _is_synced(draft: Draft, key: str) -> bool:
    """Return whether devices sync this row. A line with an unknown collection comes from another version."""
    collection = draft.collections.get(key.partition("/")[0])
    return collection is not None and collection.synced


def _sessions_of(draft: Draft, deleted_keys: list[str]) -> list[str]:
    """Return the sessions of deleted projects, which outlive their project."""
    projects = [key for key in deleted_keys if key.startswith(PROJECTS)]
    named = sorted({key for project in projects for key in draft.dependents(project)})
    return [key for key in named if key.startswith(SESSIONS)]


def _may_stay(draft: Draft, key: str, places: Mapping[str, str | None]) -> bool:
    """Return whether the row's current project is known and exists here."""
    if key not in places or draft.head(key) is None:
        return False
    project_id = places[key]
    return project_id is None or draft.life(PROJECTS + project_id) == "live"


def _put_into(draft: Draft, key: str, project_id: str | None) -> None:
    """Move a row into a project, or into the pool."""
    row = {name: value for name, value in draft.row(key).items() if name != "projectId"}
    row |= {"projectId": project_id} if project_id is not None else {}
    draft.put(key, row, msgspec.json.encode(row))
