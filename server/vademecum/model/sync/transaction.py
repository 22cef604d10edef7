"""A transaction over the rows of one user: the committed row index plus the transaction's own changes.

All rules read rows through the transaction, so several pushes can share one commit: each push sees the changes of
the pushes before it, and a push that fails is rolled back alone (`savepoint`). The engine writes `changes` at the end.
A row's key is "collection/id".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import msgspec

from vademecum.model.memory.jobs import Job, StoredJobs, is_open
from vademecum.model.schema.collections import Collection, Json, Links, links
from vademecum.model.sync.conflict_rules import RowState
from vademecum.model.sync.quotas import Usage, charged_bytes, charged_references, charged_tombstones
from vademecum.model.sync.tombstone import make_tombstone

WAITING = 0  # the seq of a row whose parent has not arrived

NO_JOBS = StoredJobs()
Gaps = tuple[tuple[int, int], ...]
GAPS_MAX = 256


class RowHead(msgspec.Struct, frozen=True, gc=False):
    """The metadata of a row that memory holds.

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


@dataclass(slots=True)
class LinkIndex:
    """Reverse lookups over live and waiting rows.

    `dependents`: key of a row -> keys of the rows that name it as a parent or a reference.
    """

    dependents: dict[str, set[str]] = field(default_factory=dict)
    unique_owners: dict[str, str] = field(default_factory=dict)  # "collection/tag" -> key

    def add(self, key: str, head: RowHead | None) -> None:
        """Index the links of a row. Deleted and absent rows have none."""
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
        # Another row may own the value already: changes are applied in the order of `seq`.
        if head.unique_value and self.unique_owners.get(unique_key(key, head.unique_value)) == key:
            del self.unique_owners[unique_key(key, head.unique_value)]


@dataclass(slots=True)
class RowIndex:
    """The committed row heads of one user, with totals for the quotas. Only `apply` changes them."""

    rows: dict[str, RowHead] = field(default_factory=dict)
    links: LinkIndex = field(default_factory=LinkIndex)
    documents: int = 0
    live_bytes: int = 0
    references: int = 0
    tombstones: int = 0
    seq: int = 0

    @property
    def dependents(self) -> Mapping[str, set[str]]:
        """Map the key of a row to the keys of the live and waiting rows that name it."""
        return self.links.dependents

    @property
    def bytes(self) -> int:
        """Return the bytes charged to the account."""
        return self.live_bytes + charged_tombstones(self.tombstones) + charged_references(self.references)

    def apply(self, changes: Mapping[str, Change]) -> None:
        """Apply the changes of a commit, or of the initial load."""
        for key, change in changes.items():
            old, new = self.rows.get(key), change.head
            if old is not None:
                self.links.remove(key, old)
                self._count(key, old, -1)
            if new is None:
                self.rows.pop(key, None)
                continue
            self.rows[key] = new
            self.links.add(key, new)
            self._count(key, new, 1)
            self.seq = max(self.seq, new.seq)

    def _count(self, key: str, head: RowHead, sign: int) -> None:
        if head.deleted:
            self.tombstones += sign
        else:
            self.live_bytes += sign * head.size
            self.references += sign * len(head.references)
            if head.seq != WAITING and key.startswith("documents/"):
                self.documents += sign


class Change(msgspec.Struct, frozen=True):
    """The change of one row. `head` is None if the row is purged without a tombstone.

    `same_text`: the text of the row did not change. The server added derived data, or admitted a waiting row.
    """

    key: str
    before: RowHead | None
    head: RowHead | None
    body: bytes
    same_text: bool = False


def deletes_content(changes: Iterable[Change]) -> bool:
    """Return whether a commit deleted a row that had content."""
    return any(
        c.before is not None and not c.before.deleted and (c.head is None or c.head.deleted) for c in changes
    )


def replaces_text(changes: Iterable[Change]) -> bool:
    """Return whether a commit replaced a stored text by another. Admitting a waiting row does not."""
    return any(_is_edit(c) for c in changes)


def _is_edit(change: Change) -> bool:
    before, head = change.before, change.head
    was_live = before is not None and not before.deleted
    is_live = head is not None and not head.deleted
    return was_live and is_live and not change.same_text


def in_gap(gaps: Gaps, seq: int) -> bool:
    """Return whether `seq` lies in one of the ranges (after, up to]."""
    return any(after < seq <= end for after, end in gaps)


def unique_key(key: str, unique_value: str) -> str:
    """Return "collection/value", the name under which `LinkIndex` stores the owner of a unique value."""
    return f"{key.partition('/')[0]}/{unique_value}"


class Transaction:
    """The reads and changes of one transaction.

    Arguments: `read` returns the stored bodies (JSON bytes) of keys. `id_key` is the secret that keys the ids derived
    from a user's text. `restored_seq`: rows up to this `seq` are as a backup had them. `gaps`: ranges (after, up to] of
    `seq` that this file never assigned in this epoch. `jump`: the length of the next gap, before the first new row.

    Results besides `changes`:
    - `jobs`: new states of jobs by id; None deletes a job. `missing_job_ids`: ids that `find_jobs` did not find.
    - `extracted_up_to_seq`: as in `StoredJobs`, see `job_triggers.take_up`.
    - `llm_request_count`: requests to the language model that start here, minus those that were not delivered.
    - `ingested_event_ids`: events of agents that are ingested here. Older ids than the time
      `ingested_events_expire_before` are deleted.
    - `expired_keys`: rows deleted only because of their age. `purges_tombstones`: whether tombstones are purged.
    """

    def __init__(
        self,
        row_index: RowIndex,
        read: Callable[[list[str]], dict[str, bytes]],
        collections: Mapping[str, Collection],
        epoch: str,
        forgotten_at: str,
        now: str,
        stored_jobs: StoredJobs = NO_JOBS,
        id_key: str = "",
        read_ingested_events: Callable[[list[str]], set[str]] = lambda ids: set(),
        restored_seq: int = 0,
        gaps: Gaps = (),
        jump: int = 0,
    ) -> None:
        self.collections = collections
        self.epoch = epoch
        self.forgotten_at = forgotten_at
        self.id_key = id_key
        self.now = now
        self.restored_seq = restored_seq
        self.gaps = gaps
        self._jump = jump
        self.changes: dict[str, Change] = {}
        self.jobs: dict[str, Job | None] = {}
        self.missing_job_ids: set[str] = set()
        self.extracted_up_to_seq = stored_jobs.extracted_up_to_seq
        self.llm_request_count = 0
        self.ingested_event_ids: list[str] = []
        self.ingested_events_expire_before = ""
        self.expired_keys: set[str] = set()
        self.purges_tombstones = False
        self._row_index = row_index
        self._read = read
        self._stored_jobs = stored_jobs
        self._read_ingested_events = read_ingested_events
        self._links = LinkIndex()  # of the changed rows
        self._bodies: dict[str, bytes] = {}
        self._seq = row_index.seq
        self._documents = row_index.documents
        self._live_bytes = row_index.live_bytes
        self._references = row_index.references
        self.tombstones = row_index.tombstones

    # -- reading ------------------------------------------------------------------------------------------------

    def head(self, key: str) -> RowHead | None:
        """Return the head of the row, or None if the row does not exist."""
        change = self.changes.get(key)
        return change.head if change is not None else self._row_index.rows.get(key)

    def row_state(self, key: str) -> RowState:
        """Return the state of the row. A waiting row counts as missing."""
        head = self.head(key)
        if head is None or head.seq == WAITING:
            return "missing"
        return "deleted" if head.deleted else "live"

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
        wanted = [
            k for k in keys if k in self._row_index.rows and k not in self._bodies and k not in self.changes
        ]
        if wanted:
            self._bodies.update(self._read(wanted))

    def dependents(self, key: str) -> list[str]:
        """Return the sorted keys of the live and waiting rows that name `key` as a parent or a reference."""
        stored, changed = self._row_index.links.dependents.get(key), self._links.dependents.get(key)
        if not stored and not changed:  # true for most new rows
            return []
        stored, changed = stored or set(), changed or set()
        return sorted({*changed, *(k for k in stored if k not in self.changes)})

    def find_unique(self, collection: str, unique_value: str) -> str | None:
        """Return the key of the live row that has this unique value, or None."""
        name = f"{collection}/{unique_value}"
        changed, stored = self._links.unique_owners.get(name), self._row_index.links.unique_owners.get(name)
        return changed or (stored if stored not in self.changes else None)

    def keys(self, collection: str | None = None, *, deleted: bool = False) -> Iterator[str]:
        """Yield the keys of live and waiting rows, or with `deleted` those of tombstones."""
        prefix = f"{collection}/" if collection else ""
        for key in dict.fromkeys((*self._row_index.rows, *self.changes)):
            if not key.startswith(prefix):
                continue
            head = self.head(key)
            if head is not None and head.deleted is deleted:
                yield key

    def find_jobs(self, ids: Iterable[str]) -> dict[str, Job]:
        """Return the jobs that exist among `ids`, by id."""
        job_ids = list(ids)
        stored = self._stored_jobs
        unread = [i for i in job_ids if i not in self.jobs and i not in stored.open]
        closed = stored.read(unread) if unread else {}
        self.missing_job_ids.update(i for i in unread if i not in closed)
        jobs = {i: self.jobs.get(i, stored.open.get(i, closed.get(i))) for i in job_ids}
        return {i: job for i, job in jobs.items() if job is not None}

    def open_jobs(self) -> list[Job]:
        """Return the jobs that are not done."""
        jobs = {**self._stored_jobs.open, **self.jobs}.values()
        return [job for job in jobs if job is not None and is_open(job)]

    def llm_requests_on(self, day: str) -> int:
        """Return how many requests jobs sent to the language model on `day` (UTC), this transaction included."""
        return self._stored_jobs.llm_requests_on(day) + self.llm_request_count

    def find_ingested_events(self, ids: list[str]) -> set[str]:
        """Return which of the events are ingested already, by earlier commits or this transaction."""
        return self._read_ingested_events(ids) | set(self.ingested_event_ids)

    @property
    def usage(self) -> Usage:
        """Return the documents and bytes charged to the account after this transaction."""
        charged = charged_tombstones(self.tombstones) + charged_references(self._references)
        return Usage(self._documents, self._live_bytes + charged)

    @property
    def seq(self) -> int:
        """Return the last `seq` that was assigned."""
        return self._seq

    @property
    def highest_stored_seq(self) -> int:
        """Return the highest seq of a stored row, or 0. `seq` may be higher, after a purge."""
        return max((c.head.seq for c in self.changes.values() if c.head is not None), default=0)

    # -- changing -----------------------------------------------------------------------------------------------

    def measure_growth(self, key: str, row: Json, body: bytes, named: Links | None = None) -> int:
        """Return by how many bytes storing `row` would change `usage.bytes`. `named`: the row's links, if computed."""
        name = key.partition("/")[0]
        charged = charged_bytes(name, row, len(body))
        _, named_here = named if named is not None else links(self.collections[name], row)
        references = self._references + len(named_here)
        before = self.head(key)
        if before is not None and not before.deleted:
            charged -= before.size
            references -= len(before.references)
        if references == self._references:  # true for most rows
            return charged
        return charged + charged_references(references) - charged_references(self._references)

    def put(
        self,
        key: str,
        row: Json,
        body: bytes,
        *,
        waiting: bool = False,
        named: Links | None = None,
        same_text: bool = False,
    ) -> None:
        """Store a live row under the next `seq`, or under `WAITING` if its parent has not arrived.

        `named`: the row's links, if computed. `same_text`: as in `Change`.
        """
        collection = self.collections[key.partition("/")[0]]
        parents, references = named if named is not None else links(collection, row)
        unique_value = row.get(collection.unique, "") if collection.unique else ""
        size = charged_bytes(collection.name, row, len(body))
        chunks = len(row.get("chunks", ()))
        model = row["model"] if chunks and row.get("embedding") is not None else ""
        head = RowHead(self._next(waiting), False, parents, references, size, unique_value, model, chunks)
        self._change(key, head, body, same_text)

    def put_tombstone(self, key: str, row: Json) -> None:
        """Replace the row by its tombstone, under the next `seq`."""
        collection = self.collections[key.partition("/")[0]]
        tombstone = make_tombstone(collection, row, self.now)
        parents, _ = links(collection, tombstone)
        self._change(key, RowHead(self._next(False), True, parents, (), 0), msgspec.json.encode(tombstone))

    def purge(self, key: str) -> None:
        """Remove a row without a tombstone: a waiting row, or a row that a restore must not tombstone."""
        self._change(key, None, b"")

    def purge_tombstone(self, key: str) -> None:
        """Remove a tombstone that no device receives.

        After a restore the erasure ledger or the row's age repeats the deletion.
        """
        self.purges_tombstones = True
        self._change(key, None, b"")

    def was_never_assigned(self, seq: int) -> bool:
        """Return whether no row of this file can have had `seq` in this epoch."""
        return seq > self._seq or in_gap(self.gaps, seq)

    def begin_epoch(self, epoch: str, seq: int) -> None:
        """Start a new epoch whose rows have a higher number than `seq`. All present rows count as restored."""
        self.epoch, self.restored_seq = epoch, self._seq
        self._seq, self.gaps, self._jump = seq, (), 0

    def savepoint(self) -> Callable[[], None]:
        """Return a function that rolls back every change made after this call."""
        changes, jobs, ingested_event_ids, expired_keys = (
            dict(self.changes),
            dict(self.jobs),
            list(self.ingested_event_ids),
            set(self.expired_keys),
        )
        counts = self._seq, self._documents, self._live_bytes, self._references, self.tombstones
        scalars = (
            self.forgotten_at,
            self.llm_request_count,
            self.extracted_up_to_seq,
            self.epoch,
            self.restored_seq,
        )
        gaps = self.gaps, self._jump

        def undo() -> None:
            self._seq, self._documents, self._live_bytes, self._references, self.tombstones = counts
            (
                self.forgotten_at,
                self.llm_request_count,
                self.extracted_up_to_seq,
                self.epoch,
                self.restored_seq,
            ) = scalars
            self.gaps, self._jump = gaps
            undone = [c for c in self.changes.values() if changes.get(c.key) is not c]
            for change in undone:
                self._links.remove(change.key, change.head)
            for earlier in (changes.get(change.key) for change in undone):
                if earlier is not None:
                    self._links.add(earlier.key, earlier.head)
            self.changes.clear()
            self.changes.update(changes)
            self.jobs, self.ingested_event_ids, self.expired_keys = jobs, ingested_event_ids, expired_keys

        return undo

    def _next(self, waiting: bool) -> int:
        if waiting:
            return WAITING
        if self._jump:
            self.gaps = (*self.gaps, (self._seq, self._seq + self._jump))[-GAPS_MAX:]
            self._seq, self._jump = self._seq + self._jump, 0
        self._seq += 1
        return self._seq

    def _change(self, key: str, head: RowHead | None, body: bytes, same_text: bool = False) -> None:
        earlier = self.changes.pop(key, None)  # removed first, so that changes stay in the order of seq
        if earlier is None:
            old = before = self._row_index.rows.get(key)
        else:
            old, before = earlier.head, earlier.before
            same_text = same_text and earlier.same_text
            self._links.remove(key, old)
        if old is not None:
            self._count(key, old, -1)
        if head is not None:
            self._count(key, head, 1)
            self._links.add(key, head)
        self.changes[key] = Change(key, before, head, body, same_text)

    def _count(self, key: str, head: RowHead, sign: int) -> None:
        if head.deleted:
            self.tombstones += sign
        else:
            self._live_bytes += sign * head.size
            self._references += sign * len(head.references)
            if head.seq != WAITING and key.startswith("documents/"):
                self._documents += sign
