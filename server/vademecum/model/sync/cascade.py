"""What a death or a birth does to other rows. Everything here happens inside the transaction that causes it.

A row dies with any of its parents (`Collection.parents`); one that merely names a dead row follows it or is healed
(`Reference.on_death`). Each victim takes its own `seq`, so devices and the index learn of it by the ordinary pull.
"""

from __future__ import annotations

import msgspec

from vademecum.model.schema.collections import Collection, Json
from vademecum.model.sync.transaction import WAITING, Transaction


def delete_with_dependents(tx: Transaction, *keys: str) -> list[str]:
    """Bury `keys` and all that cannot live without them; heal what named them. Returns the keys that died."""
    tx.prefetch(keys)
    dead = [key for key in keys if _bury(tx, key)]
    return [*dead, *delete_dependents(tx, dead)]


def delete_dependents(tx: Transaction, dead: list[str]) -> list[str]:
    """Bury all that cannot live without `dead`, which were buried just now, and heal what merely named one that died.
    Returns the keys of those buried here.

    Once for many deaths: a document may be borrowed by thousands of sessions, and is read and written as a whole.
    """
    victims: list[str] = []
    level = dead
    tx.prefetch(_kin(tx, dead))
    while level:
        left = find_dependents_to_delete(tx, level)
        tx.prefetch(left)
        level = [key for key in left if _bury(tx, key)]
        victims += level
    drop_dangling_references(tx, [*dead, *victims])
    return victims


def purge_with_dependents(tx: Transaction, keys: list[str]) -> None:
    """Take out rows, and all that cannot live without them, as if they had never come."""
    level = keys
    while level:
        left = find_dependents_to_delete(tx, level)
        for key in level:
            tx.purge(key)
        level = [key for key in left if tx.head(key) is not None]


def find_dependents_to_delete(tx: Transaction, gone: list[str]) -> list[str]:
    """Keys of what lives or waits and cannot live without one of `gone`; sorted."""
    return sorted(
        {
            key
            for parent in gone
            for key in tx.dependents(parent)
            if _lives_by(tx, key, parent) or _follows(tx, key, parent)
        }
    )


def drop_dangling_references(tx: Transaction, dead: list[str]) -> None:
    """Heal what merely names one of `dead`."""
    bereaved = {key for name in dead for key in tx.dependents(name)}
    tx.prefetch(bereaved)
    for key in sorted(bereaved):
        _heal(tx, key)


def _bury(tx: Transaction, key: str) -> bool:
    """Bury a row if it lives or waits. Says whether it did."""
    head = tx.head(key)
    if head is None or head.deleted:
        return False
    tx.put_tombstone(key, tx.row(key))
    return True


def _lives_by(tx: Transaction, key: str, parent: str) -> bool:
    head = tx.head(key)
    return head is not None and parent in head.parents


def _follows(tx: Transaction, key: str, dead: str) -> bool:
    fields = _followed_by(tx, key, dead)
    row_id = dead.partition("/")[2]
    return bool(fields) and any(tx.row(key).get(field) == row_id for field in fields)


def _followed_by(tx: Transaction, key: str, dead: str) -> list[str]:
    """The fields of the row that take it along, should one of them name `dead`."""
    head, gone = tx.head(key), tx.head(dead)
    if head is None or gone is None or head.parents != gone.parents:
        return []
    collection = dead.partition("/")[0]
    return [
        reference.field
        for reference in tx.collections[key.partition("/")[0]].references
        if reference.on_death == "follow" and reference.target == collection
    ]


def _kin(tx: Transaction, dead: list[str]) -> set[str]:
    """All that may follow `dead`, and what may follow that: read together, for a memory may have a long history."""
    found: set[str] = set()
    todo = list(dead)
    while todo:
        one = todo.pop()
        near = [key for key in tx.dependents(one) if key not in found and _followed_by(tx, key, one)]
        found.update(near)
        todo += near
    return found


def _heal(tx: Transaction, key: str) -> None:
    """Store `key` again without what it names and is dead. `updatedAt` stays: nobody edited it."""
    head, row = tx.head(key), tx.row(key)
    whole = without_dangling_references(tx, tx.collections[key.partition("/")[0]], row)
    if whole is not row:  # a fact may have been marked long ago
        waiting = head is not None and head.seq == WAITING
        tx.put(key, whole, msgspec.json.encode(whole), waiting=waiting)


def without_dangling_references(tx: Transaction, collection: Collection, row: Json) -> Json:
    """`row` without references to dead rows; the same object if there are none."""
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
            if reference.on_death != "mark":
                result = {name: v for name, v in result.items() if name != reference.field}
            elif not row.get(reference.mark_field):
                result = {**result, reference.mark_field: True}
    return result


def find_merged_project(tx: Transaction, row: Json) -> str | None:
    """The project that the row's own has become a part of; None if it has not."""
    project_id = row.get("projectId")
    if not isinstance(project_id, str) or tx.row_state(f"projects/{project_id}") == "live":
        return None
    merged = f"merged/{project_id}"
    return str(tx.row(merged)["projectId"]) if tx.row_state(merged) == "live" else None


def admit_waiting_children(tx: Transaction, parent: str) -> None:
    """A row came alive: those that waited for it come in, and those that waited for them. A project that was a part of
    another is one by itself again."""
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
                whole = without_dangling_references(tx, tx.collections[key.partition("/")[0]], row)
                body = tx.body(key) if whole is row else msgspec.json.encode(whole)
                tx.put(key, whole, body, same_text=True)
                todo.append(key)


def _waits_for(tx: Transaction, key: str, parent: str) -> bool:
    head = tx.head(key)
    return head is not None and head.seq == WAITING and parent in head.parents
