"""Define transactions over the rows of one user. A transaction sees the committed row index plus its own changes.

All rules read rows through the transaction, so several pushes can share one commit. Each push sees the changes of
earlier pushes, and a push that fails is rolled back alone (`savepoint`). The engine writes `changes` at the end. A
row's key is "collection/id".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field

import msgspec

from vademecum.model.agents.ingested_events import IngestedEventChanges
from vademecum.model.memory.job_changes import JobChanges
from vademecum.model.memory.jobs import StoredJobs
from vademecum.model.schema.collections import Collection, Json, Links, links
from vademecum.model.sync.conflict_rules import RowState
from vademecum.model.sync.quotas import Usage, charged_bytes, charged_references, charged_tombstones
from vademecum.model.sync.tombstone import make_tombstone

WAITING = 0  # the `seq` of a row whose parent has not arrived

# The first row after a server start or a restore leaves a gap in `seq` whose length is a multiple of this number. So a
# server with records from an older copy hardly ever reuses the `seq` of a lost row that devices have received. A signed
# checkpoint inside a gap proves that the records come from an older copy.
SEQ_JUMP = 2**20

Gaps = tuple[tuple[int, int], ...]
GAPS_MAX = 256


class RecordsMeta(msgspec.Struct, frozen=True):
    """The account-wide values that are stored beside the rows.

    `forgotten_at`: the time at which the user last forgot everything, or empty. `id_key`: the secret key for ids that
    are derived from a user's text. `restored_seq`: rows up to this `seq` come unchanged from a backup. `gaps`: ranges
    (after, up to] of `seq` that these records never assigned in this epoch. `next_gap`: the length of the gap before
    the first new row; it is not stored.
    """

    epoch: str
    forgotten_at: str = ""
    id_key: str = ""
    restored_seq: int = 0
    gaps: Gaps = ()
    next_gap: int = 0

    def was_never_assigned(self, seq: int, last_seq: int) -> bool:
        """Return whether no row can have had `seq` in this epoch. `last_seq`: the last assigned `seq`."""
        return seq > last_seq or any(after < seq <= end for after, end in self.gaps)


class RowHead(msgspec.Struct, frozen=True, gc=False):
    """The metadata of a row, which is always in memory.

    `size`: bytes charged to the account. `unique_value`: the value of the collection's unique field, or empty.
    `model` and `chunks`: the embedding model and the number of chunks, for a block of chunks only.
    """

    seq: int
    deleted: bool
    parents: tuple[str, ...]
    references: tuple[str, ...]
    size: int
    unique_value: str = ""
    model: str = ""
    chunks: int = 0


def state_of(head: RowHead | None) -> RowState:
    """Return the state of a row. A row that waits for its parent counts as missing."""
    if head is None or head.seq == WAITING:
        return "missing"
    return "deleted" if head.deleted else "live"


@dataclass(slots=True)
class LinkIndex:
    """Reverse lookups over live and waiting rows.

    `dependents`: maps the key of a row to the keys of the rows that have it as a parent or a reference.
    """

    dependents: dict[str, set[str]] = field(default_factory=dict)
    unique_owners: dict[str, str] = field(default_factory=dict)  # maps "collection/value" to a row's key

    def add(self, key: str, head: RowHead | None) -> None:
        """Index the links of a row. Deleted and missing rows have no links."""
        if head is None or head.deleted:
            return
        for names in (head.parents, head.references):
            for name in names:
                keys = self.dependents.get(name)
                if keys is None:
                    self.dependents[name] = {key}
                else:
                    keys.add(key)
        if head.unique_value:
            self.unique_owners[unique_key(key, head.unique_value)] = key

    def remove(self, key: str, head: RowHead | None) -> None:
        """Remove the links that `add` indexed for `head`."""
        if head is None or head.deleted:
            return
        for name in (*head.parents, *head.references):
            keys = self.dependents.get(name)
            if keys is not None:
                keys.discard(key)
                if not keys:
                    del self.dependents[name]
        # Another row may already own the unique value, because changes are applied in the order of `seq`.
        if head.unique_value and self.unique_owners.get(unique_key(key, head.unique_value)) == key:
            del self.unique_owners[unique_key(key, head.unique_value)]


class Totals(msgspec.Struct):
    """The totals over all rows that the quotas need."""

    documents: int = 0
    live_bytes: int = 0
    references: int = 0
    tombstones: int = 0

    def count(self, key: str, head: RowHead, sign: int) -> None:
        """Add the row to the totals (`sign` 1) or subtract it (-1)."""
        if head.deleted:
            self.tombstones += sign
        else:
            self.live_bytes += sign * head.size
            self.references += sign * len(head.references)
            if head.seq != WAITING and key.startswith("documents/"):
                self.documents += sign

    @property
    def usage(self) -> Usage:
        """Return the documents and bytes charged to the account."""
        charged = charged_tombstones(self.tombstones) + charged_references(self.references)
        return Usage(self.documents, self.live_bytes + charged)


@dataclass(slots=True)
class RowIndex:
    """The committed row heads of one user, with their totals. Only `apply` changes them."""

    rows: dict[str, RowHead] = field(default_factory=dict)
    links: LinkIndex = field(default_factory=LinkIndex)
    totals: Totals = field(default_factory=Totals)
    seq: int = 0

    @property
    def dependents(self) -> Mapping[str, set[str]]:
        """Map the key of each row to the keys of the live and waiting rows that refer to it."""
        return self.links.dependents

    def apply(self, changes: Mapping[str, Change]) -> None:
        """Apply the changes of a commit, or of the initial load."""
        for key, change in changes.items():
            old, new = self.rows.get(key), change.head
            if old is not None:
                self.links.remove(key, old)
                self.totals.count(key, old, -1)
            if new is None:
                self.rows.pop(key, None)
                continue
            self.rows[key] = new
            self.links.add(key, new)
            self.totals.count(key, new, 1)
            self.seq = max(self.seq, new.seq)


class Change(msgspec.Struct, frozen=True):
    """The change of one row. `head` is None if the row is purged without a tombstone.

    `same_text`: the text of the row did not change, because the server only added derived data or admitted a waiting
    row. `expired`: the row was deleted only because of its age.
    """

    key: str
    before: RowHead | None
    head: RowHead | None
    body: bytes
    same_text: bool = False
    expired: bool = False

    @property
    def removes_row(self) -> bool:
        """Return whether the row is deleted or purged."""
        return self.head is None or self.head.deleted


def deletes_content(changes: Iterable[Change]) -> bool:
    """Return whether a commit deleted a row that had content."""
    return any(c.removes_row and c.before is not None and not c.before.deleted for c in changes)


def replaces_text(changes: Iterable[Change]) -> bool:
    """Return whether a commit replaced stored text. Admitting a waiting row does not count."""
    return any(_is_edit(c) for c in changes)


def purges_tombstones(changes: Iterable[Change]) -> bool:
    """Return whether a commit purged a tombstone. The purged row may have had the highest `seq` of all stored rows."""
    return any(c.head is None and c.before is not None and c.before.deleted for c in changes)


def _is_edit(change: Change) -> bool:
    before = change.before
    return before is not None and not before.deleted and not change.removes_row and not change.same_text


def unique_key(key: str, unique_value: str) -> str:
    """Return "collection/value", under which `LinkIndex` stores the key of the row with a unique value."""
    return f"{key.partition('/')[0]}/{unique_value}"


class Transaction:
    """The reads and changes of one transaction.

    `read`: maps keys to the stored bodies (JSON bytes) of their rows. The results are `changes`, `meta` and `seq`, the
    last assigned `seq`. `jobs` and `ingested_events` belong to the same commit and to its savepoints.
    """

    def __init__(
        self,
        row_index: RowIndex,
        read: Callable[[list[str]], dict[str, bytes]],
        collections: Mapping[str, Collection],
        meta: RecordsMeta,
        now: str,
        jobs: JobChanges | None = None,
        ingested_events: IngestedEventChanges | None = None,
    ) -> None:
        self.collections = collections
        self.meta = meta
        self.now = now
        self.seq = row_index.seq
        self.totals = copy(row_index.totals)
        self.changes: dict[str, Change] = {}
        self.jobs = jobs or JobChanges(StoredJobs())
        self.ingested_events = ingested_events or IngestedEventChanges(lambda ids: set())
        self._row_index = row_index
        self._read = read
        self._links = LinkIndex()  # the links of the changed rows
        self._bodies: dict[str, bytes] = {}  # the bodies that were read

    # -- reading ------------------------------------------------------------------------------------------------

    def head(self, key: str) -> RowHead | None:
        """Return the head of the row, or None if the row does not exist."""
        change = self.changes.get(key)
        return change.head if change is not None else self._row_index.rows.get(key)

    def row_state(self, key: str) -> RowState:
        """Return the state of the row. A waiting row counts as missing."""
        return state_of(self.head(key))

    def row(self, key: str) -> Json:
        """Return the decoded row. The key must have a head."""
        row: Json = msgspec.json.decode(self.body(key))
        return row

    def body(self, key: str) -> bytes:
        """Return the row as JSON bytes. The key must have a head."""
        change = self.changes.get(key)
        if change is not None:
            return change.body
        if key not in self._bodies:
            self.prefetch([key])
        return self._bodies[key]

    def prefetch(self, keys: Iterable[str]) -> None:
        """Read the bodies of `keys` with one statement, so that later reads need none."""
        missing = [
            k for k in keys if k in self._row_index.rows and k not in self._bodies and k not in self.changes
        ]
        if missing:
            self._bodies.update(self._read(missing))

    def dependents(self, key: str) -> list[str]:
        """Return the sorted keys of the live and waiting rows that have `key` as a parent or a reference."""
        stored, changed = self._row_index.links.dependents.get(key), self._links.dependents.get(key)
        if not stored and not changed:  # the usual case for new rows, so skip the sets
            return []
        stored, changed = stored or set(), changed or set()
        return sorted({*changed, *(k for k in stored if k not in self.changes)})

    def find_unique(self, collection: str, unique_value: str) -> str | None:
        """Return the key of the live row that has this unique value, or None."""
        name = f"{collection}/{unique_value}"
        changed, stored = self._links.unique_owners.get(name), self._row_index.links.unique_owners.get(name)
        return changed or (stored if stored not in self.changes else None)

    def keys(self, collection: str | None = None, *, deleted: bool = False) -> Iterator[str]:
        """Yield the keys of live and waiting rows or, with `deleted`, the keys of tombstones."""
        prefix = f"{collection}/" if collection else ""
        for key in dict.fromkeys((*self._row_index.rows, *self.changes)):
            if not key.startswith(prefix):
                continue
            head = self.head(key)
            if head is not None and head.deleted is deleted:
                yield key

    @property
    def highest_stored_seq(self) -> int:
        """Return the highest `seq` of a row in `changes`, or 0.

        The result is below `self.seq` if the last row was purged.
        """
        return max((c.head.seq for c in self.changes.values() if c.head is not None), default=0)

    # -- changing -----------------------------------------------------------------------------------------------

    def measure_growth(self, key: str, row: Json, body: bytes, known_links: Links | None = None) -> int:
        """Return the bytes that storing `row` would add to `totals.usage`.

        `known_links`: the row's links, if already known.
        """
        name = key.partition("/")[0]
        charged = charged_bytes(name, row, len(body))
        _, row_links = known_links if known_links is not None else links(self.collections[name], row)
        references = self.totals.references + len(row_links)
        before = self.head(key)
        if before is not None and not before.deleted:
            charged -= before.size
            references -= len(before.references)
        if references == self.totals.references:  # the usual case, so skip the computation
            return charged
        return charged + charged_references(references) - charged_references(self.totals.references)

    def put(
        self,
        key: str,
        row: Json,
        body: bytes,
        *,
        waiting: bool = False,
        known_links: Links | None = None,
        same_text: bool = False,
    ) -> None:
        """Store a live row under the next `seq`, or under `WAITING` if its parent has not arrived.

        `known_links`: the row's links, if already known. `same_text`: as in `Change`.
        """
        collection = self.collections[key.partition("/")[0]]
        parents, references = known_links if known_links is not None else links(collection, row)
        unique_value = row.get(collection.unique, "") if collection.unique else ""
        size = charged_bytes(collection.name, row, len(body))
        chunks = len(row.get("chunks", ()))
        model = row["model"] if chunks and row.get("embedding") is not None else ""
        head = RowHead(self._next(waiting), False, parents, references, size, unique_value, model, chunks)
        self._change(key, head, body, same_text=same_text)

    def put_tombstone(self, key: str, row: Json, *, expired: bool = False) -> None:
        """Replace the row with its tombstone, under the next `seq`. `expired`: as in `Change`."""
        collection = self.collections[key.partition("/")[0]]
        tombstone = make_tombstone(collection, row, self.now)
        parents, _ = links(collection, tombstone)
        head = RowHead(self._next(False), True, parents, (), 0)
        self._change(key, head, msgspec.json.encode(tombstone), expired=expired)

    def purge(self, key: str) -> None:
        """Remove a row without a tombstone: a waiting row, or a row that a restore must not tombstone.

        A tombstone of a collection that devices do not receive may be purged, too: after a restore, the erasure ledger
        or the row's age causes the deletion again.
        """
        self._change(key, None, b"")

    def forget_everything(self, at: str) -> None:
        """From now on, reject rows that were created before `at`."""
        self.meta = msgspec.structs.replace(self.meta, forgotten_at=at)

    def begin_epoch(self, epoch: str, seq: int) -> None:
        """Start a new epoch. Its new rows get numbers above `seq`, and all present rows count as restored."""
        self.meta = msgspec.structs.replace(
            self.meta, epoch=epoch, restored_seq=self.seq, gaps=(), next_gap=0
        )
        self.seq = seq

    def savepoint(self) -> Callable[[], None]:
        """Return a function that rolls back every change made after this call."""
        changes, meta, seq, totals = dict(self.changes), self.meta, self.seq, copy(self.totals)
        undo_others = [other.savepoint() for other in (self.jobs, self.ingested_events)]

        def undo() -> None:
            self.meta, self.seq, self.totals = meta, seq, totals
            undone = [c for c in self.changes.values() if changes.get(c.key) is not c]
            for change in undone:
                self._links.remove(change.key, change.head)
            for earlier in (changes.get(change.key) for change in undone):
                if earlier is not None:
                    self._links.add(earlier.key, earlier.head)
            self.changes.clear()
            self.changes.update(changes)
            for undo_other in undo_others:
                undo_other()

        return undo

    def _next(self, waiting: bool) -> int:
        if waiting:
            return WAITING
        if self.meta.next_gap:
            end = self.seq + self.meta.next_gap
            gaps = (*self.meta.gaps, (self.seq, end))[-GAPS_MAX:]
            self.meta = msgspec.structs.replace(self.meta, gaps=gaps, next_gap=0)
            self.seq = end
        self.seq += 1
        return self.seq

    def _change(
        self, key: str, head: RowHead | None, body: bytes, *, same_text: bool = False, expired: bool = False
    ) -> None:
        earlier = self.changes.pop(key, None)  # re-added at the end, to keep the order of `seq`
        if earlier is None:
            old = before = self._row_index.rows.get(key)
        else:
            old, before = earlier.head, earlier.before
            same_text = same_text and earlier.same_text
            self._links.remove(key, old)
        if old is not None:
            self.totals.count(key, old, -1)
        if head is not None:
            self.totals.count(key, head, 1)
            self._links.add(key, head)
        self.changes[key] = Change(key, before, head, body, same_text, expired)
