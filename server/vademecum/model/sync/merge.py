"""Three-way merge of one row, so that two devices that were offline never lose each other's borrow.

`base` is what the device believed the server held, `stored` what it holds, `new` what the device wants. A field
that one side changed takes that side; one that both changed differently keeps the stored value (the app keeps
the losing text). Sets merge as sets, counters add both deltas, times take the later.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from vademecum.model.schema.collections import Collection, Json

_MISSING: Any = object()


def merge(collection: Collection, base: Json, stored: Json, new: Json) -> Json:
    """The row that holds what both sides did. All three are without `syncError`; none is changed."""

    def present(names: Iterable[str]) -> list[str]:
        """A field that neither side has stays absent: a merge invents nothing."""
        return [name for name in names if name in stored or name in new]

    merged = dict(stored)
    special = {*collection.sets, *collection.counters, *collection.latest, *collection.frozen}
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
    """Return two versions of a row without a known base as one: sets joined, the larger counts, other fields of the later
    version. `updatedAt` decides, capped at `now`; on a tie the stored row. None of the arguments is changed."""
    is_newer = min(new["updatedAt"], now) > min(stored["updatedAt"], now)
    united = dict(new if is_newer else stored)
    for name in collection.frozen:
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
    """A row that is neither of two versions has the time of neither, or a device would not see that they differ."""
    try:
        later = datetime.fromisoformat(time) + timedelta(milliseconds=1)
    except OverflowError:
        return time
    return later.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def is_valid_base(collection: Collection, base: Json) -> bool:
    """Is what a device says it assumed of the right kind? It is the device's word, and no schema has looked at it."""
    sets = [base.get(name, []) for name in collection.sets]
    return (
        all(isinstance(s, list) and all(isinstance(item, str) for item in s) for s in sets)
        and all(type(base.get(name, 0)) is int for name in collection.counters)
        and all(isinstance(base.get(name, ""), str) for name in collection.latest)
    )


def _take_changed(group: tuple[str, ...], base: Json, stored: Json, new: Json, merged: Json) -> None:
    ours, theirs, wanted = ([side.get(name, _MISSING) for name in group] for side in (base, stored, new))
    if wanted == ours or theirs != ours:
        return
    for name, value in zip(group, wanted, strict=True):
        if value is _MISSING:
            merged.pop(name, None)
        else:
            merged[name] = value


def _merge_set(base: list[str], stored: list[str], new: list[str]) -> list[str]:
    """Looked up, not looked through: a list may have ten thousand ids, and a device may claim to have known any number."""
    removed = set(base) - set(new)
    known = {*base, *stored}
    kept = [item for item in stored if item not in removed]
    return kept + [item for item in dict.fromkeys(new) if item not in known]
