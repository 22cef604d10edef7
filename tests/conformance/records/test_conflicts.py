"""Every records engine repeats a transaction that met a version conflict, a bounded number of times."""

import asyncio

import pytest

from conformance.records.engines import NOW
from property.rows import fact
from vademecum.errors import Busy
from vademecum.model.memory import jobs
from vademecum.model.records.store_interface import WRITE_ATTEMPTS


def add(tx):
    tx.put("facts/f", fact("f"), b"{}")
    tx.jobs.put(jobs.create("episodes/e", 1, "text", NOW))
    tx.jobs.llm_request_count += 1


def stored(store):
    return store.entries_after("facts", 0, 9), len(store.jobs.open), store.jobs.llm_requests_on(NOW[:10])


@pytest.mark.parametrize("conflicts", [1, WRITE_ATTEMPTS - 1])
def test_conflicting_transaction_is_stored_once(engine, monkeypatch, conflicts):
    runs, commits = [], []
    engine.hooks.on_commit = lambda store, changes: commits.append(changes)

    async def scenario(store):
        engine.plant_conflicts(monkeypatch, conflicts)
        await store.write(lambda tx: [runs.append(1), add(tx)])
        assert stored(store) == ([(1, "facts/f")], 1, 1)

    engine.run_for_ada(scenario)
    assert len(runs) == conflicts + 1 and len(commits) == 1


def test_endless_conflicts_raise_busy_and_store_no_row(engine, monkeypatch):
    runs = []

    async def scenario(store):
        engine.plant_conflicts(monkeypatch, 10 * WRITE_ATTEMPTS)
        with pytest.raises(Busy, match="Nothing was stored") as caught:
            await store.write(lambda tx: [runs.append(1), add(tx)])
        assert caught.value.retry_after_s and stored(store) == ([], 0, 0)

    engine.run_for_ada(scenario)
    assert len(runs) == WRITE_ATTEMPTS


def test_conflict_repeats_all_transactions_of_a_shared_commit(engine, monkeypatch):
    async def scenario(store):
        engine.plant_conflicts(monkeypatch, 1)
        names = "abcd"
        works = [lambda tx, name=name: tx.put(f"facts/{name}", fact(name), b"{}") for name in names]
        await asyncio.gather(*(store.write(work) for work in works))
        assert sorted(key for _, key in store.entries_after("facts", 0, 9)) == [f"facts/{n}" for n in names]
        assert store.seq == len(names)

    engine.run_for_ada(scenario)
