"""Merging takes linear time, even if the assumed state that a device sends contains a very long list."""

from __future__ import annotations

from property.rows import document
from vademecum.model.schema.collections import Registry
from vademecum.model.sync.merge import merge

LENGTH = 2000


class CountingId(str):
    """An id that counts comparisons between ids."""

    __slots__ = ()
    comparisons = 0

    def __eq__(self, other: object) -> bool:
        CountingId.comparisons += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def ids(side: str) -> list[str]:
    return [CountingId(f"{side}{number}") for number in range(LENGTH)]


def test_merge_of_id_lists_takes_linear_time() -> None:
    """Comparing each pair of ids would take three seconds for two lists of ten thousand, and a push has many rows."""
    gone, both = ids("gone"), ids("both")
    base = document("u", "d", activeSessions=[*gone, *both])
    stored = document("u", "d", activeSessions=[*gone, *both, *ids("theirs")])
    new = document("u", "d", activeSessions=[*both, *ids("mine")])
    CountingId.comparisons = 0
    merged = merge(Registry()["documents"], base, stored, new)
    assert CountingId.comparisons < 20 * LENGTH
    assert merged["activeSessions"] == [*both, *ids("theirs"), *ids("mine")]
