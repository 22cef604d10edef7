"""Erased rows stay erased after an older backup is restored, even if the ledger was written late."""

import pytest

from property.rows import (
    dead,
    document,
    entity,
    episode,
    fact,
    memory,
    project,
    relationship,
    session,
    summary,
)
from property.sync_wire import forget, send, stored
from server.in_process_server import reconnect, run, serve
from vademecum.engines.duckdb.erasure_ledger import newest
from vademecum.engines.duckdb.paths import user_ledger


def fail_appends(path):
    """Make appends to the ledger fail, as on a full disk. Return a function that makes them work again."""
    aside = path.with_suffix(".aside")
    if path.exists():
        path.rename(aside)
    path.mkdir(parents=True)

    def space():
        path.rmdir()
        if aside.exists():
            aside.rename(path)

    return space


async def restart(data, person, work):
    """Start another server on the same data and run `scenario` on it."""
    async with serve(data) as h:
        reconnect(h, person)
        await work(h)


def test_delete_missing_from_ledger_is_added_when_account_opens(tmp_path):
    async def scenario():
        async with serve(tmp_path / "data") as h:
            ada = await h.person()
            await send(ada, "facts", (fact("secret"), None), (fact("other"), None))
            await h.services.backup.create(tmp_path / "backup")
            await ada.pull("facts")
            space = fail_appends(user_ledger(tmp_path / "data", ada.id).path)
            assert await send(ada, "facts", (dead(fact("secret")), None)) == []
            space()
            async with h.services.users.open(ada.id) as store:
                store._ledger._unwritten.clear()  # simulate a crash, which loses unwritten ledger entries
            await send(ada, "facts", (dead(fact("other")), None))

        async def restored(h):
            await ada.pull("facts")
            await h.services.restore.restore_all(tmp_path / "backup")
            assert await ada.live("facts") == {}

        await restart(tmp_path / "data", ada, restored)

    run(scenario)


def test_deleted_reference_does_not_prevent_erasure_on_restore(tmp_path):
    """Deleting a document changes the fact that references it. The test deletes this fact later."""

    async def scenario():
        async with serve(tmp_path / "data") as h:
            ada = await h.person()
            lease = document(ada.id, "lease")
            rent, key = (fact(name, sourceDocumentId="lease") for name in ("rent", "key"))
            await send(ada, "documents", (lease, None))
            await send(ada, "facts", (rent, None), (key, None))
            await h.services.backup.create(tmp_path / "backup")
            await send(ada, "documents", (dead(lease), None))
            await send(ada, "facts", (dead(rent), None))
            await h.services.restore.restore_all(tmp_path / "backup")
            assert set(await ada.live("facts")) == {"key"}
            await forget(ada)
            await h.services.restore.restore_all(tmp_path / "backup")
            assert await ada.live("facts") == {} and await ada.live("documents") == {}

    run(scenario)


def test_restore_yields_the_same_rows_after_ledger_compaction(tmp_path):
    """The test deletes and revives rows many times, and makes a backup after each step."""

    async def scenario():
        async with serve(tmp_path / "data") as h:
            ada = await h.person()
            rows = [fact(name, value=f"{name} 0") for name in ("dies", "lives")]
            await send(ada, "facts", *((row, None) for row in rows))
            for turn in range(4):
                await h.services.backup.create(tmp_path / f"backup{turn}")
                await send(ada, "facts", *((dead(row), None) for row in rows))
                rows = [{**row, "value": f"{row['id']} {turn}"} for row in rows]
                tombs = [await stored(ada, "facts", row["id"]) for row in rows]
                assert await send(ada, "facts", *zip(rows, tombs, strict=True)) == []
            await h.services.backup.create(tmp_path / "last")
            await send(ada, "facts", (dead(rows[0]), None))

        async def restored(h):
            await ada.pull("facts")
            lines = user_ledger(tmp_path / "data", ada.id).read()
            assert sorted(newest(lines)) == ["facts/dies", "facts/lives"] and len(lines) <= 4
            await h.services.restore.restore_all(tmp_path / "last")
            assert set(await ada.live("facts")) == {"lives"}
            for turn in range(4):
                await h.services.restore.restore_all(tmp_path / f"backup{turn}")
                assert await ada.live("facts") == {}

        await restart(tmp_path / "data", ada, restored)

    run(scenario)


def test_restore_first_flushes_pending_ledger_entries(tmp_path):
    """The account's file stays open, so the missing ledger entries are not added by opening it."""

    async def scenario():
        async with serve(tmp_path / "data") as h:
            ada = await h.person()
            await send(ada, "facts", (fact("secret"), None))
            await h.services.backup.create(tmp_path / "backup")
            await ada.pull("facts")
            space = fail_appends(user_ledger(tmp_path / "data", ada.id).path)
            await send(ada, "facts", (dead(fact("secret")), None))
            space()
            await h.services.restore.restore_all(tmp_path / "backup")
            assert await ada.live("facts") == {}

    run(scenario)


@pytest.mark.parametrize("known", [True, False])
def test_restore_keeps_rows_moved_before_project_deletion(tmp_path, known):
    """Rows that a merge or a device moved to another project stay in it.

    If the backup does not contain that project, the rows are missing until devices push them again.
    """

    async def scenario():
        async with serve(tmp_path / "data") as h:
            ada = await h.person()
            await send(ada, "projects", *((project(name), None) for name in ("clinic", "trip")))
            if known:
                await send(ada, "projects", (project("health"), None))
            bike = memory("bike", projectId="trip")
            await send(ada, "memories", (memory("gout", projectId="clinic"), None), (bike, None))
            await send(ada, "sessions", (session("s", projectId="clinic"), None), (session("pool"), None))
            await send(ada, "episodes", (episode("e", "s", userMessage="a secret"), None))
            await send(ada, "summaries", (summary("u", sessionId="s"), None))
            await send(ada, "entities", (entity("n1", "clinic"), None), (entity("n2", "clinic"), None))
            await send(ada, "relationships", (relationship("r", "n1", "n2"), None))
            await h.services.backup.create(tmp_path / "backup")
            if not known:
                await send(ada, "projects", (project("health"), None))
            answer = await ada.call("POST", "/v1/projects/clinic/merge", json={"into": "health"})
            assert answer.status_code == 200
            await send(ada, "memories", ({**bike, "projectId": "health"}, bike))
            await send(ada, "projects", (dead(project("trip")), None))
            moved = ("memories", "sessions", "episodes", "summaries")
            held = {name: await ada.live(name) for name in moved}

            restored = await h.services.restore.restore_all(tmp_path / "backup")
            assert restored.erased_again == 2 + 2 + 1  # two projects, two entities and one relationship
            assert set(await ada.live("projects")) == ({"health"} if known else set())
            if known:
                for name, rows in held.items():
                    found = await ada.live(name)
                    assert {i: row.get("projectId") for i, row in found.items()} == {
                        i: row.get("projectId") for i, row in rows.items()
                    }, name
                assert set(await ada.live("episodes")) == {"e"}
                return
            for name in ("memories", "episodes", "summaries"):
                assert await ada.pull(name) == [], name
            assert [row["id"] for row in await ada.pull("sessions")] == ["pool"]
            await send(ada, "projects", (project("health"), None))
            for name, rows in held.items():
                answered = await send(ada, name, *((row, None) for row in rows.values()))
                assert answered == [] and await ada.live(name) == rows, name
            assert held["memories"]["gout"]["projectId"] == held["sessions"]["s"]["projectId"] == "health"

    run(scenario)


def test_restore_keeps_sessions_of_a_deleted_project(tmp_path):
    async def scenario():
        async with serve(tmp_path / "data") as h:
            ada = await h.person()
            await send(ada, "projects", (project("trip"), None))
            await send(ada, "sessions", (session("s", projectId="trip"), None))
            await send(ada, "episodes", (episode("e", "s"), None))
            await h.services.backup.create(tmp_path / "backup")
            await send(ada, "projects", (dead(project("trip")), None))
            await h.services.restore.restore_all(tmp_path / "backup")
            assert await ada.live("sessions") == {"s": session("s")}
            assert set(await ada.live("episodes")) == {"e"}

    run(scenario)


def test_restore_does_not_delete_revived_rows(tmp_path):
    """The restore must not bring back the row's content from before its deletion either."""

    async def scenario():
        async with serve(tmp_path / "data") as h:
            ada = await h.person()
            await send(ada, "facts", (fact("name", value="old words"), None), (fact("gone"), None))
            await h.services.backup.create(tmp_path / "alive")
            await send(ada, "facts", (dead(fact("name")), None), (dead(fact("gone")), None))
            await h.services.backup.create(tmp_path / "dead")
            new = fact("name", value="new words")
            assert await send(ada, "facts", (new, await stored(ada, "facts", "name"))) == []
            await h.services.backup.create(tmp_path / "revived")

            for backup in ("alive", "dead"):
                await h.services.restore.restore_all(tmp_path / backup)
                assert {row["id"]: row["_deleted"] for row in await ada.pull("facts")} == {"gone": True}
                assert await send(ada, "facts", (new, None)) == []
                assert await ada.live("facts") == {"name": new}
            await h.services.restore.restore_all(tmp_path / "revived")
            assert await ada.live("facts") == {"name": new}
            await send(ada, "facts", (dead(new), None))
            for backup in ("alive", "dead", "revived"):
                await h.services.restore.restore_all(tmp_path / backup)
                assert await ada.live("facts") == {}
                assert await send(ada, "facts", (new, None)) == [await stored(ada, "facts", "name")]

    run(scenario)
