"""What a death or a birth does to other rows. Everything here happens inside the transaction that causes it.

A row dies with any of its parents (`Collection.parents`); a row that merely names a dead one is healed
(`Reference.on_death`). Each victim takes its own `seq`, so devices and the index learn of it by the ordinary pull.
"""

from __future__ import annotations

import msgspec

from vademecum.model.collections import Collection, Json
from vademecum.model.draft import WAITING, Draft


def kill(draft: Draft, key: str) -> list[str]:
    """Bury `key` and all that cannot live without it; heal what named them. Returns the keys that died."""
    dead: list[str] = []
    todo = [key]
    while todo:
        victim = todo.pop()
        head = draft.head(victim)
        if head is None or head.deleted:
            continue
        draft.bury(victim, draft.row(victim))
        dead.append(victim)
        todo += _bereave(draft, victim)
    return dead


def kill_unknown(draft: Draft, key: str, row: Json) -> None:
    """Bury a row that was never here: what waited for it, or names it already, learns of its death."""
    draft.bury(key, row)
    for orphan in _bereave(draft, key):
        kill(draft, orphan)


def _bereave(draft: Draft, victim: str) -> list[str]:
    """Heal the rows that merely named the dead one; returns those that cannot live without it."""
    dependents = draft.dependents(victim)
    draft.prefetch(dependents)
    orphans: list[str] = []
    for key in dependents:
        head = draft.head(key)
        if head is not None and victim in head.parents:
            orphans.append(key)
        else:
            reheal(draft, key)
    return orphans


def reheal(draft: Draft, key: str) -> None:
    """Store `key` again without what it names and is dead. `updatedAt` stays: nobody edited it."""
    head = draft.head(key)
    row = healed(draft, draft.collections[key.partition("/")[0]], draft.row(key))
    draft.put(key, row, msgspec.json.encode(row), waiting=head is not None and head.seq == WAITING)


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
            if reference.on_death == "leave":
                result = {name: v for name, v in result.items() if name != reference.field}
            elif not row.get(reference.mark_field):
                result = {**result, reference.mark_field: True}
    return result


def welcome(draft: Draft, parent: str) -> None:
    """A row came alive: those that waited for it come in, and those that waited for them."""
    todo = [parent]
    while todo:
        arrived = todo.pop()
        waiting = [k for k in draft.dependents(arrived) if _waits_for(draft, k, arrived)]
        draft.prefetch(waiting)
        for key in waiting:
            head = draft.head(key)
            if head is not None and all(draft.life(p) == "live" for p in head.parents):
                row = draft.row(key)
                whole = healed(draft, draft.collections[key.partition("/")[0]], row)
                draft.put(key, whole, draft.body(key) if whole is row else msgspec.json.encode(whole))
                todo.append(key)


def _waits_for(draft: Draft, key: str, parent: str) -> bool:
    head = draft.head(key)
    return head is not None and head.seq == WAITING and parent in head.parents
