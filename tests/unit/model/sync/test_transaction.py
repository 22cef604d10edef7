"""What a transaction sees of its own changes, and what is left of one that is undone."""

import json

from property.rows import document, memory, session
from vademecum.model.schema.collections import Registry
from vademecum.model.sync.cascade import delete_with_dependents
from vademecum.model.sync.transaction import RowIndex, Transaction

NOW = "2026-01-01T00:00:00.000Z"


def transaction_on(row_index):
    return Transaction(row_index, lambda keys: {}, Registry(), "epoch", "", NOW)


def put(tx, collection, *rows):
    for row in rows:
        tx.put(f"{collection}/{row['id']}", row, b"{}")


class Unwalked(dict):
    """Changes that may be looked up and not walked through."""

    def __iter__(self):
        raise AssertionError("all changes of the commit were looked through for one row")

    items = values = keys = __iter__


def test_who_has_a_unique_value_or_names_a_row_is_found_without_looking_through_the_commit():
    tx = transaction_on(RowIndex())
    put(tx, "sessions", session("a", externalId="x"))
    put(tx, "documents", document("ada", "d", activeSessions=["a"]))
    tx.changes = Unwalked(tx.changes)
    assert tx.find_unique("sessions", "x") == "sessions/a"
    assert tx.find_unique("sessions", "y") is None
    assert tx.dependents("sessions/a") == ["documents/d"]


def test_a_value_that_one_row_gave_up_and_another_took_stays_with_the_other():
    row_index = RowIndex()
    first = transaction_on(row_index)
    put(first, "sessions", session("a", externalId="x"))
    row_index.apply(first.changes)
    second = transaction_on(row_index)
    for row in [("a", "y"), ("b", "x"), ("a", "z")]:
        put(second, "sessions", session(row[0], externalId=row[1]))
    for _ in ("before the commit", "after it"):
        assert second.find_unique("sessions", "x") == "sessions/b"
        assert second.find_unique("sessions", "y") is None
        assert second.find_unique("sessions", "z") == "sessions/a"
        row_index.apply(second.changes)
        second = transaction_on(row_index)


def test_what_is_undone_gives_back_unique_values_and_references():
    tx = transaction_on(RowIndex())
    put(tx, "sessions", session("a", externalId="x"))
    put(tx, "memories", memory("m", sessionIds=["a"]))
    undo = tx.savepoint()
    put(tx, "sessions", session("a", externalId="y"), session("b", externalId="x"))
    put(tx, "memories", memory("m", sessionIds=["b"]), memory("n", sessionIds=["a"]))
    tx.put_tombstone("memories/n", memory("n"))
    undo()
    assert [tx.find_unique("sessions", tag) for tag in "xy"] == ["sessions/a", None]
    assert [tx.dependents(f"sessions/{i}") for i in "ab"] == [["memories/m"], []]


def test_questions_of_what_is_undone_are_not_counted():
    tx = transaction_on(RowIndex())
    tx.llm_request_count += 1
    undo = tx.savepoint()
    tx.llm_request_count += 1
    undo()
    assert tx.llm_request_count == 1


def test_a_memory_s_history_goes_with_it_in_as_few_readings_however_long_it_is():
    """One a link took a second and a half for each thousand, and the thread from all others."""
    readings = []

    def death_of_the_newest(length):
        row_index = RowIndex()
        rows = {f"memories/m{n}": memory(f"m{n}", supersededBy=f"m{n + 1}") for n in range(length)}
        first = transaction_on(row_index)
        put(first, "memories", *rows.values(), memory(f"m{length}"))
        row_index.apply(first.changes)

        def read(keys):
            readings.append(keys)
            return {key: json.dumps(rows.get(key, memory(key.partition("/")[2]))).encode() for key in keys}

        readings.clear()
        tx = Transaction(row_index, read, Registry(), "epoch", "", NOW)
        assert len(delete_with_dependents(tx, f"memories/m{length}")) == length + 1
        return len(readings)

    assert death_of_the_newest(300) == death_of_the_newest(3)
