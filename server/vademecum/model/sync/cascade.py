"""Apply cascades: when a row is deleted or added, change the rows that depend on it in the same transaction.

A row is deleted with any of its parents (`Collection.parents`). A row that only references a deleted row is deleted,
too, or its reference is dropped or marked (`Reference.on_delete`). Each changed row gets its own `seq`, so devices and
the index receive it by an ordinary pull.
"""

from __future__ import annotations

import msgspec

from vademecum.model.schema.collections import Collection, Json
from vademecum.model.sync.transaction import WAITING, Transaction


def delete_with_dependents(tx: Transaction, *keys: str) -> list[str]:
    """Delete `keys` and their dependents, and drop references to them. Return the deleted keys."""
    tx.prefetch(keys)
    deleted = [key for key in keys if _delete(tx, key)]
    return [*deleted, *delete_dependents(tx, deleted)]


def delete_dependents(tx: Transaction, deleted: list[str]) -> list[str]:
    """Delete the dependents of rows that are already deleted, and drop the references to all these rows.

    Return the keys of the dependents. Call this once for many rows: thousands of deleted sessions may have borrowed one
    document, and each call would read and write the whole document.
    """
    cascaded: list[str] = []
    level = deleted
    tx.prefetch(_find_followers(tx, deleted))
    while level:
        dependents = find_dependents_to_delete(tx, level)
        tx.prefetch(dependents)
        level = [key for key in dependents if _delete(tx, key)]
        cascaded += level
    drop_dangling_references(tx, [*deleted, *cascaded])
    return cascaded


def purge_with_dependents(tx: Transaction, keys: list[str]) -> None:
    """Remove rows and their dependents without tombstones."""
    level = keys
    while level:
        dependents = find_dependents_to_delete(tx, level)
        for key in level:
            tx.purge(key)
        level = [key for key in dependents if tx.head(key) is not None]


def find_dependents_to_delete(tx: Transaction, removed: list[str]) -> list[str]:
    """Return the sorted keys of the live and waiting rows that must be deleted with one of `removed`."""
    return sorted(
        {
            key
            for parent in removed
            for key in tx.dependents(parent)
            if _is_child(tx, key, parent) or _is_following(tx, key, parent)
        }
    )


def drop_dangling_references(tx: Transaction, deleted: list[str]) -> None:
    """Drop or mark all references to the deleted rows."""
    referencing = {key for target in deleted for key in tx.dependents(target)}
    tx.prefetch(referencing)
    for key in sorted(referencing):
        _drop_references_of(tx, key)


def _delete(tx: Transaction, key: str) -> bool:
    """Delete a row if it is live or waiting. Return whether it was deleted."""
    head = tx.head(key)
    if head is None or head.deleted:
        return False
    tx.put_tombstone(key, tx.row(key))
    return True


def _is_child(tx: Transaction, key: str, parent: str) -> bool:
    head = tx.head(key)
    return head is not None and parent in head.parents


def _is_following(tx: Transaction, key: str, deleted: str) -> bool:
    fields = _following_fields(tx, key, deleted)
    row_id = deleted.partition("/")[2]
    return bool(fields) and any(tx.row(key).get(field) == row_id for field in fields)


def _following_fields(tx: Transaction, key: str, deleted: str) -> list[str]:
    """Return the `follow` reference fields through which deleting the row `deleted` also deletes the row `key`."""
    head, target = tx.head(key), tx.head(deleted)
    if head is None or target is None or head.parents != target.parents:
        return []
    collection = deleted.partition("/")[0]
    return [
        reference.field
        for reference in tx.collections[key.partition("/")[0]].references
        if reference.on_delete == "follow" and reference.target == collection
    ]


def _find_followers(tx: Transaction, deleted: list[str]) -> set[str]:
    """Return all rows that `follow` references may delete together with `deleted`, so that one statement reads them.

    A memory may have a long history of superseded versions, each of which follows the next.
    """
    found: set[str] = set()
    todo = list(deleted)
    while todo:
        target = todo.pop()
        followers = [
            key for key in tx.dependents(target) if key not in found and _following_fields(tx, key, target)
        ]
        found.update(followers)
        todo += followers
    return found


def _drop_references_of(tx: Transaction, key: str) -> None:
    """Store the row without references to deleted rows. `updatedAt` stays, because no user edited the row."""
    head, row = tx.head(key), tx.row(key)
    cleaned = without_dangling_references(tx, tx.collections[key.partition("/")[0]], row)
    if cleaned is not row:  # store nothing if the reference was already marked earlier
        waiting = head is not None and head.seq == WAITING
        tx.put(key, cleaned, msgspec.json.encode(cleaned), waiting=waiting)


def without_dangling_references(tx: Transaction, collection: Collection, row: Json) -> Json:
    """Return `row` without references to deleted rows. Return the same object if it has none."""
    result = row
    for reference in collection.references:
        value = row.get(reference.field)
        if not value:
            continue
        if isinstance(value, list):
            alive = [i for i in value if tx.row_state(f"{reference.target}/{i}") != "deleted"]
            if len(alive) != len(value):
                result = {**result, reference.field: alive}
        elif tx.row_state(f"{reference.target}/{value}") == "deleted":
            if reference.on_delete != "flag":
                result = {name: v for name, v in result.items() if name != reference.field}
            elif not row.get(reference.flag_field):
                result = {**result, reference.flag_field: True}
    return result


def find_merged_project(tx: Transaction, row: Json) -> str | None:
    """Return the id of the project that the row's project was merged into, or None."""
    project_id = row.get("projectId")
    if not isinstance(project_id, str) or tx.row_state(f"projects/{project_id}") == "live":
        return None
    merged = f"merged/{project_id}"
    return str(tx.row(merged)["projectId"]) if tx.row_state(merged) == "live" else None


def admit_waiting_children(tx: Transaction, parent: str) -> None:
    """Admit the rows that waited for `parent`, which is live now, and then the rows that waited for those.

    If `parent` is a project that was merged into another one, delete the record of that merge.
    """
    collection, _, row_id = parent.partition("/")
    if collection == "projects":
        delete_with_dependents(tx, f"merged/{row_id}")
    if not tx.dependents(parent):
        return
    todo = [parent]
    while todo:
        arrived = todo.pop()
        waiting = [k for k in tx.dependents(arrived) if _waits_for(tx, k, arrived)]
        if waiting:
            tx.prefetch(waiting)
        for key in waiting:
            head = tx.head(key)
            if head is not None and all(tx.row_state(p) == "live" for p in head.parents):
                row = tx.row(key)
                cleaned = without_dangling_references(tx, tx.collections[key.partition("/")[0]], row)
                body = tx.body(key) if cleaned is row else msgspec.json.encode(cleaned)
                tx.put(key, cleaned, body, same_text=True)
                todo.append(key)


def _waits_for(tx: Transaction, key: str, parent: str) -> bool:
    head = tx.head(key)
    return head is not None and head.seq == WAITING and parent in head.parents
