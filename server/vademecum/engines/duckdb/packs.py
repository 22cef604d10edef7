"""Packs: how rows lie in a user's file. A row of the table `packs` is what one commit wrote to one collection.

What a push costs is its statements and their columns, hardly its bytes, so fifty rows go in as one. And what an open
file costs is its tables, in memory and in time to attach, so all collections share one. A pack is named by its first
`seq`. Rows that were written again since, or died, are stale: they stay in their pack, unread, until a
delete touches it or half of it is stale; then it is written again without them. Memory knows where each row lies,
and asks for packs by their names: the index finds each by itself, where a range would read 2,048 of them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import msgspec

from vademecum.engines.duckdb.cursor import Cursor
from vademecum.engines.duckdb.instance import parsed
from vademecum.model.draft import WAITING, Change, Head, Heads

PACK_BYTES = 256 * 2**10  # bodies of one pack, unless a single one is larger
LOOKUP_MAX = 500  # packs asked for at once; far more, and the index would not be used
TIDY_FROM = 1000  # stale entries that memory bears before it looks whether to drop them

Entry = tuple[int, str]  # seq and key of a row
PackName = tuple[str, int]  # collection, and first seq
Statement = tuple[str, list[Any]]
_Row = tuple[int, msgspec.Raw, msgspec.Raw]  # seq, head, body
COLUMNS = "first, collection, seqs, heads, bodies"

_raws = msgspec.json.Decoder(list[msgspec.Raw])
_seqs = msgspec.json.Decoder(list[int])


class StoredHead(msgspec.Struct, array_like=True, gc=False):
    """A `Head` as it lies in the file: the same fields, but for the first, which is the row's id (of a waiting row its
    whole key)."""

    id: str
    deleted: bool
    parents: tuple[str, ...]
    references: tuple[str, ...]
    size: int
    tag: str
    model: str
    chunks: int

    def at(self, seq: int) -> Head:
        return Head(seq, *msgspec.structs.astuple(self)[1:])


_head = msgspec.json.Decoder(StoredHead)
_heads = msgspec.json.Decoder(list[StoredHead])


@dataclass(slots=True)
class Shelf:
    """The packs of one collection. `seqs` and `keys` go side by side in the order of seq, stale rows among them."""

    seqs: list[int] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    firsts: list[int] = field(default_factory=list)  # ascending
    totals: dict[int, int] = field(default_factory=dict)  # first -> rows in the pack
    live: dict[int, int] = field(default_factory=dict)  # first -> of these, not stale

    def pack_of(self, seq: int) -> int:
        return self.firsts[bisect_right(self.firsts, seq) - 1]

    def add(self, first: int, entries: Iterable[Entry]) -> None:
        seqs, keys = zip(*entries, strict=True)
        self.seqs += seqs
        self.keys += keys
        self.firsts.append(first)
        self.totals[first] = self.live[first] = len(seqs)

    def remove(self, first: int) -> None:
        del self.firsts[bisect_left(self.firsts, first)], self.totals[first], self.live[first]

    def tidy(self, heads: Heads) -> None:
        """Forget stale entries when they are more than those that count."""
        if len(self.seqs) > TIDY_FROM + 2 * sum(self.live.values()):
            kept = [(s, k) for s, k in zip(self.seqs, self.keys, strict=True) if is_at(heads, k, s)]
            self.seqs, self.keys = [s for s, _ in kept], [k for _, k in kept]


@dataclass(slots=True)
class Plan:
    """What a commit does to the packs of one collection; memory follows when it is done."""

    added: list[list[Entry]] = field(default_factory=list)
    stale: defaultdict[int, int] = field(
        default_factory=lambda: defaultdict(int)
    )  # first -> rows that become so
    rewritten: dict[int, int] = field(default_factory=dict)  # first -> rows that stay; 0: the pack goes


class Shelves:
    """Where the rows of one user lie. Read by many; changed by `follow` alone, after the commit."""

    def __init__(self) -> None:
        self._of: defaultdict[str, Shelf] = defaultdict(Shelf)

    def __getitem__(self, collection: str) -> Shelf:
        return self._of[collection]

    def after(self, collection: str, seq: int, limit: int, heads: Heads) -> list[Entry]:
        """The next rows that are not stale, at most `limit`, in the order of seq."""
        seqs, keys, rows = self._of[collection].seqs, self._of[collection].keys, heads.rows
        found: list[Entry] = []
        at = bisect_right(seqs, seq)
        while len(found) < limit and at < len(seqs):
            end = at + limit
            some = zip(seqs[at:end], keys[at:end], strict=True)
            found += [(s, key) for s, key in some if (head := rows.get(key)) and head.seq == s]
            at = end
        return found[:limit]

    def untidy(self) -> list[PackName]:
        """The packs that hold stale rows."""
        return [
            (name, first)
            for name, shelf in self._of.items()
            for first in shelf.firsts
            if shelf.live[first] < shelf.totals[first]
        ]

    def follow(self, plans: Mapping[str, Plan], heads: Heads) -> None:
        """Take over what was committed; `heads` have taken it over already."""
        for name, plan in plans.items():
            shelf = self._of[name]
            for first, count in plan.stale.items():
                shelf.live[first] -= count
            for first, count in plan.rewritten.items():
                if count:
                    shelf.totals[first] = shelf.live[first] = count
                else:
                    shelf.remove(first)
            for entries in plan.added:
                shelf.add(entries[0][0], entries)
            shelf.tidy(heads)


def is_at(heads: Heads, key: str, seq: int) -> bool:
    head = heads.rows.get(key)
    return head is not None and head.seq == seq


def _seq(change: Change) -> int:
    assert change.head is not None
    return change.head.seq


# -- loading and reading ------------------------------------------------------------------------------------------


def load(cursor: Cursor, alias: str, collections: Sequence[str]) -> tuple[Heads, Shelves]:
    """What memory holds of an attached file."""
    statement = f"SELECT collection, first, seqs, heads FROM {alias}.main.packs ORDER BY first"
    latest: dict[str, Head] = {}
    same: dict[
        tuple[str, ...], tuple[str, ...]
    ] = {}  # whose parents are alike share them: a third of the memory
    shelves = Shelves()
    for name, first, seqs, heads in cursor.execute(statement).fetchall():
        if name not in collections:
            continue
        entries: list[Entry] = []
        for seq, stored in zip(_seqs.decode(seqs), _heads.decode(heads), strict=True):
            stored.parents = same.setdefault(stored.parents, stored.parents)
            key = f"{name}/{stored.id}"
            latest[key] = stored.at(seq)
            entries.append((seq, key))
        shelves[name].add(first, entries)
    for (head,) in cursor.execute(f"SELECT head FROM {alias}.main.waiting").fetchall():
        stored = _head.decode(head)
        latest[stored.id] = stored.at(WAITING)
    loaded = Heads()
    loaded.absorb({key: Change(key, None, head, b"") for key, head in latest.items()})
    for name in collections:
        _count_live(shelves[name], loaded)
    return loaded, shelves


def _count_live(shelf: Shelf, heads: Heads) -> None:
    shelf.live = dict.fromkeys(shelf.firsts, 0)
    for seq, key in zip(shelf.seqs, shelf.keys, strict=True):
        if is_at(heads, key, seq):
            shelf.live[shelf.pack_of(seq)] += 1


@dataclass(slots=True)
class Places:
    """Where to read: the keys wanted by their seqs, the packs these lie in, and waiting rows."""

    keys: dict[int, str] = field(default_factory=dict)
    firsts: set[int] = field(default_factory=set)
    waiting: list[str] = field(default_factory=list)


def locate(shelves: Shelves, entries: Iterable[Entry]) -> Places:
    """Neighbours mostly lie in one pack, which is then looked for once."""
    places = Places()
    known, low, high = "", 0, 0
    for seq, key in entries:
        if seq == WAITING:
            places.waiting.append(key)
            continue
        name = key.partition("/")[0]
        if name != known or not low <= seq < high:
            firsts = shelves[name].firsts
            at = bisect_right(firsts, seq)
            known, low, high = name, firsts[at - 1], firsts[at] if at < len(firsts) else seq + 1
            places.firsts.add(low)
        places.keys[seq] = key
    return places


def read(cursor: Cursor, alias: str, places: Places) -> dict[str, bytes]:
    """Key -> body. A row that a commit has moved meanwhile is missing: look again."""
    found: dict[str, bytes] = {}
    wanted = places.keys
    for seqs, bodies in _select(cursor, alias, "seqs, bodies", places.firsts):
        rows = zip(_seqs.decode(seqs), _raws.decode(bodies), strict=True)
        found.update([(wanted[seq], bytes(body)) for seq, body in rows if seq in wanted])
    if places.waiting:
        statement = f"SELECT id, body FROM {alias}.main.waiting WHERE id IN (SELECT unnest(?))"
        found.update((k, body.encode()) for k, body in cursor.execute(statement, [places.waiting]).fetchall())
    return found


def _read_packs(cursor: Cursor, alias: str, firsts: set[int]) -> Iterator[tuple[PackName, list[_Row]]]:
    for first, name, seqs, heads, bodies in _select(cursor, alias, COLUMNS, firsts):
        rows = zip(_seqs.decode(seqs), _raws.decode(heads), _raws.decode(bodies), strict=True)
        yield (name, first), list(rows)


def _select(cursor: Cursor, alias: str, columns: str, firsts: set[int]) -> Iterator[tuple[Any, ...]]:
    for some in _portions(sorted(firsts), LOOKUP_MAX):
        marks = ", ".join("?" * len(some))
        statement = f"SELECT {columns} FROM {alias}.main.packs WHERE first IN ({marks})"
        yield from cursor.execute(parsed(cursor, statement), some).fetchall()


def _portions(items: list[int], size: int) -> Iterator[list[int]]:
    for at in range(0, len(items), size):
        yield items[at : at + size]


# -- writing -------------------------------------------------------------------------------------------------------


def flush(
    cursor: Cursor,
    alias: str,
    changes: Mapping[str, Change],
    heads: Heads,
    shelves: Shelves,
    untidy: Iterable[PackName] = (),
    more: Iterable[Statement] = (),
) -> dict[str, Plan]:
    """Write a draft's changes, and `more`, in one transaction. On any error nothing of it is stored.

    `untidy`: packs that are to be written again without their stale rows.
    """

    def stays(name: str, seq: int, head: msgspec.Raw) -> bool:
        key = f"{name}/{_head.decode(head).id}"
        change = changes.get(key)
        now = change.head if change is not None else heads.rows.get(key)
        return now is not None and now.seq == seq

    plans, fresh, touched = _plan(changes.values(), shelves)
    touched.update(untidy)
    packs: list[list[Any]] = []
    left = {first for name, first in touched if shelves[name].live[first] > plans[name].stale[first]}
    for name, first in touched:
        plans[name].rewritten[first] = 0
    for (name, first), rows in _read_packs(cursor, alias, left):
        kept = [row for row in rows if stays(name, row[0], row[1])]
        plans[name].rewritten[first] = len(kept)
        packs.append(_repacked((name, first), kept))
    for name, changed in fresh.items():
        for some in _cut(changed):
            plans[name].added.append([(_seq(change), change.key) for change in some])
            packs.append(_packed(name, some))
    replaced = sorted(first for _, first in touched)
    commit(cursor, [*_waiting(alias, changes.values()), *_replacing(alias, replaced, packs), *more])
    return plans


def _plan(
    changes: Iterable[Change], shelves: Shelves
) -> tuple[defaultdict[str, Plan], defaultdict[str, list[Change]], set[PackName]]:
    """By collection which packs get stale rows and the changes that come into new packs; and the packs to write again."""
    plans: defaultdict[str, Plan] = defaultdict(Plan)
    fresh: defaultdict[str, list[Change]] = defaultdict(list)
    touched: set[PackName] = set()
    for change in changes:
        name = change.key.partition("/")[0]
        if change.head is not None and change.head.seq != WAITING:
            fresh[name].append(change)
        if change.before is not None and change.before.seq != WAITING:
            shelf = shelves[name]
            first = shelf.pack_of(change.before.seq)
            plans[name].stale[first] += 1
            left = shelf.live[first] - plans[name].stale[first]
            if change.head is None or change.head.deleted or 2 * left < shelf.totals[first]:
                touched.add((name, first))
    return plans, fresh, touched


def _cut(changes: list[Change]) -> Iterator[list[Change]]:
    """Portions of a commit's rows, each small enough for a pack."""
    some: list[Change] = []
    size = 0
    for change in changes:
        if some and size + len(change.body) > PACK_BYTES:
            yield some
            some, size = [], 0
        some.append(change)
        size += len(change.body)
    if some:
        yield some


def _packed(name: str, changes: list[Change]) -> list[Any]:
    seqs = [_seq(change) for change in changes]
    heads = [_fields(change.key.partition("/")[2], change.head) for change in changes]
    bodies = b",".join([change.body for change in changes]).decode()
    return [seqs[0], name, _json(seqs), _json(heads), f"[{bodies}]"]


def _repacked(pack: PackName, rows: list[_Row]) -> list[Any]:
    name, first = pack
    heads, bodies = (b",".join([bytes(row[at]) for row in rows]).decode() for at in (1, 2))
    return [first, name, _json([seq for seq, _, _ in rows]), f"[{heads}]", f"[{bodies}]"]


def _fields(row_id: str, h: Head | None) -> tuple[Any, ...]:
    """Those of a `StoredHead`."""
    assert h is not None
    return row_id, h.deleted, h.parents, h.references, h.size, h.tag, h.model, h.chunks


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _replacing(alias: str, gone: list[int], packs: list[list[Any]]) -> Iterator[Statement]:
    table = f"{alias}.main.packs"
    if gone:
        yield f"DELETE FROM {table} WHERE first IN ({', '.join('?' * len(gone))})", list(gone)
    if packs:
        marks = ", ".join(["(?, ?, ?, ?, ?)"] * len(packs))
        yield (
            f"INSERT INTO {table} ({COLUMNS}) VALUES {marks}",
            list(chain.from_iterable(packs)),
        )


def _waiting(alias: str, changes: Iterable[Change]) -> list[Statement]:
    """Rows without a seq lie one by one: there are few, and they do not stay."""
    table = f"{alias}.main.waiting"
    left = [c.key for c in changes if c.before is not None and c.before.seq == WAITING]
    come = [c for c in changes if c.head is not None and c.head.seq == WAITING]
    statements: list[Statement] = []
    if left:
        statements.append((f"DELETE FROM {table} WHERE id IN (SELECT unnest(?))", [left]))
    if come:
        values = [
            [c.key for c in come],
            [_json(_fields(c.key, c.head)) for c in come],
            [c.body.decode() for c in come],
        ]
        statements.append((f"INSERT INTO {table} SELECT unnest(?), unnest(?), unnest(?)", values))
    return statements


def commit(cursor: Cursor, statements: Sequence[Statement]) -> None:
    """Run all in one transaction. One alone is its own, which spares two calls: each waits for Python's lock anew,
    and while others push that is where the time of a push goes."""
    calls = [(parsed(cursor, sql), values) for sql, values in statements]
    if len(calls) == 1:
        cursor.execute(*calls[0])
    elif calls:
        cursor.execute(parsed(cursor, "BEGIN"))
        try:
            for call in calls:
                cursor.execute(*call)
            cursor.execute(parsed(cursor, "COMMIT"))
        except BaseException:
            cursor.execute("ROLLBACK")
            raise
