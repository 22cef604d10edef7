"""The table `taken` of a user's file: ids of the events that have become rows. Read when it is needed, as `jobs` is."""

from __future__ import annotations

from collections.abc import Sequence

from vademecum.engines.duckdb.cursor import Cursor
from vademecum.engines.duckdb.segments import Statement


def select_ingested(cursor: Cursor, alias: str, ids: Sequence[str]) -> set[str]:
    """Those of these events that have been taken up."""
    if not ids:
        return set()
    query = f"SELECT id FROM {alias}.main.taken WHERE id IN (SELECT unnest(?))"
    return {row[0] for row in cursor.execute(query, [list(ids)]).fetchall()}


def is_any(cursor: Cursor, alias: str) -> bool:
    return bool(cursor.execute(f"SELECT id FROM {alias}.main.taken LIMIT 1").fetchall())


def statements(
    alias: str, ids: Sequence[str], at: str, forget_before: str, *, forget_all: bool
) -> list[Statement]:
    """Note that these were taken up at this time; and forget those that were before `forget_before`. `forget_all`: what
    was taken up until now goes, these too: an id tells the millisecond of an agent's step."""
    table = f"{alias}.main.taken"
    if forget_all:
        return [(f"DELETE FROM {table}", [])]
    found: list[Statement] = []
    if forget_before:
        found.append((f"DELETE FROM {table} WHERE moment < ?", [forget_before]))
    if ids:
        found.append((f"INSERT INTO {table} SELECT unnest(?), ?", [list(ids), at]))
    return found
