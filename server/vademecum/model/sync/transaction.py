"""A user's rows as one transaction sees them: the heads in memory, and what the transaction changes.

Everything that decides reads from here, so several pushes can share one commit: each sees what the one before it
did, and one that fails is undone alone (`savepoint`). The engine writes `changes` when all have had their turn.
Rows are named by key: "collection/id".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import msgspec

from vademecum.model.memory.jobs import Job, Stored, is_open
from vademecum.model.schema.collections import Collection, Json, Links, links
from vademecum.model.sync.conflict_rules import Life
from vademecum.model.sync.quotas import Usage, charged_bytes, charged_references, charged_tombstones
from vademecum.model.sync.tombstone import blank

WAITING = 0  # the seq of a row whose parent is not here yet

NO_JOBS = Stored()
Gaps = tuple[tuple[int, int], ...]
GAPS_MAX = 256


class Head(msgspec.Struct, frozen=True, gc=False):
    """All that is known of a row without reading it. `size`: bytes it is charged. `tag`: its unique value.

    Of a block of chunks also how many it has, and the model whose vectors it holds.
    """

    seq: int
    deleted: bool
    parents: tuple[str, ...]
    references: tuple[str, ...]
    size: int
    tag: str = ""
    model: str = ""
    chunks: int = 0


@dataclass(slots=True)
class Index:
    """Of some live rows, waiting ones too: who names a row as a parent or a reference, and who has a unique value."""

    dependents: dict[str, set[str]] = field(default_factory=dict)
    holders: dict[str, str] = field(default_factory=dict)  # "collection/tag" -> key

    def add(self, key: str, head: Head | None) -> None:
        if head is None or head.deleted:
            return
        for names in (head.parents, head.references):
            for name in names:
                known = self.dependents.get(name)
                if known is None:
                    self.dependents[name] = {key}
                else:
                    known.add(key)
        if head.tag:
            self.holders[tag_key(key, head.tag)] = key

    def remove(self, key: str, head: Head | None) -> None:
        if head is None or head.deleted:
            return
        for name in (*head.parents, *head.references):
            keys = self.dependents.get(name)
            if keys is not None:
                keys.discard(key)
                if not keys:
                    del self.dependents[name]
        # Another row may have taken the value already: changes come in the order of `seq`, not of who gave it up.
        if head.tag and self.holders.get(tag_key(key, head.tag)) == key:
            del self.holders[tag_key(key, head.tag)]


@dataclass(slots=True)
class Heads:
    """The committed heads of one user, and what can be counted from them. Changed only by `absorb`."""

    rows: dict[str, Head] = field(default_factory=dict)
    index: Index = field(default_factory=Index)
    documents: int = 0
    live_bytes: int = 0
    references: int = 0
    tombstones: int = 0
    seq: int = 0

    @property
    def dependents(self) -> Mapping[str, set[str]]:
        """Name of a row -> keys of the live rows that name it."""
        return self.index.dependents

    @property
    def bytes(self) -> int:
        """What the user is charged."""
        return self.live_bytes + charged_tombstones(self.tombstones) + charged_references(self.references)

    def absorb(self, changes: Mapping[str, Change]) -> None:
        """Take over what was committed (or, at the start, what was loaded)."""
        for key, change in changes.items():
            old, new = self.rows.get(key), change.head
            if old is not None:
                self.index.remove(key, old)
                self._count(key, old, -1)
            if new is None:
                self.rows.pop(key, None)
                continue
            self.rows[key] = new
            self.index.add(key, new)
            self._count(key, new, 1)
            self.seq = max(self.seq, new.seq)

    def _count(self, key: str, head: Head, sign: int) -> None:
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
    before: Head | None
    head: Head | None
    body: bytes
    same_text: bool = False


def leaves_bytes(changes: Iterable[Change]) -> bool:
    """Return whether a commit deleted a row that had content."""
    return any(
        c.before is not None and not c.before.deleted and (c.head is None or c.head.deleted) for c in changes
    )


def outdates(changes: Iterable[Change]) -> bool:
    """Return whether a commit replaced a stored text by another. (A waiting row that is let in keeps its own.)"""
    return any(_is_edit(c) for c in changes)


def _is_edit(change: Change) -> bool:
    before, head = change.before, change.head
    was_live = before is not None and not before.deleted
    is_live = head is not None and not head.deleted
    return was_live and is_live and not change.same_text


def in_gap(gaps: Gaps, seq: int) -> bool:
    return any(after < seq <= end for after, end in gaps)


def tag_key(key: str, tag: str) -> str:
    return f"{key.partition('/')[0]}/{tag}"


class Draft:
    """One transaction's view and its changes. `read` fetches stored bodies: keys -> {key: JSON bytes}; `id_key`: what ids that
    follow from a person's words are keyed with. `jobs`: what becomes of jobs; None, of one that goes. `absent_jobs`: ids
    that were looked for in vain. `followed`: as in `Stored`, see `job_triggers.take_up`. `asked`: how many questions to the language model begin with this transaction, less those
    that were never heard. `taken`: events of agents that it takes up; those of before `taken_expire` are forgotten.
    `aged`: what dies of its age alone. `drops`: whether tombstones go. `restored_seq`: up to here rows are as a backup had them.
    `gaps`: ranges (after, up to) of `seq` that this file never gave to a row in this epoch; `jump`: the length of the
    next one, which the first new row leaves."""

    def __init__(
        self,
        heads: Heads,
        read: Callable[[list[str]], dict[str, bytes]],
        collections: Mapping[str, Collection],
        epoch: str,
        forgotten_at: str,
        now: str,
        stored_jobs: Stored = NO_JOBS,
        id_key: str = "",
        read_taken: Callable[[list[str]], set[str]] = lambda ids: set(),
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
        self.absent_jobs: set[str] = set()
        self.followed = stored_jobs.followed
        self.asked = 0
        self.taken: list[str] = []
        self.taken_expire = ""
        self.aged: set[str] = set()
        self.drops = False
        self._heads = heads
        self._read = read
        self._stored_jobs = stored_jobs
        self._read_taken = read_taken
        self._index = Index()  # of the changed rows
        self._bodies: dict[str, bytes] = {}
        self._seq = heads.seq
        self._documents = heads.documents
        self._live_bytes = heads.live_bytes
        self._references = heads.references
        self.tombstones = heads.tombstones

    # -- looking ------------------------------------------------------------------------------------------------

    def head(self, key: str) -> Head | None:
        change = self.changes.get(key)
        return change.head if change is not None else self._heads.rows.get(key)

    def life(self, key: str) -> Life:
        head = self.head(key)
        if head is None or head.seq == WAITING:
            return "missing"
        return "dead" if head.deleted else "live"

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
            k for k in keys if k in self._heads.rows and k not in self._bodies and k not in self.changes
        ]
        if wanted:
            self._bodies.update(self._read(wanted))

    def dependents(self, key: str) -> list[str]:
        """Keys of the rows, waiting ones too, that name `key` as a parent or a reference; sorted."""
        stored, changed = self._heads.index.dependents.get(key), self._index.dependents.get(key)
        if not stored and not changed:  # as of most rows when they come
            return []
        stored, changed = stored or set(), changed or set()
        return sorted({*changed, *(k for k in stored if k not in self.changes)})

    def holder(self, collection: str, tag: str) -> str | None:
        """The live row that has this unique value."""
        name = f"{collection}/{tag}"
        changed, stored = self._index.holders.get(name), self._heads.index.holders.get(name)
        return changed or (stored if stored not in self.changes else None)

    def keys(self, collection: str | None = None, *, deleted: bool = False) -> Iterator[str]:
        """Keys of live rows, waiting ones too (or, with `deleted`, of tombstones)."""
        prefix = f"{collection}/" if collection else ""
        for key in dict.fromkeys((*self._heads.rows, *self.changes)):
            if not key.startswith(prefix):
                continue
            head = self.head(key)
            if head is not None and head.deleted is deleted:
                yield key

    def known_jobs(self, ids: Iterable[str]) -> dict[str, Job]:
        """Those of the jobs that there are."""
        wanted = list(ids)
        of_file = self._stored_jobs
        sought = [i for i in wanted if i not in self.jobs and i not in of_file.open]
        done = of_file.read(sought) if sought else {}
        self.absent_jobs.update(i for i in sought if i not in done)
        found = {i: self.jobs.get(i, of_file.open.get(i, done.get(i))) for i in wanted}
        return {i: job for i, job in found.items() if job is not None}

    def open_jobs(self) -> list[Job]:
        """Those that are not done."""
        jobs = {**self._stored_jobs.open, **self.jobs}.values()
        return [job for job in jobs if job is not None and is_open(job)]

    def asked_on(self, day: str) -> int:
        """How many questions jobs have asked a language model on this day, UTC."""
        return self._stored_jobs.asked_on(day) + self.asked

    def known_taken(self, ids: list[str]) -> set[str]:
        """Those of the events that were taken up, also by this transaction."""
        return self._read_taken(ids) | set(self.taken)

    @property
    def usage(self) -> Usage:
        charged = charged_tombstones(self.tombstones) + charged_references(self._references)
        return Usage(self._documents, self._live_bytes + charged)

    @property
    def seq(self) -> int:
        return self._seq

    @property
    def highest(self) -> int:
        """The highest seq of a row that this transaction stores, or 0. `seq` may be higher: not every row stays in it."""
        return max((c.head.seq for c in self.changes.values() if c.head is not None), default=0)

    # -- changing -----------------------------------------------------------------------------------------------

    def measure(self, key: str, row: Json, body: bytes, named: Links | None = None) -> int:
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
        tag = row.get(collection.unique, "") if collection.unique else ""
        size = charged_bytes(collection.name, row, len(body))
        chunks = len(row.get("chunks", ()))
        model = row["model"] if chunks and row.get("embedding") is not None else ""
        head = Head(self._next(waiting), False, parents, references, size, tag, model, chunks)
        self._change(key, head, body, same_text)

    def bury(self, key: str, row: Json) -> None:
        """Put the tombstone of `row` in its place, under the next `seq`."""
        collection = self.collections[key.partition("/")[0]]
        tombstone = blank(collection, row, self.now)
        parents, _ = links(collection, tombstone)
        self._change(key, Head(self._next(False), True, parents, (), 0), msgspec.json.encode(tombstone))

    def take_out(self, key: str) -> None:
        """As if the row had never come: one that waits, or one that a restore does not bring back and may not bury."""
        self._change(key, None, b"")

    def drop(self, key: str) -> None:
        """Take out a tombstone that no device is told of. No backup undoes the death: the ledger knows of it, or age does."""
        self.drops = True
        self._change(key, None, b"")

    def was_never_given(self, seq: int) -> bool:
        """Return whether no row of this file can have had `seq` in this epoch."""
        return seq > self._seq or in_gap(self.gaps, seq)

    def begin_epoch(self, epoch: str, seq: int) -> None:
        """Begin a new epoch whose rows come after `seq`. All present rows count as restored."""
        self.epoch, self.restored_seq = epoch, self._seq
        self._seq, self.gaps, self._jump = seq, (), 0

    def savepoint(self) -> Callable[[], None]:
        """The undo of everything done after this call."""
        changes, jobs, taken, aged = dict(self.changes), dict(self.jobs), list(self.taken), set(self.aged)
        counts = self._seq, self._documents, self._live_bytes, self._references, self.tombstones
        told = self.forgotten_at, self.asked, self.followed, self.epoch, self.restored_seq
        gaps = self.gaps, self._jump

        def undo() -> None:
            self._seq, self._documents, self._live_bytes, self._references, self.tombstones = counts
            self.forgotten_at, self.asked, self.followed, self.epoch, self.restored_seq = told
            self.gaps, self._jump = gaps
            undone = [c for c in self.changes.values() if changes.get(c.key) is not c]
            for change in undone:
                self._index.remove(change.key, change.head)
            for earlier in (changes.get(change.key) for change in undone):
                if earlier is not None:
                    self._index.add(earlier.key, earlier.head)
            self.changes.clear()
            self.changes.update(changes)
            self.jobs, self.taken, self.aged = jobs, taken, aged

        return undo

    def _next(self, waiting: bool) -> int:
        if waiting:
            return WAITING
        if self._jump:
            self.gaps = (*self.gaps, (self._seq, self._seq + self._jump))[-GAPS_MAX:]
            self._seq, self._jump = self._seq + self._jump, 0
        self._seq += 1
        return self._seq

    def _change(self, key: str, head: Head | None, body: bytes, same_text: bool = False) -> None:
        earlier = self.changes.pop(key, None)  # popped, so that changes stay in the order of seq
        if earlier is None:
            old = before = self._heads.rows.get(key)
        else:
            old, before = earlier.head, earlier.before
            same_text = same_text and earlier.same_text
            self._index.remove(key, old)
        if old is not None:
            self._count(key, old, -1)
        if head is not None:
            self._count(key, head, 1)
            self._index.add(key, head)
        self.changes[key] = Change(key, before, head, body, same_text)

    def _count(self, key: str, head: Head, sign: int) -> None:
        if head.deleted:
            self.tombstones += sign
        else:
            self._live_bytes += sign * head.size
            self._references += sign * len(head.references)
            if head.seq != WAITING and key.startswith("documents/"):
                self._documents += sign
