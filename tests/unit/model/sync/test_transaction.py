"""What a transaction sees of its own changes, and what is left of one that is undone."""

import json

from property.rows import document, memory, session
from vademecum.model.schema.collections import Registry
from vademecum.model.sync.cascade import kill
from vademecum.model.sync.transaction import Draft, Heads

NOW = "2026-01-01T00:00:00.000Z"


def draft_upon(heads):
    return Draft(heads, lambda keys: {}, Registry(), "epoch", "", NOW)


def put(draft, collection, *rows):
    for row in rows:
        draft.put(f"{collection}/{row['id']}", row, b"{}")


class Unwalked(dict):
    """Changes that may be looked up and not walked through."""

    def __iter__(self):
        raise AssertionError("all changes of the commit were looked through for one row")

    items = values = keys = __iter__


def test_who_has_a_unique_value_or_names_a_row_is_found_without_looking_through_the_commit():
    draft = draft_upon(Heads())
    put(draft, "sessions", session("a", externalId="x"))
    put(draft, "documents", document("ada", "d", activeSessions=["a"]))
    draft.changes = Unwalked(draft.changes)
    assert draft.holder("sessions", "x") == "sessions/a"
    assert draft.holder("sessions", "y") is None
    assert draft.dependents("sessions/a") == ["documents/d"]


def test_a_value_that_one_row_gave_up_and_another_took_stays_with_the_other():
    heads = Heads()
    first = draft_upon(heads)
    put(first, "sessions", session("a", externalId="x"))
    heads.absorb(first.changes)
    second = draft_upon(heads)
    for row in [("a", "y"), ("b", "x"), ("a", "z")]:
        put(second, "sessions", session(row[0], externalId=row[1]))
    for _ in ("before the commit", "after it"):
        assert second.holder("sessions", "x") == "sessions/b"
        assert second.holder("sessions", "y") is None
        assert second.holder("sessions", "z") == "sessions/a"
        heads.absorb(second.changes)
        second = draft_upon(heads)


def test_what_is_undone_gives_back_unique_values_and_references():
    draft = draft_upon(Heads())
    put(draft, "sessions", session("a", externalId="x"))
    put(draft, "memories", memory("m", sessionIds=["a"]))
    undo = draft.savepoint()
    put(draft, "sessions", session("a", externalId="y"), session("b", externalId="x"))
    put(draft, "memories", memory("m", sessionIds=["b"]), memory("n", sessionIds=["a"]))
    draft.bury("memories/n", memory("n"))
    undo()
    assert [draft.holder("sessions", tag) for tag in "xy"] == ["sessions/a", None]
    assert [draft.dependents(f"sessions/{i}") for i in "ab"] == [["memories/m"], []]


def test_questions_of_what_is_undone_are_not_counted():
    draft = draft_upon(Heads())
    draft.asked += 1
    undo = draft.savepoint()
    draft.asked += 1
    undo()
    assert draft.asked == 1


def test_a_memory_s_history_goes_with_it_in_as_few_readings_however_long_it_is():
    """One a link took a second and a half for each thousand, and the thread from all others."""
    readings = []

    def death_of_the_newest(length):
        heads = Heads()
        rows = {f"memories/m{n}": memory(f"m{n}", supersededBy=f"m{n + 1}") for n in range(length)}
        first = draft_upon(heads)
        put(first, "memories", *rows.values(), memory(f"m{length}"))
        heads.absorb(first.changes)

        def read(keys):
            readings.append(keys)
            return {key: json.dumps(rows.get(key, memory(key.partition("/")[2]))).encode() for key in keys}

        readings.clear()
        draft = Draft(heads, read, Registry(), "epoch", "", NOW)
        assert len(kill(draft, f"memories/m{length}")) == length + 1
        return len(readings)

    assert death_of_the_newest(300) == death_of_the_newest(3)
