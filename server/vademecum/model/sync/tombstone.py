"""Blanks: what is left of a row when it is deleted."""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

import msgspec
from msgspec import UNSET

from vademecum.model.schema.collections import Collection, Id, Json, Row, Time


def make_tombstone(collection: Collection, row: Json, now: str) -> Json:
    """The tombstone of `row`: id, parents and times; all else is the blank of its type, optional fields gone.

    Required fields stay because RxDB validates tombstones too. An enum's blank is its first value.
    """
    kept = {collection.primary_key, "createdAt", "updatedAt", *collection.parents}
    tombstone: Json = {}
    for name, blank_value in _blanks(collection.struct):
        if name in kept:
            value = row.get(name)
            time = name in ("createdAt", "updatedAt")
            if _is(Time if time else Id, value):
                tombstone[name] = value
            elif blank_value is not UNSET:
                tombstone[name] = now if time else blank_value
        elif blank_value is not UNSET:
            tombstone[name] = blank_value
    tombstone["_deleted"] = True
    return tombstone


def _is(kind: Any, value: object) -> bool:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True


_blank_cache: dict[type[Row], tuple[tuple[str, Any], ...]] = {}


def _blanks(struct: type[Row]) -> tuple[tuple[str, Any], ...]:
    found = _blank_cache.get(struct)
    if found is None:
        info = msgspec.inspect.type_info(struct)
        hints = get_type_hints(struct)
        assert isinstance(info, msgspec.inspect.StructType)
        found = tuple(
            (f.encode_name, _blank_of(f.type, hints[f.name]) if f.required else UNSET)
            for f in info.fields
            if f.encode_name not in ("_deleted", "syncError")
        )
        _blank_cache[struct] = found
    return found


def _blank_of(kind: msgspec.inspect.Type, hint: Any) -> Any:
    inspect = msgspec.inspect
    match kind:
        case inspect.LiteralType():
            return get_args(hint)[0]  # msgspec sorts the values; the blank is the first as written
        case inspect.ListType():
            return []
        case inspect.BoolType():
            return False
        case inspect.IntType() | inspect.FloatType():
            return 0
        case inspect.UnionType(types=types) if any(isinstance(t, inspect.NoneType) for t in types):
            return None
        case inspect.StructType() | inspect.DictType():
            return {}
        case _:
            return ""
