"""Access the table `jobs` of a user's file.

Jobs that are not done are kept in memory, because each turn creates a job and each step of a job would look it up.
Finished jobs are read only when their row is edited. The table `meta` stores two further values. One is the last day
with LLM requests and their number, which cannot be derived from jobs, because jobs may be deleted and restarted. The
other is the seq up to which all turns have jobs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import chain
from typing import Any

from msgspec.structs import astuple

from vademecum.engines.duckdb.cursor import Cursor
from vademecum.engines.duckdb.segments import Statement
from vademecum.model.memory.jobs import Job, StoredJobs
from vademecum.model.schema.timestamps import day
from vademecum.model.sync.transaction import Transaction

FIELDS = Job.__struct_fields__
COLUMNS = ", ".join(FIELDS)
_ARRAYS = ", ".join(["unnest(?)"] * len(FIELDS))
_VALUES = ", ".join(["?"] * len(FIELDS))
LLM_REQUESTS = "asked"  # key in `meta`; its value is the last day with requests and their number
EXTRACTED_UP_TO = "followed"  # key in `meta`; its value is the seq up to which turns have jobs, or ""
# This condition leaves out jobs that are done without an attempt. They belong to imported turns, whose extracted data
# was imported with them.
ATTEMPTED = "WHERE state <> 'done' OR attempts > 0"
UPDATES_MAX = 4  # the maximum of jobs to UPDATE; if more change, they are deleted and inserted again


def load_jobs(cursor: Cursor, alias: str, meta: Mapping[str, str]) -> StoredJobs:
    """Read the jobs that are kept in memory."""
    last_day, _, count = meta.get(LLM_REQUESTS, " 0").partition(" ")
    extracted = meta.get(EXTRACTED_UP_TO)
    return StoredJobs(
        open={job.id: job for job in _select(cursor, alias, "WHERE state <> 'done'")},
        extracted_up_to_seq=int(extracted) if extracted else None,
        last_llm_requests=(last_day, int(count)),
    )


def read_jobs(cursor: Cursor, alias: str, ids: Sequence[str]) -> dict[str, Job]:
    return {job.id: job for job in _select(cursor, alias, *_where_ids(ids))} if ids else {}


def list_jobs(cursor: Cursor, alias: str, limit: int) -> tuple[list[Job], dict[str, int]]:
    """Return two values from one snapshot: the newest jobs, and the number of jobs in each state."""
    cursor.execute("BEGIN")
    try:
        newest = _select(cursor, alias, f"{ATTEMPTED} ORDER BY seq DESC, id LIMIT ?", limit)
        count = f"SELECT state, count(*) FROM {alias}.main.jobs {ATTEMPTED} GROUP BY state"
        counts = cursor.execute(count).fetchall()
    finally:
        cursor.execute("COMMIT")
    return newest, dict(counts)


def meta_changes(tx: Transaction, before: StoredJobs) -> dict[str, str]:
    """Return the entries of `meta` that the transaction changes."""
    changed: dict[str, str] = {}
    if tx.jobs.extracted_up_to_seq != before.extracted_up_to_seq:
        changed[EXTRACTED_UP_TO] = (
            "" if tx.jobs.extracted_up_to_seq is None else str(tx.jobs.extracted_up_to_seq)
        )
    if tx.jobs.llm_request_count:
        changed[LLM_REQUESTS] = " ".join(map(str, _llm_requests(tx)))
    return changed


def _llm_requests(tx: Transaction) -> tuple[str, int]:
    today = day(tx.now)
    return today, max(0, tx.jobs.llm_requests_on(today))


def apply_commit(tx: Transaction, stored: StoredJobs) -> None:
    """Apply a committed transaction to memory."""
    stored.apply(tx.jobs.changed)
    stored.last_llm_requests = _llm_requests(tx) if tx.jobs.llm_request_count else stored.last_llm_requests
    stored.extracted_up_to_seq = tx.jobs.extracted_up_to_seq


def statements(
    alias: str, jobs: Mapping[str, Job | None], known: Mapping[str, Job], missing: Set[str] = frozenset()
) -> list[Statement]:
    """Return the statements that store `jobs`, which maps ids to jobs. None deletes the job.

    `known` contains jobs as they are in the table. `missing` contains ids that are not in the table.
    """
    table = f"{alias}.main.jobs"
    changed = {i: job for i, job in jobs.items() if job is not None and i in known}
    if len(changed) > UPDATES_MAX:
        changed = {}
    deleted = [i for i in jobs if i not in missing and i not in changed]
    new = [astuple(job) for i, job in jobs.items() if job is not None and i not in changed]
    updated = (_update(table, known[i], job) for i, job in changed.items())
    return [*_delete(table, deleted), *_insert(table, new), *chain.from_iterable(updated)]


def _update(table: str, before: Job, job: Job) -> Iterator[Statement]:
    """Yield an UPDATE of the changed columns only: the cost of a statement grows with its columns."""
    new = {name: getattr(job, name) for name in FIELDS if getattr(job, name) != getattr(before, name)}
    if new:
        yield f"UPDATE {table} SET {', '.join(f'{n} = ?' for n in new)} WHERE id = ?", [*new.values(), job.id]


def _delete(table: str, ids: list[str]) -> list[Statement]:
    clause, value = _where_ids(ids)
    return [(f"DELETE FROM {table} {clause}", [value])] if ids else []


def _where_ids(ids: Sequence[str]) -> tuple[str, Any]:
    """Return a WHERE clause for the ids, and its value.

    A single id, the common case, needs no array: a statement without arrays takes half the time.
    """
    return ("WHERE id = ?", ids[0]) if len(ids) == 1 else ("WHERE id IN (SELECT unnest(?))", list(ids))


def _insert(table: str, new: list[tuple[Any, ...]]) -> list[Statement]:
    """Return the INSERT statement. For a single job it has no arrays, which halves its time."""
    if len(new) == 1:
        return [(f"INSERT INTO {table} ({COLUMNS}) VALUES ({_VALUES})", [*new[0]])]
    columns = [list(column) for column in zip(*new, strict=True)]
    return [(f"INSERT INTO {table} ({COLUMNS}) SELECT {_ARRAYS}", columns)] if new else []


def _select(cursor: Cursor, alias: str, clause: str, *values: Any) -> list[Job]:
    rows = cursor.execute(f"SELECT {COLUMNS} FROM {alias}.main.jobs {clause}", list(values)).fetchall()
    return [Job(*row) for row in rows]
