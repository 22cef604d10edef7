"""Merge two versions of a row in three ways, so that edits of devices that were offline survive.

`base` is the server row that the device assumed, `stored` the current server row and `new` the device's row. A field
that one side changed takes that side's value. A field that both sides changed differently keeps the stored value, and
the app keeps the losing text. Sets merge as sets, counters add both deltas, and times take the later one.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from vademecum.model.schema.collections import Collection, Json

_MISSING: Any = object()


def merge(collection: Collection, base: Json, stored: Json, new: Json) -> Json:
    """Return the row with the changes of both sides. The arguments must have no `syncError` and are not changed."""

    def present(names: Iterable[str]) -> list[str]:
        """Return the fields that at least one side has, because a merge adds no other fields."""
        return [name for name in names if name in stored or name in new]

    merged = dict(stored)
    special = {
        *collection.sets,
        *collection.counters,
        *collection.latest,
        *collection.frozen,
        *collection.server_fields,
    }
    grouped = {name for group in collection.together for name in group}
    alone = [(name,) for name in {**base, **stored, **new} if name not in special and name not in grouped]
    for group in (*collection.together, *alone):
        _take_changed(group, base, stored, new, merged)
    for name in present(collection.sets):
        merged[name] = _merge_set(base.get(name, []), stored.get(name, []), new.get(name, []))
    for name in present(collection.counters):
        merged[name] = max(0, int(stored.get(name, 0)) + int(new.get(name, 0)) - int(base.get(name, 0)))
    for name in present(collection.latest):
        merged[name] = max(stored.get(name, ""), new.get(name, ""))
    if merged not in (stored, new):
        merged["updatedAt"] = _next_millisecond(merged["updatedAt"])
    return merged


def merge_without_base(collection: Collection, stored: Json, new: Json, now: str) -> Json:
    """Merge two versions of a row without a known base.

    Sets are united, counters take the larger value, and other fields come from the later version by `updatedAt`,
    capped at `now`. On a tie the stored row wins. The arguments are not changed.
    """
    is_newer = min(new["updatedAt"], now) > min(stored["updatedAt"], now)
    united = dict(new if is_newer else stored)
    for name in (*collection.frozen, *collection.server_fields):
        if name in stored:
            united[name] = stored[name]
    for name in collection.sets:
        if name in stored or name in new:
            united[name] = list(dict.fromkeys([*stored.get(name, []), *new.get(name, [])]))
    for name in collection.counters:
        if name in stored or name in new:
            united[name] = max(stored.get(name, 0), new.get(name, 0))
    for name in collection.latest:
        if name in stored or name in new:
            united[name] = max(stored.get(name, ""), new.get(name, ""))
    if united not in (stored, new):
        united["updatedAt"] = _next_millisecond(united["updatedAt"])
    return united


def _next_millisecond(time: str) -> str:
    """Return the time one millisecond later, so that devices see that a merged row differs from both versions."""
    try:
        later = datetime.fromisoformat(time) + timedelta(milliseconds=1)
    except OverflowError:
        return time
    return later.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def is_valid_base(collection: Collection, base: Json) -> bool:
    """Return whether a merge can use `base`, which comes from the device and was not validated by a schema."""
    sets = [base.get(name, []) for name in collection.sets]
    return (
        all(isinstance(s, list) and all(isinstance(item, str) for item in s) for s in sets)
        and all(type(base.get(name, 0)) is int for name in collection.counters)
        and all(isinstance(base.get(name, ""), str) for name in collection.latest)
    )


def _take_changed(group: tuple[str, ...], base: Json, stored: Json, new: Json, merged: Json) -> None:
    base_values, stored_values, new_values = (
        [side.get(name, _MISSING) for name in group] for side in (base, stored, new)
    )
    if new_values == base_values or stored_values != base_values:
        return
    for name, value in zip(group, new_values, strict=True):
        if value is _MISSING:
            merged.pop(name, None)
        else:
            merged[name] = value


def _merge_set(base: list[str], stored: list[str], new: list[str]) -> list[str]:
    """Merge lists of ids as sets. The merge takes linear time, because each list may have ten thousand ids."""
    removed = set(base) - set(new)
    known = {*base, *stored}
    remaining = [item for item in stored if item not in removed]
    return remaining + [item for item in dict.fromkeys(new) if item not in known]
