"""Find out whether records are older than their ledger, and erase again what the ledger says was erased."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from vademecum.engines.duckdb.ledger import SEQ_MAX, LedgerLine, newest
from vademecum.model import cascade
from vademecum.model.collections import Collection
from vademecum.model.draft import WAITING, Draft, Head
from vademecum.model.scope import PROJECTS, SESSIONS


def lines_of_copy(
    rows: Mapping[str, Head], lines: Iterable[LedgerLine], collections: Mapping[str, Collection]
) -> list[LedgerLine]:
    """Return the valid lines of a ledger if they show that the file was put back from a copy, else none.

    They do if a row is older than the line of its key. The line of "forget everything" shows nothing: it covers rows that
    may have come since.
    """
    valid = [line for line in lines if line.seq <= SEQ_MAX]
    is_copy = any(_is_outdated(rows.get(key), key, line, collections) for key, line in newest(valid).items())
    return valid if is_copy else []


def _is_outdated(
    head: Head | None, key: str, line: LedgerLine, collections: Mapping[str, Collection]
) -> bool:
    if head is None or head.seq == WAITING:
        return False
    if line.revived:
        return head.seq < line.seq and collections[key.partition("/")[0]].synced
    return not head.deleted and head.seq <= line.seq


def erase_again(draft: Draft, lines: list[LedgerLine], places: Mapping[str, str | None]) -> int:
    """Apply the ledger to restored records. Returns how many rows that the backup had died again.

    Only what has a line of its own is buried. What would die with it has left it since the backup, or it would have one,
    too: it goes to the project where it is by now (`places`), if that lives here. Else it is taken out without a
    tombstone, and devices bring it: a dead project leaves none of its sessions to the pool, which would open them, but
    those that are there by now. So does a row that died and came again: what it said before was deleted, what it says
    now is on the devices.
    """
    # As the backup has them: a death heals the rows that name the dead one, and that takes a new seq.
    came = {
        key: head.seq
        for gone in (False, True)
        for key in draft.keys(deleted=gone)
        if (head := draft.head(key))
    }
    told = newest(lines)
    forgetting = told.pop("", None)
    buried = _forget_again(draft, forgetting, came) if forgetting is not None else 0
    dead = [key for key, line in told.items() if not line.revived and _is_due(draft, key, line, came)]
    draft.prefetch(dead)
    for key in dead:
        is_here = draft.head(key) is not None
        buried += is_here
        draft.bury(key, draft.row(key) if is_here else {"id": key.partition("/")[2]})
    returning = [
        key
        for key, line in told.items()
        if line.revived and came.get(key, line.seq) < line.seq and _is_synced(draft, key)
    ]
    # Those that the ledger buries are buried by now: whatever else would go with them has left them.
    elsewhere = [*cascade.orphans(draft, dead), *_sessions_of(draft, dead)]
    draft.prefetch(elsewhere)
    staying = [key for key in elsewhere if _may_stay(draft, key, places)]
    for key in staying:
        _put_into(draft, key, places[key])
    cascade.take_out(draft, [*returning, *set(elsewhere).difference(staying)])
    cascade.heal(draft, dead)
    return buried


def _forget_again(draft: Draft, line: LedgerLine, came: Mapping[str, int]) -> int:
    draft.forgotten_at = max(draft.forgotten_at, line.forgotten_at)
    count = 0
    for key in list(draft.keys()):
        head = draft.head(key)
        if head is None:
            continue
        if head.seq == WAITING:
            if draft.row(key)["createdAt"] < line.forgotten_at:
                draft.take_out(key)
        elif came[key] <= line.seq:
            count += len(cascade.kill(draft, key))
    return count


def _is_due(draft: Draft, key: str, line: LedgerLine, came: Mapping[str, int]) -> bool:
    """Is this death to be told again?"""
    head = draft.head(key)
    if head is None:
        return _is_synced(draft, key)  # else there is no device to be told
    return not head.deleted and came[key] <= line.seq  # later: its owner brought it back to life


def _is_synced(draft: Draft, key: str) -> bool:
    """Not if nobody here has written the ledger's line."""
    collection = draft.collections.get(key.partition("/")[0])
    return collection is not None and collection.synced


def _sessions_of(draft: Draft, dead: list[str]) -> list[str]:
    """Those of the dead projects: they outlive them."""
    projects = [key for key in dead if key.startswith(PROJECTS)]
    named = sorted({key for project in projects for key in draft.dependents(project)})
    return [key for key in named if key.startswith(SESSIONS)]


def _may_stay(draft: Draft, key: str, places: Mapping[str, str | None]) -> bool:
    """Is it known where the row is by now, and is that here, too?"""
    if key not in places or draft.head(key) is None:
        return False
    project_id = places[key]
    return project_id is None or draft.life(PROJECTS + project_id) == "live"


def _put_into(draft: Draft, key: str, project_id: str | None) -> None:
    """Into the project, or into the pool."""
    row = {name: value for name, value in draft.row(key).items() if name != "projectId"}
    row |= {"projectId": project_id} if project_id is not None else {}
    draft.put(key, row, msgspec.json.encode(row))
