"""Generate the JSON Schema of a collection from its struct, in the form that RxDB expects.

RxDB also validates tombstones, whose required fields are blank. So the schema allows more values than the struct: it
contains no `pattern` or `minLength`. The server validates live rows with the struct.
"""

from __future__ import annotations

import types
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, UnsetType

from vademecum.model.schema.collections import Collection, Json

_PRIMITIVES: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


def json_schema(collection: Collection) -> Json:
    """Return the RxDB schema of a collection: its own `schema`, or else a generated one.

    The schema lacks `_deleted`, because RxDB adds it.
    """
    if collection.schema is not None:
        return dict(collection.schema)
    body = object_schema(collection.struct)
    del body["properties"]["_deleted"]
    body["properties"][collection.primary_key]["maxLength"] = 100
    return {
        "title": collection.name,
        "description": (collection.struct.__doc__ or "").strip().split("\n")[0]
        or f"One row of {collection.name}",
        "version": collection.version,
        "primaryKey": collection.primary_key,
        **body,
        "indexes": list(collection.indexes),
    }


def object_schema(struct: type[msgspec.Struct]) -> Json:
    hints = get_type_hints(struct, include_extras=True)
    properties: Json = {}
    required: list[str] = []
    for field in msgspec.structs.fields(struct):
        properties[field.encode_name] = _of(hints[field.name])
        if field.required:
            required.append(field.encode_name)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def in_javascript(node: Any) -> Any:
    """Return the schema with patterns in JavaScript syntax, as JSON Schema requires: `$` instead of Python's `\\Z`."""
    if isinstance(node, dict):
        own = {"pattern": node["pattern"].replace(r"\Z", "$")} if isinstance(node.get("pattern"), str) else {}
        return {key: in_javascript(value) for key, value in node.items()} | own
    return [in_javascript(value) for value in node] if isinstance(node, list) else node


def _of(hint: Any) -> Json:
    if get_origin(hint) is Annotated:
        inner, *metas = get_args(hint)
        schema = _of(inner)
        return {**schema, **_bounds(metas, schema["type"] == "array")}
    if get_origin(hint) in (Union, types.UnionType):
        return _union([a for a in get_args(hint) if a is not UnsetType])
    if get_origin(hint) is Literal:
        values = list(get_args(hint))
        return {"type": "string", "enum": values, "maxLength": max(map(len, values))}
    if get_origin(hint) is list:
        return {"type": "array", "items": _of(get_args(hint)[0])}
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return object_schema(hint)
    return {"type": _PRIMITIVES[hint]}


def _union(members: list[Any]) -> Json:
    if len(members) == 1:
        return _of(members[0])
    (other,) = (m for m in members if m is not type(None))
    schema = _of(other)
    return {**schema, "type": [schema["type"], "null"]}


def _bounds(metas: list[Any], of_array: bool) -> Json:
    """Return only those bounds that blank values satisfy, because tombstones have blank fields."""
    found: Json = {}
    for meta in metas:
        assert isinstance(meta, Meta)
        if meta.max_length is not None:
            found["maxItems" if of_array else "maxLength"] = meta.max_length
        if meta.ge is not None:
            found["minimum"] = meta.ge
        if meta.le is not None:
            found["maximum"] = meta.le
    return found
