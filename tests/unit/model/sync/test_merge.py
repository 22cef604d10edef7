"""Merging takes time by the length of what is merged, however long a list a device claims to have known."""

from __future__ import annotations

from property.rows import document
from vademecum.model.schema.collections import Registry
from vademecum.model.sync.merge import merge

LENGTH = 2000


class Counted(str):
    """An id that knows how often one was held against another."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def ids(side: str) -> list[str]:
    return [Counted(f"{side}{number}") for number in range(LENGTH)]


def test_no_id_is_held_against_all_the_others() -> None:
    """Else ten thousand against ten thousand took three seconds, and many rows fit into a push."""
    gone, both = ids("gone"), ids("both")
    base = document("u", "d", activeSessions=[*gone, *both])
    stored = document("u", "d", activeSessions=[*gone, *both, *ids("theirs")])
    new = document("u", "d", activeSessions=[*both, *ids("mine")])
    Counted.compared = 0
    merged = merge(Registry()["documents"], base, stored, new)
    assert Counted.compared < 20 * LENGTH
    assert merged["activeSessions"] == [*both, *ids("theirs"), *ids("mine")]
