"""A transaction reads its own changes and can roll back to a savepoint."""

import json

from property.rows import document, memory, session
from vademecum.model.schema.collections import Registry
from vademecum.model.sync.cascade import delete_with_dependents
from vademecum.model.sync.transaction import RecordsMeta, RowIndex, Transaction

NOW = "2026-01-01T00:00:00.000Z"


def transaction_on(row_index):
    return Transaction(row_index, lambda keys: {}, Registry(), RecordsMeta("epoch"), NOW)


def put(tx, collection, *rows):
    for row in rows:
        tx.put(f"{collection}/{row['id']}", row, b"{}")


class LookupOnlyDict(dict):
    """A dict of changes that allows lookups and forbids iteration."""

    def __iter__(self):
        raise AssertionError("a lookup of one row iterated over all changes of the commit")

    items = values = keys = __iter__


def test_link_lookups_do_not_iterate_over_changes():
    tx = transaction_on(RowIndex())
    put(tx, "sessions", session("a", externalId="x"))
    put(tx, "documents", document("ada", "d", activeSessions=["a"]))
    tx.changes = LookupOnlyDict(tx.changes)
    assert tx.find_unique("sessions", "x") == "sessions/a"
    assert tx.find_unique("sessions", "y") is None
    assert tx.dependents("sessions/a") == ["documents/d"]


def test_unique_value_moves_to_the_row_that_takes_it():
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


def test_rollback_restores_unique_values_and_references():
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


def test_rollback_restores_the_llm_request_count():
    tx = transaction_on(RowIndex())
    tx.jobs.llm_request_count += 1
    undo = tx.savepoint()
    tx.jobs.llm_request_count += 1
    undo()
    assert tx.jobs.llm_request_count == 1


def test_deleting_long_memory_history_needs_few_reads():
    """One read per link would take 1.5 s for each thousand links and block the thread for all other requests."""
    reads = []

    def delete_newest(length):
        row_index = RowIndex()
        rows = {f"memories/m{n}": memory(f"m{n}", supersededBy=f"m{n + 1}") for n in range(length)}
        first = transaction_on(row_index)
        put(first, "memories", *rows.values(), memory(f"m{length}"))
        row_index.apply(first.changes)

        def read(keys):
            reads.append(keys)
            return {key: json.dumps(rows.get(key, memory(key.partition("/")[2]))).encode() for key in keys}

        reads.clear()
        tx = Transaction(row_index, read, Registry(), RecordsMeta("epoch"), NOW)
        assert len(delete_with_dependents(tx, f"memories/m{length}")) == length + 1
        return len(reads)

    assert delete_newest(300) == delete_newest(3)
