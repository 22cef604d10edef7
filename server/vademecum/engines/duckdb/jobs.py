"""The table `jobs` of a user's file. It is small, and read when it is needed: nothing of it is kept in memory. And how many
questions were asked for them on the last day that had any: in `meta`, because jobs go, and begin anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

from vademecum.engines.duckdb.instance import Cursor
from vademecum.engines.duckdb.packs import Statement
from vademecum.model.jobs import Job, Kind

COLUMNS = ", ".join(Job.__struct_fields__)
_ARRAYS = ", ".join(["unnest(?)"] * len(Job.__struct_fields__))
_VALUES = ", ".join(["?"] * len(Job.__struct_fields__))
ASKED = "asked"  # in `meta`: the day and the number
OPEN = "state IN ('waiting', 'running')"  # what runs when the worker looks was cut off by a crash


def by_ids(cursor: Cursor, alias: str, ids: Sequence[str]) -> dict[str, Job]:
    return {job.id: job for job in _select(cursor, alias, *_among(ids))} if ids else {}


def next_due(cursor: Cursor, alias: str, kinds: Sequence[Kind]) -> Job | None:
    """Of those of these kinds that are to be tried, the one that is due first."""
    clause = f"WHERE {OPEN} AND kind IN (SELECT unnest(?)) ORDER BY due, seq, id LIMIT 1"
    return next(iter(_select(cursor, alias, clause, list(kinds))), None)


def failed(cursor: Cursor, alias: str) -> list[Job]:
    return _select(cursor, alias, "WHERE state = 'failed'")


def survey(cursor: Cursor, alias: str, most: int) -> tuple[list[Job], dict[str, int]]:
    """The newest jobs, and how many are in each state, at one moment."""
    cursor.execute("BEGIN")
    try:
        newest = _select(cursor, alias, "ORDER BY seq DESC, id LIMIT ?", most)
        counts = cursor.execute(f"SELECT state, count(*) FROM {alias}.main.jobs GROUP BY state").fetchall()
    finally:
        cursor.execute("COMMIT")
    return newest, dict(counts)


def asked_on(cursor: Cursor, alias: str, day: str) -> int:
    """How many questions were asked on this day, if none was later."""
    rows = cursor.execute(f"SELECT value FROM {alias}.main.meta WHERE name = ?", [ASKED]).fetchall()
    last, _, count = rows[0][0].partition(" ") if rows else ("", "", "0")
    return int(count) if last == day else 0


def asked_more(cursor: Cursor, alias: str, day: str, count: int) -> dict[str, str]:
    """What `meta` is to say when so many more were asked."""
    return {ASKED: f"{day} {max(0, asked_on(cursor, alias, day) + count)}"} if count else {}


def statements(alias: str, jobs: Mapping[str, Job | None], absent: Set[str] = frozenset()) -> list[Statement]:
    """Write the jobs in the place of those with their ids; None: there is none any more. `absent`: ids that no job has."""
    table = f"{alias}.main.jobs"
    gone = [job_id for job_id in jobs if job_id not in absent]
    made = [_fields(job) for job in jobs.values() if job is not None]
    return [*_deleted(table, gone), *_inserted(table, made)]


def _deleted(table: str, ids: list[str]) -> list[Statement]:
    clause, value = _among(ids)
    return [(f"DELETE FROM {table} {clause}", [value])] if ids else []


def _among(ids: Sequence[str]) -> tuple[str, Any]:
    """One is what there nearly always is, and a statement without arrays costs half."""
    return ("WHERE id = ?", ids[0]) if len(ids) == 1 else ("WHERE id IN (SELECT unnest(?))", list(ids))


def _inserted(table: str, made: list[tuple[Any, ...]]) -> list[Statement]:
    """As `_among`."""
    if len(made) == 1:
        return [(f"INSERT INTO {table} ({COLUMNS}) VALUES ({_VALUES})", [*made[0]])]
    columns = [list(column) for column in zip(*made, strict=True)]
    return [(f"INSERT INTO {table} ({COLUMNS}) SELECT {_ARRAYS}", columns)] if made else []


def _fields(job: Job) -> tuple[Any, ...]:
    return tuple(getattr(job, name) for name in Job.__struct_fields__)


def unsay(alias: str) -> Statement:
    """What models have answered is forgotten; those of the jobs that are open ask again."""
    return f"UPDATE {alias}.main.jobs SET found = '' WHERE found <> ''", []


def _select(cursor: Cursor, alias: str, clause: str, *values: Any) -> list[Job]:
    rows = cursor.execute(f"SELECT {COLUMNS} FROM {alias}.main.jobs {clause}", list(values)).fetchall()
    return [Job(*row) for row in rows]
