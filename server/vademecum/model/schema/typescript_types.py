"""Generate TypeScript types of the rows from the JSON Schemas for RxDB."""

from __future__ import annotations

from collections.abc import Mapping

from vademecum.model.schema.collections import Collection, Json
from vademecum.model.schema.json_schema import json_schema

_HEAD = """// Written by `make schemas` from the structs in server/vademecum/model/schema/collections.py. Not to be edited.
"""
_RELATION = """import type { Collections } from "./rows.ts";

/** A field with one or several ids of rows of another collection, and what happens when such a row is deleted: the row is
 * deleted too (`cascade`), the id is removed (`unset`), a field becomes true (`flag`), or the row is deleted if both have
 * the same parents (`follow`). */
export interface Relation {
  of: keyof Collections;
  field: string;
  to: keyof Collections;
  onDelete: "cascade" | "unset" | "flag" | "follow";
  flagField?: string;
}
"""
_SCALARS = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def typescript(registry: Mapping[str, Collection]) -> str:
    """Return a module with an interface for each collection (`DocumentDoc`), and `Collections`, which maps names to them."""
    interfaces = [_interface(collection) for collection in registry.values()]
    names = [f"  {name}: {collection.struct.__name__}Doc;" for name, collection in registry.items()]
    index = "\n".join(["export interface Collections {", *names, "}"])
    return "\n".join([_HEAD, *interfaces, index, ""])


def relations(registry: Mapping[str, Collection]) -> str:
    """Return a module with the relations between collections."""
    lines = [_HEAD, _RELATION, "export const RELATIONS: readonly Relation[] = ["]
    for name, collection in registry.items():
        for field, target in collection.parents.items():
            lines.append(f'  {{ of: "{name}", field: "{field}", to: "{target}", onDelete: "cascade" }},')
        for reference in collection.references:
            end = f'onDelete: "{reference.on_delete}"'
            if reference.flag_field:
                end += f', flagField: "{reference.flag_field}"'
            lines.append(
                f'  {{ of: "{name}", field: "{reference.field}", to: "{reference.target}", {end} }},'
            )
    return "\n".join([*lines, "];", ""])


def _interface(collection: Collection) -> str:
    fields = _fields(json_schema(collection), "  ")
    lines = [
        f"export interface {collection.struct.__name__}Doc {{",
        *fields,
        "  _deleted?: boolean;",
        "}",
        "",
    ]
    return "\n".join(lines)


def _fields(schema: Json, indent: str) -> list[str]:
    required = set(schema["required"])
    return [
        f"{indent}{name}{'' if name in required else '?'}: {_type(field, indent)};"
        for name, field in schema["properties"].items()
    ]


def _type(schema: Json, indent: str) -> str:
    if "enum" in schema:
        return " | ".join(f'"{value}"' for value in schema["enum"])
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return " | ".join(_kind(kind, schema, indent) for kind in kinds)


def _kind(kind: str, schema: Json, indent: str) -> str:
    if kind == "array":
        return f"{_type(schema['items'], indent)}[]"
    if kind == "object":
        return "\n".join(["{", *_fields(schema, indent + "  "), indent + "}"])
    return _SCALARS[kind]
