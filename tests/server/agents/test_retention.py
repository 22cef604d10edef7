"""What stays of agents' events when they are over: no id longer than it is needed, no tombstone that nobody is told of."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import msgspec
import pytest

from property.sync_wire import forget
from server.agents.agent_events import event, listed, swept, take
from server.in_process_server import House, Person, house, run
from vademecum.engines.duckdb.paths import user_ledger
from vademecum.model.agents.observations import Event, days_before
from vademecum.services.agents import folder_check, ingest
from vademecum.services.data import backup as backups
from vademecum.services.data.erase import scan
from vademecum.services.data.forget import _bury_all
from vademecum.services.runtime.clock import now_iso


class Clock:
    """The time it is, some days from now."""

    def __init__(self) -> None:
        self.days = 0.0

    def __call__(self) -> str:
        return days_before(now_iso(), -self.days)


def scenario_of(tmp_path: Path, scenario, **settings) -> None:
    async def whole() -> None:
        clock = Clock()
        async with house(tmp_path / "data", clock=clock, **settings) as h:
            await scenario(h, await h.person(), clock)

    run(whole)


def asked_again(h: House, person: Person) -> bool:
    return h.services.background_jobs.jobs["retain"].is_pending(person.id)


async def known(h: House, person: Person) -> set[str]:
    """The ids of events that the user's file has."""
    async with h.services.users.open(person.id) as store:
        query = f"SELECT id FROM {store.alias}.main.taken"
        return {row[0] for row in await store._run(lambda c: c.execute(query).fetchall())}


async def rows(h: House, person: Person) -> list[str]:
    """Keys of all rows that devices do not have, the dead ones too."""
    async with h.services.users.open(person.id) as store:
        return [key for key in store.row_index.rows if key.startswith(("observations/", "roots/"))]


def test_event_ids_expire_after_thirty_days(tmp_path):
    async def scenario(h: House, ada: Person, clock: Clock) -> None:
        old, new = event("x", kind="decision"), event("y", kind="decision")
        await take(ada, old)
        clock.days = 29
        await take(ada, new)
        await swept(h, ada)
        assert await known(h, ada) == {old["id"], new["id"]}
        assert await take(ada, old, new) == 0
        clock.days = 31
        await swept(h, ada)
        assert await known(h, ada) == {new["id"]}
        assert [row["count"] for row in await listed(ada)] == [1, 1]

    scenario_of(tmp_path, scenario)


def test_forget_erases_event_ids(tmp_path):
    async def scenario(h: House, ada: Person, clock: Clock) -> None:
        events = [event(f"make {n}", n) for n in range(20)]
        await take(ada, *events)
        ids = [one["id"].encode() for one in events]
        assert scan(tmp_path / "data", ids) == len(ids)
        await forget(ada)
        assert await known(h, ada) == set() and scan(tmp_path / "data", ids) == 0
        assert await take(ada, *events) == 0 and await listed(ada) == [], "what was forgotten stays so"
        assert await known(h, ada) == set(), "nor does its id come back"
        clock.days = 1
        assert await take(ada, event("new", at=clock())) == 1
        assert [row["content"] for row in await listed(ada)] == ["new"]

    scenario_of(tmp_path, scenario)


def test_event_ingested_in_forgetting_commit_leaves_no_id(tmp_path):
    async def scenario(h: House, ada: Person, clock: Clock) -> None:
        said = [msgspec.convert(event("x"), Event)]
        limits = h.services.limits(h.services.accounts.accounts[ada.id])
        taking = partial(ingest.store_events, events=said, limits=limits, access=folder_check.REMOTE)
        async with h.services.users.open(ada.id) as store:
            before = store.seq
            both = store.write(taking), store.write(lambda tx: _bury_all(tx, {}))
            assert (await asyncio.gather(*both))[0] == 1
            assert store.seq > before
        assert await known(h, ada) == set()

    scenario_of(tmp_path, scenario)


def test_restore_after_forget_restores_no_event_id(tmp_path):
    async def scenario(h: House, ada: Person, clock: Clock) -> None:
        await take(ada, event("make"))
        await backups.backup(h.services, tmp_path / "backup")
        await forget(ada)
        await backups.restore(h.services, tmp_path / "backup")
        assert await known(h, ada) == set() and await listed(ada) == []

    scenario_of(tmp_path, scenario)


def test_retention_repeats_until_nothing_remains(tmp_path):
    async def scenario(h: House, ada: Person, clock: Clock) -> None:
        await take(ada, event("make"))
        (row,) = await listed(ada)
        await ada.call("DELETE", f"/v1/observations/{row['id']}?project=app")
        for days in (1, 2):
            clock.days = days
            await swept(h, ada)
            assert asked_again(h, ada) and await known(h, ada)
        clock.days = 31
        await swept(h, ada)
        assert await known(h, ada) == set() and not asked_again(h, ada)

    scenario_of(tmp_path, scenario)


def test_server_only_tombstone_is_purged_and_stays_erased(tmp_path):
    async def scenario(h: House, ada: Person, clock: Clock) -> None:
        said = event("an aubergine read", kind="read", at=clock())
        await take(ada, said)
        await h.settle(ada)
        assert scan(tmp_path / "data" / "users", [b"aubergine"]) == 1
        await backups.backup(h.services, tmp_path / "backup")
        clock.days = 61
        (key,) = [key for key in await rows(h, ada) if key.startswith("observations/")]
        await swept(h, ada)
        assert await listed(ada) == [] and key in await rows(h, ada)
        async with h.services.users.open(ada.id) as store:
            before, seq = store.row_index.totals.tombstones, store.seq
        await swept(h, ada)
        assert key not in await rows(h, ada) and await listed(ada) == []
        async with h.services.users.open(ada.id) as store:
            assert (store.row_index.totals.tombstones, store.seq) == (before - 1, seq)
        await h.settle(ada)
        assert scan(tmp_path / "data" / "users", [b"aubergine"]) == 0
        await backups.restore(h.services, tmp_path / "backup")
        assert await listed(ada) == [], "the ledger knows of its death"
        await swept(h, ada)
        assert key not in await rows(h, ada)
        again = event("an aubergine read", kind="read", at=clock())
        assert await take(ada, again) == 1 and len(await listed(ada)) == 1, "done anew, it is a row anew"

    scenario_of(tmp_path, scenario)


def test_edited_row_stays_deleted_after_purge_and_restart(
    tmp_path,
):
    async def scenario(h: House, ada: Person, clock: Clock) -> None:
        await take(ada, *(event(name, path=name) for name in ("one", "two", "three")))  # in one pack,
        await take(ada, event("one again", path="one"))  # which is stale in part from now on
        (row,) = [row for row in await listed(ada) if row["path"] == "one"]
        await ada.call("DELETE", f"/v1/observations/{row['id']}?project=app")
        await swept(h, ada)
        assert f"observations/{row['id']}" not in await rows(h, ada)
        async with h.services.users.detached(ada.id):
            pass  # what is in memory is read from the file again
        assert {row["path"] for row in await listed(ada)} == {"two", "three"}

    scenario_of(tmp_path, scenario, erase_delay_s=600)


def test_event_of_purged_row_is_not_ingested_again(tmp_path):
    async def scenario(h: House, ada: Person, clock: Clock) -> None:
        said = event("looked", kind="search", at=days_before(clock(), 40))
        await take(ada, said)
        for _ in range(2):
            await swept(h, ada)
        assert not [key for key in await rows(h, ada) if key.startswith("observations/")]
        assert await take(ada, said) == 0 and await listed(ada) == []

    scenario_of(tmp_path, scenario)


def test_seq_is_not_reused_after_purge(tmp_path):
    async def whole() -> None:
        clock = Clock()
        async with house(tmp_path / "data", clock=clock, erase_delay_s=3600) as h:
            ada = await h.person()
            await take(ada, event("read", kind="read", at=days_before(clock(), 61)))
            for _ in range(2):
                await swept(h, ada)
            assert not [key for key in await rows(h, ada) if key.startswith("observations/")]
            async with h.services.users.open(ada.id) as store:
                seq = store.seq
        async with house(tmp_path / "data", clock=clock) as h, h.services.users.open(ada.id) as store:
            assert store.seq == seq

    run(whole)


def test_tombstone_stays_while_ledger_is_unwritable(tmp_path):
    async def scenario(h: House, ada: Person, clock: Clock) -> None:
        await take(ada, event("read", kind="read", at=days_before(clock(), 61)))
        path = user_ledger(tmp_path / "data", ada.id).path
        path.unlink()
        path.mkdir()
        retain = h.services.background_jobs.jobs["retain"]._work
        await retain(ada.id)
        with pytest.raises(OSError, match="ledger"):
            await retain(ada.id)
        dead = [key for key in await rows(h, ada) if key.startswith("observations/")]
        assert dead
        path.rmdir()
        await retain(ada.id)
        assert not [key for key in await rows(h, ada) if key.startswith("observations/")]
        assert dead[0] in path.read_text()

    scenario_of(
        tmp_path, scenario, erase_delay_s=3600
    )  # an erasure opens the file anew, and the ledger with it


def test_expired_row_leaves_ledger_and_is_not_restored(tmp_path):
    async def scenario(h: House, ada: Person, clock: Clock) -> None:
        long_ago = days_before(clock(), 59)
        await take(
            ada, *(event(f"read {n}", kind="read", at=long_ago) for n in range(5)), event("mine", kind="read")
        )
        (mine,) = [row for row in await listed(ada) if row["content"] == "mine"]
        await backups.backup(h.services, tmp_path / "backup")
        await ada.call("DELETE", f"/v1/observations/{mine['id']}?project=app")
        ledger, retain = (
            user_ledger(tmp_path / "data", ada.id),
            h.services.background_jobs.jobs["retain"]._work,
        )
        clock.days = 2
        await retain(ada.id)
        assert len(ledger.read()) == 6
        await retain(ada.id)
        async with h.services.users.detached(ada.id):
            pass
        assert await listed(ada) == [] and len(ledger.read()) <= 2
        await backups.restore(h.services, tmp_path / "backup")
        back = {row["content"] for row in await listed(ada)}  # until their age is looked at
        assert back and back < {f"read {n}" for n in range(5)}, "what a person deleted is not among them"
        await retain(ada.id)
        assert await listed(ada) == []

    scenario_of(tmp_path, scenario, erase_delay_s=3600)
