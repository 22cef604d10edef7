"""What a death or a birth does to other rows. Everything here happens inside the transaction that causes it.

A row dies with any of its parents (`Collection.parents`); one that merely names a dead row follows it or is healed
(`Reference.on_death`). Each victim takes its own `seq`, so devices and the index learn of it by the ordinary pull.
"""

from __future__ import annotations

import msgspec

from vademecum.model.schema.collections import Collection, Json
from vademecum.model.sync.transaction import WAITING, Draft


def kill(draft: Draft, *keys: str) -> list[str]:
    """Bury `keys` and all that cannot live without them; heal what named them. Returns the keys that died."""
    draft.prefetch(keys)
    dead = [key for key in keys if _bury(draft, key)]
    return [*dead, *bereave(draft, dead)]


def bereave(draft: Draft, dead: list[str]) -> list[str]:
    """Bury all that cannot live without `dead`, which were buried just now, and heal what merely named one that died.
    Returns the keys of those buried here.

    Once for many deaths: a document may be borrowed by thousands of sessions, and is read and written as a whole.
    """
    victims: list[str] = []
    level = dead
    draft.prefetch(_kin(draft, dead))
    while level:
        left = orphans(draft, level)
        draft.prefetch(left)
        level = [key for key in left if _bury(draft, key)]
        victims += level
    heal(draft, [*dead, *victims])
    return victims


def take_out(draft: Draft, keys: list[str]) -> None:
    """Take out rows, and all that cannot live without them, as if they had never come."""
    level = keys
    while level:
        left = orphans(draft, level)
        for key in level:
            draft.take_out(key)
        level = [key for key in left if draft.head(key) is not None]


def orphans(draft: Draft, gone: list[str]) -> list[str]:
    """Keys of what lives or waits and cannot live without one of `gone`; sorted."""
    return sorted(
        {
            key
            for parent in gone
            for key in draft.dependents(parent)
            if _lives_by(draft, key, parent) or _follows(draft, key, parent)
        }
    )


def heal(draft: Draft, dead: list[str]) -> None:
    """Heal what merely names one of `dead`."""
    bereaved = {key for name in dead for key in draft.dependents(name)}
    draft.prefetch(bereaved)
    for key in sorted(bereaved):
        _heal(draft, key)


def _bury(draft: Draft, key: str) -> bool:
    """Bury a row if it lives or waits. Says whether it did."""
    head = draft.head(key)
    if head is None or head.deleted:
        return False
    draft.bury(key, draft.row(key))
    return True


def _lives_by(draft: Draft, key: str, parent: str) -> bool:
    head = draft.head(key)
    return head is not None and parent in head.parents


def _follows(draft: Draft, key: str, dead: str) -> bool:
    fields = _followed_by(draft, key, dead)
    row_id = dead.partition("/")[2]
    return bool(fields) and any(draft.row(key).get(field) == row_id for field in fields)


def _followed_by(draft: Draft, key: str, dead: str) -> list[str]:
    """The fields of the row that take it along, should one of them name `dead`."""
    head, gone = draft.head(key), draft.head(dead)
    if head is None or gone is None or head.parents != gone.parents:
        return []
    collection = dead.partition("/")[0]
    return [
        reference.field
        for reference in draft.collections[key.partition("/")[0]].references
        if reference.on_death == "follow" and reference.target == collection
    ]


def _kin(draft: Draft, dead: list[str]) -> set[str]:
    """All that may follow `dead`, and what may follow that: read together, for a memory may have a long history."""
    found: set[str] = set()
    todo = list(dead)
    while todo:
        one = todo.pop()
        near = [key for key in draft.dependents(one) if key not in found and _followed_by(draft, key, one)]
        found.update(near)
        todo += near
    return found


def _heal(draft: Draft, key: str) -> None:
    """Store `key` again without what it names and is dead. `updatedAt` stays: nobody edited it."""
    head, row = draft.head(key), draft.row(key)
    whole = healed(draft, draft.collections[key.partition("/")[0]], row)
    if whole is not row:  # a fact may have been marked long ago
        waiting = head is not None and head.seq == WAITING
        draft.put(key, whole, msgspec.json.encode(whole), waiting=waiting)


def healed(draft: Draft, collection: Collection, row: Json) -> Json:
    """`row` without references to dead rows; the same object if there are none."""
    result = row
    for reference in collection.references:
        value = row.get(reference.field)
        if not value:
            continue
        if isinstance(value, list):
            alive = [i for i in value if draft.life(f"{reference.target}/{i}") != "dead"]
            if len(alive) != len(value):
                result = {**result, reference.field: alive}
        elif draft.life(f"{reference.target}/{value}") == "dead":
            if reference.on_death != "mark":
                result = {name: v for name, v in result.items() if name != reference.field}
            elif not row.get(reference.mark_field):
                result = {**result, reference.mark_field: True}
    return result


def merged_into(draft: Draft, row: Json) -> str | None:
    """The project that the row's own has become a part of; None if it has not."""
    project_id = row.get("projectId")
    if not isinstance(project_id, str) or draft.life(f"projects/{project_id}") == "live":
        return None
    merged = f"merged/{project_id}"
    return str(draft.row(merged)["projectId"]) if draft.life(merged) == "live" else None


def welcome(draft: Draft, parent: str) -> None:
    """A row came alive: those that waited for it come in, and those that waited for them. A project that was a part of
    another is one by itself again."""
    collection, _, row_id = parent.partition("/")
    if collection == "projects":
        kill(draft, f"merged/{row_id}")
    if not draft.dependents(parent):
        return
    todo = [parent]
    while todo:
        arrived = todo.pop()
        waiting = [k for k in draft.dependents(arrived) if _waits_for(draft, k, arrived)]
        if waiting:
            draft.prefetch(waiting)
        for key in waiting:
            head = draft.head(key)
            if head is not None and all(draft.life(p) == "live" for p in head.parents):
                row = draft.row(key)
                whole = healed(draft, draft.collections[key.partition("/")[0]], row)
                body = draft.body(key) if whole is row else msgspec.json.encode(whole)
                draft.put(key, whole, body, same_text=True)
                todo.append(key)


def _waits_for(draft: Draft, key: str, parent: str) -> bool:
    head = draft.head(key)
    return head is not None and head.seq == WAITING and parent in head.parents
