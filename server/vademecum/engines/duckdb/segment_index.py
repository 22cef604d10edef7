"""The index in memory of one user's segments (`segments.py`): where each row is stored, and which rows are stale."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from vademecum.model.sync.transaction import RowIndex

RUN_MAX = 128  # maximum number of segments that one statement reads
GAP_MAX = 4  # maximum distance between wanted segments in a range; a larger gap starts a new range
COMPACT_FROM = 1000  # compact if the entries exceed twice the live entries by more than this number

Entry = tuple[int, str]  # seq and key of a row
SegmentName = tuple[str, int]  # collection, and first seq
Run = tuple[str, int, int]  # collection, and first seqs of the first and last segment of a range


@dataclass(slots=True)
class CollectionSegments:
    """The segments of one collection.

    `seqs` and `keys` have an entry for each row, including stale rows, in the order of seq.
    """

    seqs: list[int] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    firsts: list[int] = field(default_factory=list)  # first seq of each segment, ascending
    totals: dict[int, int] = field(default_factory=dict)  # first seq -> number of rows
    live: dict[int, int] = field(default_factory=dict)  # first seq -> number of rows that are not stale
    without_checksum: set[int] = field(default_factory=set)  # first seqs of segments without a checksum
    verified: set[int] = field(default_factory=set)  # first seqs of segments whose bodies were verified

    def segment_of(self, seq: int) -> int:
        return self.firsts[bisect_right(self.firsts, seq) - 1]

    def add(self, first: int, entries: Iterable[Entry]) -> None:
        seqs, keys = zip(*entries, strict=True)
        self.seqs += seqs
        self.keys += keys
        self.firsts.append(first)
        self.totals[first] = self.live[first] = len(seqs)

    def remove(self, first: int) -> None:
        del self.firsts[bisect_left(self.firsts, first)], self.totals[first], self.live[first]
        self.without_checksum.discard(first)

    def runs(self, name: str, firsts: Iterable[int]) -> Iterator[Run]:
        """Yield ranges that contain the segments in `firsts` and few other segments."""
        locations = sorted(bisect_left(self.firsts, first) for first in firsts)
        start = last = -1
        for place in locations:
            if start < 0 or place - last > GAP_MAX or place - start >= RUN_MAX:
                if start >= 0:
                    yield name, self.firsts[start], self.firsts[last]
                start = place
            last = place
        if start >= 0:
            yield name, self.firsts[start], self.firsts[last]

    def compact(self, heads: RowIndex) -> None:
        """Remove stale entries if they outnumber the live entries by more than `COMPACT_FROM`."""
        if len(self.seqs) > COMPACT_FROM + 2 * sum(self.live.values()):
            current = [(s, k) for s, k in zip(self.seqs, self.keys, strict=True) if is_at(heads, k, s)]
            self.seqs, self.keys = [s for s, _ in current], [k for _, k in current]


@dataclass(slots=True)
class SegmentPlan:
    """The changes of one commit to one collection. Applied to the in-memory `SegmentIndex` after the commit."""

    added: list[list[Entry]] = field(default_factory=list)
    # Maps the first seq of a segment to the number of rows that become stale.
    stale: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))
    rewritten: dict[int, int] = field(default_factory=dict)  # first seq -> remaining rows; 0: delete it
    with_new_checksum: set[int] = field(default_factory=set)  # first seqs of segments that get a checksum


class SegmentIndex:
    """The segments of one user's rows. Only `apply_commit` changes it."""

    def __init__(self) -> None:
        self._of: defaultdict[str, CollectionSegments] = defaultdict(CollectionSegments)

    def __getitem__(self, collection: str) -> CollectionSegments:
        return self._of[collection]

    def after(self, collection: str, seq: int, limit: int, heads: RowIndex) -> list[Entry]:
        """Return seq and key of at most `limit` rows after `seq` that are not stale, in the order of seq."""
        seqs, keys, rows = self._of[collection].seqs, self._of[collection].keys, heads.rows
        found: list[Entry] = []
        at = bisect_right(seqs, seq)
        while len(found) < limit and at < len(seqs):
            end = at + limit
            batch = zip(seqs[at:end], keys[at:end], strict=True)
            found += [(s, key) for s, key in batch if (head := rows.get(key)) and head.seq == s]
            at = end
        return found[:limit]

    def segments_to_compact(self) -> list[SegmentName]:
        """Return the segments that contain stale rows."""
        return [
            (name, first)
            for name, segments in self._of.items()
            for first in segments.firsts
            if segments.live[first] < segments.totals[first]
        ]

    def without_checksum(self) -> list[SegmentName]:
        """Return the segments without a checksum."""
        return [
            (name, first)
            for name, segments in self._of.items()
            for first in sorted(segments.without_checksum)
        ]

    def runs(self, packs: Iterable[SegmentName]) -> list[Run]:
        """Return ranges that contain the given segments and few other segments."""
        by_name: defaultdict[str, list[int]] = defaultdict(list)
        for name, first in packs:
            by_name[name].append(first)
        return [run for name, firsts in by_name.items() for run in self._of[name].runs(name, firsts)]

    def apply_commit(self, plans: Mapping[str, SegmentPlan], heads: RowIndex) -> None:
        """Apply the plans of a commit. `heads` must already include the commit."""
        for name, plan in plans.items():
            segments = self._of[name]
            for first, count in plan.stale.items():
                segments.live[first] -= count
            segments.verified.difference_update(plan.rewritten)
            for first, count in plan.rewritten.items():
                if count:
                    segments.totals[first] = segments.live[first] = count
                else:
                    segments.remove(first)
            segments.without_checksum -= plan.with_new_checksum
            for entries in plan.added:
                segments.add(entries[0][0], entries)
            segments.compact(heads)


def is_at(heads: RowIndex, key: str, seq: int) -> bool:
    head = heads.rows.get(key)
    return head is not None and head.seq == seq
