"""A user's rows as one transaction sees them: the heads in memory, and what the transaction changes.

Everything that decides reads from here, so several pushes can share one commit: each sees what the one before it
did, and one that fails is undone alone (`savepoint`). The engine writes `changes` when all have had their turn.
Rows are named by key: "collection/id".
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

WAITING = 0  # the seq of a row whose parent is not here yet

NO_JOBS = StoredJobs()
Gaps = tuple[tuple[int, int], ...]
GAPS_MAX = 256


class RowHead(msgspec.Struct, frozen=True, gc=False):
    """All that is known of a row without reading it. `size`: bytes it is charged. `tag`: its unique value.

    Of a block of chunks also how many it has, and the model whose vectors it holds.
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
    """Of some live rows, waiting ones too: who names a row as a parent or a reference, and who has a unique value."""

    dependents: dict[str, set[str]] = field(default_factory=dict)
    unique_owners: dict[str, str] = field(default_factory=dict)  # "collection/tag" -> key

    def add(self, key: str, head: RowHead | None) -> None:
        if head is None or head.deleted:
            return
        for names in (head.parents, head.references):
            for name in names:
                known = self.dependents.get(name)
                if known is None:
                    self.dependents[name] = {key}
                else:
                    known.add(key)
        if head.unique_value:
            self.unique_owners[unique_key(key, head.unique_value)] = key

    def remove(self, key: str, head: RowHead | None) -> None:
        if head is None or head.deleted:
            return
        for name in (*head.parents, *head.references):
            keys = self.dependents.get(name)
            if keys is not None:
                keys.discard(key)
                if not keys:
                    del self.dependents[name]
        # Another row may have taken the value already: changes come in the order of `seq`, not of who gave it up.
        if head.unique_value and self.unique_owners.get(unique_key(key, head.unique_value)) == key:
            del self.unique_owners[unique_key(key, head.unique_value)]


@dataclass(slots=True)
class RowIndex:
    """The committed heads of one user, and what can be counted from them. Changed only by `absorb`."""

    rows: dict[str, RowHead] = field(default_factory=dict)
    links: LinkIndex = field(default_factory=LinkIndex)
    documents: int = 0
    live_bytes: int = 0
    references: int = 0
    tombstones: int = 0
    seq: int = 0

    @property
    def dependents(self) -> Mapping[str, set[str]]:
        """Name of a row -> keys of the live rows that name it."""
        return self.links.dependents

    @property
    def bytes(self) -> int:
        """What the user is charged."""
        return self.live_bytes + charged_tombstones(self.tombstones) + charged_references(self.references)

    def apply(self, changes: Mapping[str, Change]) -> None:
        """Take over what was committed (or, at the start, what was loaded)."""
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
    """What becomes of one row: `head` None means that it leaves without a trace (a waiting row erased, a tombstone
    dropped). `same_text`:
    the server has added what follows from its text, or let a waiting row in, and the text is what it was."""

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
    """Return whether a commit replaced a stored text by another. (A waiting row that is let in keeps its own.)"""
    return any(_is_edit(c) for c in changes)


def _is_edit(change: Change) -> bool:
    before, head = change.before, change.head
    was_live = before is not None and not before.deleted
    is_live = head is not None and not head.deleted
    return was_live and is_live and not change.same_text


def in_gap(gaps: Gaps, seq: int) -> bool:
    return any(after < seq <= end for after, end in gaps)


def unique_key(key: str, unique_value: str) -> str:
    return f"{key.partition('/')[0]}/{unique_value}"


class Transaction:
    """One transaction's view and its changes. `read` fetches stored bodies: keys -> {key: JSON bytes}; `id_key`: what ids that
    follow from a person's words are keyed with. `jobs`: what becomes of jobs; None, of one that goes. `absent_jobs`: ids
    that were looked for in vain. `followed`: as in `Stored`, see `job_triggers.take_up`. `asked`: how many questions to the language model begin with this transaction, less those
    that were never heard. `taken`: events of agents that it takes up; those of before `taken_expire` are forgotten.
    `aged`: what dies of its age alone. `drops`: whether tombstones go. `restored_seq`: up to here rows are as a backup had them.
    `gaps`: ranges (after, up to) of `seq` that this file never gave to a row in this epoch; `jump`: the length of the
    next one, which the first new row leaves."""

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
        self._read_taken = read_ingested_events
        self._links = LinkIndex()  # of the changed rows
        self._bodies: dict[str, bytes] = {}
        self._seq = row_index.seq
        self._documents = row_index.documents
        self._live_bytes = row_index.live_bytes
        self._references = row_index.references
        self.tombstones = row_index.tombstones

    # -- looking ------------------------------------------------------------------------------------------------

    def head(self, key: str) -> RowHead | None:
        change = self.changes.get(key)
        return change.head if change is not None else self._row_index.rows.get(key)

    def row_state(self, key: str) -> RowState:
        head = self.head(key)
        if head is None or head.seq == WAITING:
            return "missing"
        return "deleted" if head.deleted else "live"

    def row(self, key: str) -> Json:
        """The row, decoded. Only for keys that have a head."""
        row: Json = msgspec.json.decode(self.body(key))
        return row

    def body(self, key: str) -> bytes:
        change = self.changes.get(key)
        if change is not None:
            return change.body
        if key not in self._bodies:
            self.prefetch([key])
        return self._bodies[key]

    def prefetch(self, keys: Iterable[str]) -> None:
        """Read the bodies of `keys` in one go, so that looking at each costs no statement."""
        wanted = [
            k for k in keys if k in self._row_index.rows and k not in self._bodies and k not in self.changes
        ]
        if wanted:
            self._bodies.update(self._read(wanted))

    def dependents(self, key: str) -> list[str]:
        """Keys of the rows, waiting ones too, that name `key` as a parent or a reference; sorted."""
        stored, changed = self._row_index.links.dependents.get(key), self._links.dependents.get(key)
        if not stored and not changed:  # as of most rows when they come
            return []
        stored, changed = stored or set(), changed or set()
        return sorted({*changed, *(k for k in stored if k not in self.changes)})

    def find_unique(self, collection: str, unique_value: str) -> str | None:
        """The live row that has this unique value."""
        name = f"{collection}/{unique_value}"
        changed, stored = self._links.unique_owners.get(name), self._row_index.links.unique_owners.get(name)
        return changed or (stored if stored not in self.changes else None)

    def keys(self, collection: str | None = None, *, deleted: bool = False) -> Iterator[str]:
        """Keys of live rows, waiting ones too (or, with `deleted`, of tombstones)."""
        prefix = f"{collection}/" if collection else ""
        for key in dict.fromkeys((*self._row_index.rows, *self.changes)):
            if not key.startswith(prefix):
                continue
            head = self.head(key)
            if head is not None and head.deleted is deleted:
                yield key

    def find_jobs(self, ids: Iterable[str]) -> dict[str, Job]:
        """Those of the jobs that there are."""
        wanted = list(ids)
        of_file = self._stored_jobs
        sought = [i for i in wanted if i not in self.jobs and i not in of_file.open]
        done = of_file.read(sought) if sought else {}
        self.missing_job_ids.update(i for i in sought if i not in done)
        found = {i: self.jobs.get(i, of_file.open.get(i, done.get(i))) for i in wanted}
        return {i: job for i, job in found.items() if job is not None}

    def open_jobs(self) -> list[Job]:
        """Those that are not done."""
        jobs = {**self._stored_jobs.open, **self.jobs}.values()
        return [job for job in jobs if job is not None and is_open(job)]

    def llm_requests_on(self, day: str) -> int:
        """How many questions jobs have asked a language model on this day, UTC."""
        return self._stored_jobs.llm_requests_on(day) + self.llm_request_count

    def find_ingested_events(self, ids: list[str]) -> set[str]:
        """Those of the events that were taken up, also by this transaction."""
        return self._read_taken(ids) | set(self.ingested_event_ids)

    @property
    def usage(self) -> Usage:
        charged = charged_tombstones(self.tombstones) + charged_references(self._references)
        return Usage(self._documents, self._live_bytes + charged)

    @property
    def seq(self) -> int:
        return self._seq

    @property
    def highest_stored_seq(self) -> int:
        """The highest seq of a row that this transaction stores, or 0. `seq` may be higher: not every row stays in it."""
        return max((c.head.seq for c in self.changes.values() if c.head is not None), default=0)

    # -- changing -----------------------------------------------------------------------------------------------

    def measure_growth(self, key: str, row: Json, body: bytes, named: Links | None = None) -> int:
        """Bytes by which storing `row` would change `usage.bytes`. `named`: its links, if they are known."""
        name = key.partition("/")[0]
        charged = charged_bytes(name, row, len(body))
        _, named_here = named if named is not None else links(self.collections[name], row)
        references = self._references + len(named_here)
        before = self.head(key)
        if before is not None and not before.deleted:
            charged -= before.size
            references -= len(before.references)
        if references == self._references:  # as of most rows
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
        """Store a live row under the next `seq`, or, `waiting`, without one. `named`: its links, if they are known.
        `same_text`: as in `Change`."""
        collection = self.collections[key.partition("/")[0]]
        parents, references = named if named is not None else links(collection, row)
        unique_value = row.get(collection.unique, "") if collection.unique else ""
        size = charged_bytes(collection.name, row, len(body))
        chunks = len(row.get("chunks", ()))
        model = row["model"] if chunks and row.get("embedding") is not None else ""
        head = RowHead(self._next(waiting), False, parents, references, size, unique_value, model, chunks)
        self._change(key, head, body, same_text)

    def put_tombstone(self, key: str, row: Json) -> None:
        """Put the tombstone of `row` in its place, under the next `seq`."""
        collection = self.collections[key.partition("/")[0]]
        tombstone = make_tombstone(collection, row, self.now)
        parents, _ = links(collection, tombstone)
        self._change(key, RowHead(self._next(False), True, parents, (), 0), msgspec.json.encode(tombstone))

    def purge(self, key: str) -> None:
        """As if the row had never come: one that waits, or one that a restore does not bring back and may not bury."""
        self._change(key, None, b"")

    def purge_tombstone(self, key: str) -> None:
        """Take out a tombstone that no device is told of. No backup undoes the death: the ledger knows of it, or age does."""
        self.purges_tombstones = True
        self._change(key, None, b"")

    def was_never_assigned(self, seq: int) -> bool:
        """Return whether no row of this file can have had `seq` in this epoch."""
        return seq > self._seq or in_gap(self.gaps, seq)

    def begin_epoch(self, epoch: str, seq: int) -> None:
        """Begin a new epoch whose rows come after `seq`. All present rows count as restored."""
        self.epoch, self.restored_seq = epoch, self._seq
        self._seq, self.gaps, self._jump = seq, (), 0

    def savepoint(self) -> Callable[[], None]:
        """The undo of everything done after this call."""
        changes, jobs, ingested_event_ids, expired_keys = (
            dict(self.changes),
            dict(self.jobs),
            list(self.ingested_event_ids),
            set(self.expired_keys),
        )
        counts = self._seq, self._documents, self._live_bytes, self._references, self.tombstones
        told = (
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
            ) = told
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
        earlier = self.changes.pop(key, None)  # popped, so that changes stay in the order of seq
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
