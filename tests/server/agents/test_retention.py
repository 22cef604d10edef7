"""Retention removes expired observations, their tombstones and the ids of old events."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import msgspec
import pytest

from property.sync_wire import forget
from server.agents.agent_events import event, list_observations, run_retention, send_events
from server.in_process_server import Harness, Person, run, serve
from vademecum.engines.duckdb.paths import user_ledger
from vademecum.model.agents.observations import Event, days_before
from vademecum.services.agents import folder_check, ingest
from vademecum.services.data.erase import scan
from vademecum.services.data.forget import _delete_all_rows
from vademecum.services.runtime.clock import now_iso


class Clock:
    """A clock that returns the current time plus `days`."""

    def __init__(self) -> None:
        self.days = 0.0

    def __call__(self) -> str:
        return days_before(now_iso(), -self.days)


def run_scenario(tmp_path: Path, scenario, **settings) -> None:
    async def whole() -> None:
        clock = Clock()
        async with serve(tmp_path / "data", clock=clock, **settings) as h:
            await scenario(h, await h.person(), clock)

    run(whole)


def is_scheduled(h: Harness, person: Person) -> bool:
    return h.services.background_jobs.jobs["retain"].is_pending(person.id)


async def stored_event_ids(h: Harness, person: Person) -> set[str]:
    """Return the ids of ingested events in the user's file."""
    async with h.services.users.open(person.id) as store:
        query = f"SELECT id FROM {store.alias}.main.taken"
        return {row[0] for row in await store._run(lambda c: c.execute(query).fetchall())}


async def rows(h: Harness, person: Person) -> list[str]:
    """Return the keys of all server-only rows, including tombstones."""
    async with h.services.users.open(person.id) as store:
        return [key for key in store.row_index.rows if key.startswith(("observations/", "roots/"))]


def test_ids_of_ingested_events_expire_after_thirty_days(tmp_path):
    async def scenario(h: Harness, ada: Person, clock: Clock) -> None:
        old, new = event("x", kind="decision"), event("y", kind="decision")
        await send_events(ada, old)
        clock.days = 29
        await send_events(ada, new)
        await run_retention(h, ada)
        assert await stored_event_ids(h, ada) == {old["id"], new["id"]}
        assert await send_events(ada, old, new) == 0
        clock.days = 31
        await run_retention(h, ada)
        assert await stored_event_ids(h, ada) == {new["id"]}
        assert [row["count"] for row in await list_observations(ada)] == [1, 1]

    run_scenario(tmp_path, scenario)


def test_forgetting_an_account_erases_ids_of_ingested_events(tmp_path):
    async def scenario(h: Harness, ada: Person, clock: Clock) -> None:
        events = [event(f"make {n}", n) for n in range(20)]
        await send_events(ada, *events)
        ids = [one["id"].encode() for one in events]
        assert scan(tmp_path / "data", ids) == len(ids)
        await forget(ada)
        assert await stored_event_ids(h, ada) == set() and scan(tmp_path / "data", ids) == 0
        assert await send_events(ada, *events) == 0 and await list_observations(ada) == [], (
            "forgotten events are not ingested again"
        )
        assert await stored_event_ids(h, ada) == set(), "ids of forgotten events must not be stored again"
        clock.days = 1
        assert await send_events(ada, event("new", at=clock())) == 1
        assert [row["content"] for row in await list_observations(ada)] == ["new"]

    run_scenario(tmp_path, scenario)


def test_event_ingested_in_the_forgetting_commit_leaves_no_event_id(tmp_path):
    async def scenario(h: Harness, ada: Person, clock: Clock) -> None:
        events = [msgspec.convert(event("x"), Event)]
        limits = h.services.limits(h.services.accounts.accounts[ada.id])
        taking = partial(ingest.store_events, events=events, limits=limits, access=folder_check.REMOTE)
        async with h.services.users.open(ada.id) as store:
            before = store.seq
            both = store.write(taking), store.write(lambda tx: _delete_all_rows(tx, {}))
            assert (await asyncio.gather(*both))[0] == 1
            assert store.seq > before
        assert await stored_event_ids(h, ada) == set()

    run_scenario(tmp_path, scenario)


def test_restore_after_forget_restores_no_event_id(tmp_path):
    async def scenario(h: Harness, ada: Person, clock: Clock) -> None:
        await send_events(ada, event("make"))
        await h.services.backup.create(tmp_path / "backup")
        await forget(ada)
        await h.services.restore.restore_all(tmp_path / "backup")
        assert await stored_event_ids(h, ada) == set() and await list_observations(ada) == []

    run_scenario(tmp_path, scenario)


def test_retention_job_repeats_until_no_expired_row_remains(tmp_path):
    async def scenario(h: Harness, ada: Person, clock: Clock) -> None:
        await send_events(ada, event("make"))
        (row,) = await list_observations(ada)
        await ada.call("DELETE", f"/v1/observations/{row['id']}?project=app")
        for days in (1, 2):
            clock.days = days
            await run_retention(h, ada)
            assert is_scheduled(h, ada) and await stored_event_ids(h, ada)
        clock.days = 31
        await run_retention(h, ada)
        assert await stored_event_ids(h, ada) == set() and not is_scheduled(h, ada)

    run_scenario(tmp_path, scenario)


def test_observation_tombstone_is_purged_and_its_row_stays_erased(tmp_path):
    async def scenario(h: Harness, ada: Person, clock: Clock) -> None:
        old_event = event("an aubergine read", kind="read", at=clock())
        await send_events(ada, old_event)
        await h.drain_jobs(ada)
        assert scan(tmp_path / "data" / "users", [b"aubergine"]) == 1
        await h.services.backup.create(tmp_path / "backup")
        clock.days = 61
        (key,) = [key for key in await rows(h, ada) if key.startswith("observations/")]
        await run_retention(h, ada)
        assert await list_observations(ada) == [] and key in await rows(h, ada)
        async with h.services.users.open(ada.id) as store:
            before, seq = store.row_index.totals.tombstones, store.seq
        await run_retention(h, ada)
        assert key not in await rows(h, ada) and await list_observations(ada) == []
        async with h.services.users.open(ada.id) as store:
            assert (store.row_index.totals.tombstones, store.seq) == (before - 1, seq)
        await h.drain_jobs(ada)
        assert scan(tmp_path / "data" / "users", [b"aubergine"]) == 0
        await h.services.restore.restore_all(tmp_path / "backup")
        assert await list_observations(ada) == [], "a restore must not bring back a row in the erasure ledger"
        await run_retention(h, ada)
        assert key not in await rows(h, ada)
        again = event("an aubergine read", kind="read", at=clock())
        assert await send_events(ada, again) == 1 and len(await list_observations(ada)) == 1, (
            "a later event must create a new row"
        )

    run_scenario(tmp_path, scenario)


def test_edited_observation_stays_deleted_after_purge_and_restart(
    tmp_path,
):
    async def scenario(h: Harness, ada: Person, clock: Clock) -> None:
        # One commit stores three rows in one segment. The next one makes a row of that segment outdated.
        await send_events(ada, *(event(name, path=name) for name in ("one", "two", "three")))
        await send_events(ada, event("one again", path="one"))
        (row,) = [row for row in await list_observations(ada) if row["path"] == "one"]
        await ada.call("DELETE", f"/v1/observations/{row['id']}?project=app")
        await run_retention(h, ada)
        assert f"observations/{row['id']}" not in await rows(h, ada)
        async with h.services.users.detached(ada.id):
            pass  # the next access reads the row index from the file again
        assert {row["path"] for row in await list_observations(ada)} == {"two", "three"}

    run_scenario(tmp_path, scenario, erase_delay_s=600)


def test_event_of_purged_observation_is_not_ingested_again(tmp_path):
    async def scenario(h: Harness, ada: Person, clock: Clock) -> None:
        old_event = event("looked", kind="search", at=days_before(clock(), 40))
        await send_events(ada, old_event)
        for _ in range(2):
            await run_retention(h, ada)
        assert not [key for key in await rows(h, ada) if key.startswith("observations/")]
        assert await send_events(ada, old_event) == 0 and await list_observations(ada) == []

    run_scenario(tmp_path, scenario)


def test_seq_is_not_reused_after_tombstones_are_purged(tmp_path):
    async def whole() -> None:
        clock = Clock()
        async with serve(tmp_path / "data", clock=clock, erase_delay_s=3600) as h:
            ada = await h.person()
            await send_events(ada, event("read", kind="read", at=days_before(clock(), 61)))
            for _ in range(2):
                await run_retention(h, ada)
            assert not [key for key in await rows(h, ada) if key.startswith("observations/")]
            async with h.services.users.open(ada.id) as store:
                seq = store.seq
        async with serve(tmp_path / "data", clock=clock) as h, h.services.users.open(ada.id) as store:
            assert store.seq == seq

    run(whole)


def test_observation_tombstone_is_not_purged_while_ledger_is_unwritable(tmp_path):
    async def scenario(h: Harness, ada: Person, clock: Clock) -> None:
        await send_events(ada, event("read", kind="read", at=days_before(clock(), 61)))
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

    # The delay is so long that no erasure reopens the ledger during the test.
    run_scenario(tmp_path, scenario, erase_delay_s=3600)


def test_expired_observations_leave_the_ledger_and_stay_expired_after_restore(tmp_path):
    async def scenario(h: Harness, ada: Person, clock: Clock) -> None:
        long_ago = days_before(clock(), 59)
        await send_events(
            ada, *(event(f"read {n}", kind="read", at=long_ago) for n in range(5)), event("mine", kind="read")
        )
        (mine,) = [row for row in await list_observations(ada) if row["content"] == "mine"]
        await h.services.backup.create(tmp_path / "backup")
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
        assert await list_observations(ada) == [] and len(ledger.read()) <= 2
        await h.services.restore.restore_all(tmp_path / "backup")
        # These rows are visible only until the next retention run.
        back = {row["content"] for row in await list_observations(ada)}
        assert back and back < {f"read {n}" for n in range(5)}, "the deleted row must not be restored"
        await retain(ada.id)
        assert await list_observations(ada) == []

    run_scenario(tmp_path, scenario, erase_delay_s=3600)
