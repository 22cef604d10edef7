"""Create tombstones, which are deleted rows without their content."""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

import msgspec
from msgspec import UNSET

from vademecum.model.schema.collections import Collection, Id, Json, Row, Time


def make_tombstone(collection: Collection, row: Json, now: str) -> Json:
    """Return the tombstone of `row`: its id, parents and times. Optional fields are absent.

    All remaining required fields get the blank value of their type, because RxDB also validates tombstones. The blank
    value of an enum is its first value. `now` replaces invalid times.
    """
    kept_fields = {collection.primary_key, "createdAt", "updatedAt", *collection.parents}
    tombstone: Json = {}
    for name, blank_value in _blank_values(collection.struct):
        if name in kept_fields:
            value = row.get(name)
            is_timestamp = name in ("createdAt", "updatedAt")
            if _is_valid(Time if is_timestamp else Id, value):
                tombstone[name] = value
            elif blank_value is not UNSET:
                tombstone[name] = now if is_timestamp else blank_value
        elif blank_value is not UNSET:
            tombstone[name] = blank_value
    tombstone["_deleted"] = True
    return tombstone


def _is_valid(kind: Any, value: object) -> bool:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True


_blank_cache: dict[type[Row], tuple[tuple[str, Any], ...]] = {}


def _blank_values(struct: type[Row]) -> tuple[tuple[str, Any], ...]:
    blank_values = _blank_cache.get(struct)
    if blank_values is None:
        info = msgspec.inspect.type_info(struct)
        hints = get_type_hints(struct)
        assert isinstance(info, msgspec.inspect.StructType)
        blank_values = tuple(
            (f.encode_name, _blank_value_of(f.type, hints[f.name]) if f.required else UNSET)
            for f in info.fields
            if f.encode_name not in ("_deleted", "syncError")
        )
        _blank_cache[struct] = blank_values
    return blank_values


def _blank_value_of(kind: msgspec.inspect.Type, hint: Any) -> Any:
    inspect = msgspec.inspect
    match kind:
        case inspect.LiteralType():
            return get_args(hint)[0]  # msgspec sorts the values; the blank value is the first in the source
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
