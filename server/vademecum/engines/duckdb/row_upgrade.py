"""Upgrade the rows of a user's file to the current schema versions, when the file is opened.

Each batch is one transaction that also records how far the upgrade has come, so an interrupted upgrade continues. Rows
keep their `seq`, so devices, which upgrade their own rows, receive nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import msgspec
import structlog

from vademecum.engines.duckdb.checksums import DamagedSegment, checksum, verify
from vademecum.engines.duckdb.cursor import Cursor
from vademecum.engines.duckdb.segments import (
    COLUMNS,
    Statement,
    StoredRowHead,
    commit,
    decode_head,
    decode_rows,
)
from vademecum.model.schema.row_upgrades import UPGRADED_COLLECTIONS, upgrade_row
from vademecum.model.sync.quotas import charged_bytes

UPGRADED_TO = "upgraded_to"  # key of `meta`, which the migration 0005_rows_v1.sql adds
BATCH_SEGMENTS = 16
REPORT_INTERVAL_S = 5.0

_log = structlog.get_logger("vademecum.records")


def upgrade_rows(cursor: Cursor, alias: str, upgraded_to: int, account: str) -> None:
    """Upgrade all rows after the segment `upgraded_to`. Raises DamagedSegment."""
    names = ", ".join(f"'{name}'" for name in UPGRADED_COLLECTIONS)
    packs = f"{alias}.main.packs WHERE collection IN ({names}) AND first"
    firsts = cursor.execute(f"SELECT first FROM {packs} > ? ORDER BY first", [upgraded_to]).fetchall()
    reported = time.monotonic()
    for at in range(0, len(firsts), BATCH_SEGMENTS):
        batch = [first for (first,) in firsts[at : at + BATCH_SEGMENTS]]
        _upgrade_batch(cursor, alias, f"{packs} BETWEEN ? AND ?", batch[0], batch[-1])
        if time.monotonic() - reported > REPORT_INTERVAL_S:
            reported = time.monotonic()
            _log.info("upgrading_rows", account=account, segments=at + len(batch), of=len(firsts))
    commit(cursor, [*_upgrade_waiting(cursor, alias), _finish(alias)])
    if firsts:
        _log.info("upgraded_rows", account=account, segments=len(firsts))


def _upgrade_batch(cursor: Cursor, alias: str, packs: str, first: int, last: int) -> None:
    """Replace the segments from `first` to `last`. Deleting and inserting is faster than an UPDATE of long texts."""
    segments = cursor.execute(f"SELECT {COLUMNS} FROM {packs}", [first, last]).fetchall()
    values = [value for segment in segments for value in _upgrade_segment(*segment)]
    marks = ", ".join(["(?, ?, ?, ?, ?, ?)"] * len(segments))
    insert = f"INSERT INTO {alias}.main.packs ({COLUMNS}) VALUES {marks}"
    commit(cursor, [(f"DELETE FROM {packs}", [first, last]), (insert, values), _progress(alias, last)])


def _upgrade_segment(
    first: int, name: str, seqs: str, heads: str, bodies: str, stored_sum: str | None
) -> list[Any]:
    """Return the columns of the upgraded segment."""
    verify(name, first, seqs, stored_sum, heads=heads, bodies=bodies)
    new_heads: list[StoredRowHead] = []
    new_bodies: list[msgspec.Raw] = []
    for _, head, body in decode_rows(name, first, seqs, heads, bodies):
        new_head, new_body = _upgrade_row(name, first, head, bytes(body))
        new_heads.append(new_head)
        new_bodies.append(msgspec.Raw(new_body))
    heads, bodies = (msgspec.json.encode(values).decode() for values in (new_heads, new_bodies))
    new_sum = None if stored_sum is None else checksum(first, name, seqs, heads, bodies)
    return [first, name, seqs, heads, bodies, new_sum]


def _upgrade_waiting(cursor: Cursor, alias: str) -> Iterator[Statement]:
    for key, head, body in cursor.execute(f"SELECT id, head, body FROM {alias}.main.waiting").fetchall():
        name = key.partition("/")[0]
        if name in UPGRADED_COLLECTIONS:
            new_head, new_body = _upgrade_row(name, 0, decode_head(head), body.encode())
            yield (
                f"UPDATE {alias}.main.waiting SET head = ?, body = ? WHERE id = ?",
                [msgspec.json.encode(new_head).decode(), new_body.decode(), key],
            )


def _upgrade_row(name: str, first: int, head: StoredRowHead, body: bytes) -> tuple[StoredRowHead, bytes]:
    try:
        row: dict[str, Any] = upgrade_row(name, msgspec.json.decode(body))
    except (KeyError, TypeError, AttributeError) as error:
        raise DamagedSegment(name, first, f"has a row that cannot be upgraded ({head.id})") from error
    upgraded = msgspec.json.encode(row)
    size = 0 if head.deleted else charged_bytes(name, row, len(upgraded))
    return msgspec.structs.replace(head, size=size), upgraded


def _progress(alias: str, upgraded_to: int) -> Statement:
    return f"UPDATE {alias}.main.meta SET value = ? WHERE name = ?", [str(upgraded_to), UPGRADED_TO]


def _finish(alias: str) -> Statement:
    return f"DELETE FROM {alias}.main.meta WHERE name = ?", [UPGRADED_TO]
