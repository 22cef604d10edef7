"""Access the table `taken` of a user's file, which contains the ids of ingested events."""

from __future__ import annotations

from collections.abc import Sequence

from vademecum.engines.duckdb.cursor import Cursor
from vademecum.engines.duckdb.segments import Statement


def select_ingested(cursor: Cursor, alias: str, ids: Sequence[str]) -> set[str]:
    """Return which of these events were ingested."""
    if not ids:
        return set()
    query = f"SELECT id FROM {alias}.main.taken WHERE id IN (SELECT unnest(?))"
    return {row[0] for row in cursor.execute(query, [list(ids)]).fetchall()}


def is_any(cursor: Cursor, alias: str) -> bool:
    return bool(cursor.execute(f"SELECT id FROM {alias}.main.taken LIMIT 1").fetchall())


def statements(
    alias: str, ids: Sequence[str], at: str, forget_before: str, *, forget_all: bool
) -> list[Statement]:
    """Return the statements that record `ids` as ingested at `at` and delete the ids recorded before `forget_before`.

    If `forget_all` is true, the statements delete all ids and record none, because an id discloses the time of an
    agent's step.
    """
    table = f"{alias}.main.taken"
    if forget_all:
        return [(f"DELETE FROM {table}", [])]
    found: list[Statement] = []
    if forget_before:
        found.append((f"DELETE FROM {table} WHERE moment < ?", [forget_before]))
    if ids:
        found.append((f"INSERT INTO {table} SELECT unnest(?), ?", [list(ids), at]))
    return found
