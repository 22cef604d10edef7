"""Store rows in segments. A segment is one row of the table `packs`: the rows that one commit wrote to one collection.

The time of a push depends on its number of statements and columns and hardly on its bytes, so fifty rows are inserted
as one. The cost of an attached file depends on its number of tables, so all collections share one table. A segment is
named by its first `seq`. A row that was replaced or deleted is stale. A segment is rewritten without its stale rows
when a commit deletes one of its rows, or when more than half of its rows are stale. An index in memory contains the
segment of each row. Reads fetch ranges of neighboring segments of one collection; DuckDB skips other segments without
an index.

A segment has a checksum, or gets one later (`compute_checksums`). `load_index` verifies heads, and the first read of a
segment verifies bodies. Later damage is noticed when the file is attached again, or the segment is rewritten or backed up.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import msgspec

from vademecum.engines.duckdb.checksums import checksum, decoded, verify
from vademecum.engines.duckdb.cursor import Cursor
from vademecum.engines.duckdb.instance import parse_cached
from vademecum.engines.duckdb.segment_index import (
    CollectionSegments,
    Entry,
    Run,
    SegmentIndex,
    SegmentName,
    SegmentPlan,
    is_at,
)
from vademecum.model.sync.transaction import WAITING, Change, RowHead, RowIndex

SEGMENT_BYTES = 256 * 2**10  # maximum size of the bodies in a segment; a larger body has its own segment

Statement = tuple[str, list[Any]]
NewChecksum = tuple[SegmentName, int, str]  # the segment's name, number of rows and checksum
_Row = tuple[int, msgspec.Raw, msgspec.Raw]  # seq, head, body
COLUMNS = "first, collection, seqs, heads, bodies, checksum"

_raws = msgspec.json.Decoder(list[msgspec.Raw])
_seqs = msgspec.json.Decoder(list[int])


class StoredRowHead(msgspec.Struct, array_like=True, gc=False):
    """A `RowHead` as it is stored, with the row's id instead of its seq. The `id` of a waiting row is its whole key."""

    id: str
    deleted: bool
    parents: tuple[str, ...]
    references: tuple[str, ...]
    size: int
    tag: str
    model: str
    chunks: int

    def at(self, seq: int) -> RowHead:
        return RowHead(seq, *msgspec.structs.astuple(self)[1:])


_head = msgspec.json.Decoder(StoredRowHead)
_heads = msgspec.json.Decoder(list[StoredRowHead])


def _seq(change: Change) -> int:
    assert change.head is not None
    return change.head.seq


# -- loading and reading ------------------------------------------------------------------------------------------


def load_index(cursor: Cursor, alias: str, collections: Sequence[str]) -> tuple[RowIndex, SegmentIndex]:
    """Read the row index and the segment index of an attached file. Raises DamagedSegment."""
    statement = f"SELECT collection, first, seqs, heads, checksum FROM {alias}.main.packs ORDER BY first"
    latest: dict[str, RowHead] = {}
    # Rows with the same parents share one tuple, which saves a third of the memory.
    shared: dict[tuple[str, ...], tuple[str, ...]] = {}
    index = SegmentIndex()
    for name, first, seqs, heads, stored_sum in cursor.execute(statement).fetchall():
        verify(name, first, seqs, stored_sum, heads=heads)
        if name not in collections:
            continue
        entries: list[Entry] = []
        for seq, stored in decoded(name, first, (_seqs.decode, seqs), (_heads.decode, heads)):
            stored.parents = shared.setdefault(stored.parents, stored.parents)
            key = f"{name}/{stored.id}"
            latest[key] = stored.at(seq)
            entries.append((seq, key))
        index[name].add(first, entries)
        if stored_sum is None:
            index[name].without_checksum.add(first)
    for (head,) in cursor.execute(f"SELECT head FROM {alias}.main.waiting").fetchall():
        stored = _head.decode(head)
        latest[stored.id] = stored.at(WAITING)
    loaded = RowIndex()
    loaded.apply({key: Change(key, None, head, b"") for key, head in latest.items()})
    for name in collections:
        _count_live(index[name], loaded)
    return loaded, index


def _count_live(segments: CollectionSegments, heads: RowIndex) -> None:
    segments.live = dict.fromkeys(segments.firsts, 0)
    for seq, key in zip(segments.seqs, segments.keys, strict=True):
        if is_at(heads, key, seq):
            segments.live[segments.segment_of(seq)] += 1


@dataclass(slots=True)
class RowLocations:
    """Where rows are stored. `keys` maps the seq of each row to its key, and `runs` are the ranges of their segments.

    `waiting` are the keys of waiting rows, which are not in segments.
    """

    keys: dict[int, str] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)


def locate_rows(index: SegmentIndex, entries: Iterable[Entry]) -> RowLocations:
    """Return where these rows are stored. For consecutive entries of one segment, the segment is looked up once."""
    locations = RowLocations()
    packs: set[SegmentName] = set()
    known, low, high = "", 0, 0
    for seq, key in entries:
        if seq == WAITING:
            locations.waiting.append(key)
            continue
        name = key.partition("/")[0]
        if name != known or not low <= seq < high:
            firsts = index[name].firsts
            at = bisect_right(firsts, seq)
            known, low, high = name, firsts[at - 1], firsts[at] if at < len(firsts) else seq + 1
            packs.add((name, low))
        locations.keys[seq] = key
    locations.runs = index.runs(packs)
    return locations


def read_bodies(cursor: Cursor, alias: str, locations: RowLocations, index: SegmentIndex) -> dict[str, bytes]:
    """Map the keys of rows to bodies. Raises DamagedSegment.

    A row that a concurrent commit has moved is missing from the result. The caller must locate it again.
    """
    found: dict[str, bytes] = {}
    keys_by_seq = locations.keys
    columns = "collection, first, seqs, bodies, checksum"
    for name, first, seqs, bodies, stored_sum in _select(cursor, alias, columns, locations.runs):
        if first not in (verified := index[name].verified):
            verify(name, first, seqs, stored_sum, bodies=bodies)
            verified.add(first)
        rows = decoded(name, first, (_seqs.decode, seqs), (_raws.decode, bodies))
        found.update([(keys_by_seq[seq], bytes(body)) for seq, body in rows if seq in keys_by_seq])
    if locations.waiting:
        statement = f"SELECT id, body FROM {alias}.main.waiting WHERE id IN (SELECT unnest(?))"
        found.update(
            (k, body.encode()) for k, body in cursor.execute(statement, [locations.waiting]).fetchall()
        )
    return found


def _read_segments(
    cursor: Cursor, alias: str, runs: Iterable[Run]
) -> Iterator[tuple[SegmentName, list[_Row], str | None]]:
    """Yield the rows and checksums of all segments in these ranges."""
    for first, name, seqs, heads, bodies, stored_sum in _select(cursor, alias, COLUMNS, runs):
        verify(name, first, seqs, stored_sum, heads=heads, bodies=bodies)
        columns = (_seqs.decode, seqs), (_raws.decode, heads), (_raws.decode, bodies)
        yield (name, first), decoded(name, first, *columns), stored_sum


def _select(cursor: Cursor, alias: str, columns: str, runs: Iterable[Run]) -> Iterator[tuple[Any, ...]]:
    statement = f"SELECT {columns} FROM {alias}.main.packs WHERE first BETWEEN ? AND ? AND collection = ?"
    for name, low, high in runs:
        yield from cursor.execute(parse_cached(cursor, statement), [low, high, name]).fetchall()


def decode_head(head: str) -> StoredRowHead:
    return _head.decode(head)


def decode_rows(name: str, first: int, seqs: str, heads: str, bodies: str) -> list[Any]:
    """Return (seq, head, body) of each row of a segment. Raises DamagedSegment."""
    return decoded(name, first, (_seqs.decode, seqs), (_heads.decode, heads), (_raws.decode, bodies))


def compute_checksums(
    cursor: Cursor,
    alias: str,
    segments: Collection[SegmentName],
    runs: Iterable[Run],
    is_valid: Callable[[str, StoredRowHead, bytes], bool],
) -> tuple[list[NewChecksum], list[SegmentName]]:
    """Compute checksums for those of `segments` that have none.

    Return two values: the new checksums, and the names of segments that get none because a row is invalid.
    """
    new_checksums: list[NewChecksum] = []
    invalid: list[SegmentName] = []
    for first, name, seqs, heads, bodies, stored_sum in _select(cursor, alias, COLUMNS, runs):
        if stored_sum is not None or (name, first) not in segments:
            continue
        rows = decode_rows(name, first, seqs, heads, bodies)
        if all(is_valid(name, head, bytes(body)) for _, head, body in rows):
            new_checksums.append(((name, first), len(rows), checksum(first, name, seqs, heads, bodies)))
        else:
            invalid.append((name, first))
    return new_checksums, invalid


# -- writing -------------------------------------------------------------------------------------------------------


def write_commit(
    cursor: Cursor,
    alias: str,
    changes: Mapping[str, Change],
    heads: RowIndex,
    index: SegmentIndex,
    segments_to_compact: Iterable[SegmentName] = (),
    more: Iterable[Statement] = (),
    new_checksums: Iterable[NewChecksum] = (),
) -> dict[str, SegmentPlan]:
    """Write the changes of a transaction, and run the statements in `more`, in one DuckDB transaction.

    If it fails, nothing is stored. The segments in `segments_to_compact` are rewritten without stale rows.
    `new_checksums` are stored for segments that have no checksum. Return the plan of each changed collection for
    `apply_commit`.
    """

    def is_current(name: str, seq: int, head: msgspec.Raw) -> bool:
        key = f"{name}/{_head.decode(head).id}"
        change = changes.get(key)
        now = change.head if change is not None else heads.rows.get(key)
        return now is not None and now.seq == seq

    plans, new_changes, rewritten = _plan(changes.values(), index)
    rewritten.update(segments_to_compact)
    packs: list[list[Any]] = []
    kept_segments = {(n, first) for n, first in rewritten if index[n].live[first] > plans[n].stale[first]}
    for name, first in rewritten:
        plans[name].rewritten[first] = 0
    for segment_name, rows, stored_sum in _read_segments(cursor, alias, index.runs(kept_segments)):
        if segment_name not in kept_segments:
            continue
        name, first = segment_name
        current_rows = [row for row in rows if is_current(name, row[0], row[1])]
        plans[name].rewritten[first] = len(current_rows)
        packs.append(_rewrite_segment(segment_name, current_rows, has_checksum=stored_sum is not None))
    for name, changed in new_changes.items():
        for batch in _cut(changed):
            plans[name].added.append([(_seq(change), change.key) for change in batch])
            packs.append(_new_segment(name, batch))
    replaced = sorted(first for _, first in rewritten)
    checksums = list(_checksum_updates(alias, new_checksums, plans, index))
    statements = [*_waiting_statements(alias, changes.values()), *_segment_statements(alias, replaced, packs)]
    commit(cursor, [*statements, *checksums, *more])
    return plans


def _plan(
    changes: Iterable[Change], index: SegmentIndex
) -> tuple[defaultdict[str, SegmentPlan], defaultdict[str, list[Change]], set[SegmentName]]:
    """Return three values: collection -> plan, collection -> rows for new segments, and the segments to rewrite."""
    plans: defaultdict[str, SegmentPlan] = defaultdict(SegmentPlan)
    new_changes: defaultdict[str, list[Change]] = defaultdict(list)
    rewritten: set[SegmentName] = set()
    for change in changes:
        name = change.key.partition("/")[0]
        if change.head is not None and change.head.seq != WAITING:
            new_changes[name].append(change)
        if change.before is not None and change.before.seq != WAITING:
            segments = index[name]
            first = segments.segment_of(change.before.seq)
            plans[name].stale[first] += 1
            remaining = segments.live[first] - plans[name].stale[first]
            if change.removes_row or 2 * remaining < segments.totals[first]:
                rewritten.add((name, first))
    return plans, new_changes, rewritten


def _cut(changes: list[Change]) -> Iterator[list[Change]]:
    """Split the rows of a commit into lists that fit a segment."""
    batch: list[Change] = []
    size = 0
    for change in changes:
        if batch and size + len(change.body) > SEGMENT_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(change)
        size += len(change.body)
    if batch:
        yield batch


def _new_segment(name: str, changes: list[Change]) -> list[Any]:
    seqs = [_seq(change) for change in changes]
    heads = [_head_fields(change.key.partition("/")[2], change.head) for change in changes]
    bodies = b",".join([change.body for change in changes]).decode()
    columns = seqs[0], name, _json(seqs), _json(heads), f"[{bodies}]"
    return [*columns, checksum(*columns)]


def _rewrite_segment(segment_name: SegmentName, rows: list[_Row], *, has_checksum: bool) -> list[Any]:
    """Return the columns of a rewritten segment.

    The new segment gets a checksum only if its rows were verified (`has_checksum`).
    """
    name, first = segment_name
    heads, bodies = (b",".join([bytes(row[at]) for row in rows]).decode() for at in (1, 2))
    columns = first, name, _json([seq for seq, _, _ in rows]), f"[{heads}]", f"[{bodies}]"
    return [*columns, checksum(*columns) if has_checksum else None]


def _head_fields(row_id: str, head: RowHead | None) -> tuple[Any, ...]:
    """Return the fields of a `StoredRowHead`."""
    assert head is not None
    return row_id, *msgspec.structs.astuple(head)[1:]


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _segment_statements(alias: str, removed: list[int], packs: list[list[Any]]) -> Iterator[Statement]:
    table = f"{alias}.main.packs"
    if removed:
        yield f"DELETE FROM {table} WHERE first IN ({', '.join('?' * len(removed))})", list(removed)
    if packs:
        marks = ", ".join(["(?, ?, ?, ?, ?, ?)"] * len(packs))
        yield (
            f"INSERT INTO {table} ({COLUMNS}) VALUES {marks}",
            list(chain.from_iterable(packs)),
        )


def _checksum_updates(
    alias: str,
    new_checksums: Iterable[NewChecksum],
    plans: defaultdict[str, SegmentPlan],
    index: SegmentIndex,
) -> Iterator[Statement]:
    """Yield the updates that store new checksums.

    Skip a segment that was rewritten after its checksum was computed, which its changed number of rows shows.
    """
    for (name, first), count, value in new_checksums:
        segments, plan = index[name], plans[name]
        if (
            first in segments.without_checksum
            and segments.totals[first] == count
            and first not in plan.rewritten
        ):
            plan.with_new_checksum.add(first)
            yield f"UPDATE {alias}.main.packs SET checksum = ? WHERE first = ?", [value, first]


def _waiting_statements(alias: str, changes: Iterable[Change]) -> list[Statement]:
    """Return the statements that delete and insert waiting rows.

    Waiting rows are stored individually, because they are few and temporary.
    """
    table = f"{alias}.main.waiting"
    leaving = [c.key for c in changes if c.before is not None and c.before.seq == WAITING]
    arriving = [c for c in changes if c.head is not None and c.head.seq == WAITING]
    statements: list[Statement] = []
    if leaving:
        statements.append((f"DELETE FROM {table} WHERE id IN (SELECT unnest(?))", [leaving]))
    if arriving:
        values = [
            [c.key for c in arriving],
            [_json(_head_fields(c.key, c.head)) for c in arriving],
            [c.body.decode() for c in arriving],
        ]
        statements.append((f"INSERT INTO {table} SELECT unnest(?), unnest(?), unnest(?)", values))
    return statements


def commit(cursor: Cursor, statements: Sequence[Statement]) -> None:
    """Run all statements in one transaction. A single statement needs no BEGIN and COMMIT.

    Omitting BEGIN and COMMIT saves two calls. Each call reacquires the GIL, which takes most of the time of a push
    under load.
    """
    calls = [(parse_cached(cursor, sql), values) for sql, values in statements]
    if len(calls) == 1:
        cursor.execute(*calls[0])
    elif calls:
        cursor.execute(parse_cached(cursor, "BEGIN"))
        try:
            for call in calls:
                cursor.execute(*call)
            cursor.execute(parse_cached(cursor, "COMMIT"))
        except BaseException:
            cursor.execute("ROLLBACK")
            raise
