"""The rows of a data folder of version 0.1.0, whose collections all had version 0, are upgraded when it is opened."""

import asyncio
import json
import threading

import duckdb
import pytest

from migrations.test_released_data_folders import STORED, unpack, upgraded
from property.rows import sync_path
from server.in_process_server import Person, check_problem, run, serve, with_token
from vademecum.engines.duckdb import row_upgrade, user_database
from vademecum.engines.duckdb.verification import verify_all

ARCHIVE = STORED[0]


@pytest.fixture
def stored(tmp_path):
    data, expected = unpack(ARCHIVE, tmp_path)
    return data, expected["ada"]


class Interruption:
    """Makes the upgrade of one account fail at its commit with the given number, once. Each commit has one segment."""

    def __init__(self, monkeypatch, account, interrupted_at):
        self.commits = 0
        commit, upgrade = row_upgrade.commit, row_upgrade.upgrade_rows
        upgraded_here = threading.local()

        def upgrade_rows(cursor, alias, upgraded_to, name):
            upgraded_here.account = name
            upgrade(cursor, alias, upgraded_to, name)

        def interrupted_commit(cursor, statements):
            if upgraded_here.account == account["id"]:
                self.commits += 1
                if self.commits == interrupted_at:
                    raise OSError("interrupted")
            commit(cursor, statements)

        monkeypatch.setattr(user_database, "upgrade_rows", upgrade_rows)
        monkeypatch.setattr(row_upgrade, "commit", interrupted_commit)
        monkeypatch.setattr(row_upgrade, "BATCH_SEGMENTS", 1)


def records_of(data, account):
    [path] = (data / "users").glob(f"*/{account['id']}/records.duckdb")
    return path


def read(path, query):
    with duckdb.connect(str(path), read_only=True) as connection:
        return connection.execute(query).fetchall()


def person_of(h, account):
    return Person(account["id"], with_token(h, account["secret"]))


def test_upgraded_rows_keep_their_seq_and_have_valid_checksums(stored):
    data, account = stored
    path = records_of(data, account)
    seqs = "SELECT first, collection, seqs FROM packs ORDER BY first"
    before = read(path, seqs)

    async def scenario():
        async with serve(data) as h:
            person = person_of(h, account)
            assert await h.pull_all(person) == upgraded(account["rows"])
            assert (await person.call("GET", "/v1/me")).json()["usage"]["bytes"] == await charged(h, person)

    run(scenario)
    assert read(path, seqs) == before
    assert read(path, "SELECT count(*) FROM meta WHERE name = 'upgraded_to'") == [(0,)]
    with duckdb.connect(str(path), read_only=True) as connection:
        verify_all(connection, connection.execute("SELECT current_database()").fetchone()[0])


async def charged(h, person):
    """Return the bytes of the live and waiting rows as they are stored."""
    async with h.services.users.open(person.id) as store:
        keys = [key for key, head in store.row_index.rows.items() if not head.deleted]
        bodies = await store.read_bodies(keys)
        assert len(bodies) == len(keys)
        return sum(
            len(body)
            - min(len(row.get("embedding") or ""), 4 * sum(len(c["text"]) for c in row.get("chunks", ())))
            for body in bodies.values()
            for row in [json.loads(body)]
        )


def test_device_with_an_old_checkpoint_receives_nothing_again(stored):
    data, account = stored
    seq = max(
        seq
        for (seqs,) in read(records_of(data, account), "SELECT seqs FROM packs")
        for seq in json.loads(seqs)
    )

    async def scenario():
        async with serve(data) as h:
            person = person_of(h, account)
            for name in h.services.registry.synced:
                page = (await person.call("GET", f"{sync_path(name)}/pull?lwt={seq}&limit=100")).json()
                assert page["documents"] == [] and page["checkpoint"]["lwt"] == seq

    run(scenario)


def test_edit_that_a_device_made_before_its_upgrade_is_no_conflict(stored):
    data, account = stored

    async def scenario():
        async with serve(data) as h:
            person = person_of(h, account)
            for name, field in (("sessions", "title"), ("episodes", "aiResponse"), ("documents", "filename")):
                [assumed, *_] = [row for row in upgraded(account["rows"])[name] if not row.get("_deleted")]
                edited = {**assumed, field: "edited offline", "updatedAt": "2026-12-01T00:00:00.000Z"}
                assert await person.push(name, edited, assumed=assumed) == []

    run(scenario)


def test_client_of_the_old_version_gets_426_and_can_continue_after_its_upgrade(stored):
    data, account = stored

    async def scenario():
        async with serve(data) as h:
            person = person_of(h, account)
            for name in row_upgrade.UPGRADED_COLLECTIONS:
                pulled = await person.call("GET", f"/v1/sync/{name}/0/pull?lwt=0&limit=100")
                check_problem(pulled, 426, "OUTDATED")
                check_problem(await person.call("POST", f"/v1/sync/{name}/0/push", json=[]), 426, "OUTDATED")
            assert await h.pull_all(person) == upgraded(account["rows"])

    run(scenario)


def test_waiting_rows_are_upgraded_before_their_parent_arrives(stored):
    data, account = stored

    async def scenario():
        async with serve(data) as h:
            person = person_of(h, account)
            await person.pull("facts")
        assert "aiResponse" in str(read(records_of(data, account), "SELECT body FROM waiting"))

    run(scenario)
    [(body,)] = read(records_of(data, account), "SELECT body FROM waiting WHERE id = 'episodes/early'")
    assert all("n" in citation for citation in json.loads(body)["citations"])


@pytest.mark.parametrize("interrupted_at", [1, 2, 5])
def test_interrupted_upgrade_continues_where_it_stopped(stored, monkeypatch, interrupted_at):
    data, account = stored
    names = ", ".join(f"'{name}'" for name in row_upgrade.UPGRADED_COLLECTIONS)
    [(segments,)] = read(
        records_of(data, account), f"SELECT count(*) FROM packs WHERE collection IN ({names})"
    )
    interruption = Interruption(monkeypatch, account, interrupted_at)

    async def scenario():
        async with serve(data) as h:
            person = person_of(h, account)
            while (await person.call("GET", f"{sync_path('facts')}/pull")).status_code != 200:
                await asyncio.sleep(0.05)
            assert await h.pull_all(person) == upgraded(account["rows"])

    run(scenario)
    assert interruption.commits == segments + 1 + 1  # one for each segment, the last, and the interrupted one


def test_damaged_row_fences_only_its_account(stored):
    data, account = stored
    path = records_of(data, account)
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "UPDATE packs SET bodies = replace(bodies, 'title', 'titel') WHERE collection = 'sessions'"
        )
        connection.execute("CHECKPOINT")
    other = json.loads((data / "expected.json").read_text())["ben"]

    async def scenario():
        async with serve(data) as h:
            answer = await person_of(h, account).call("GET", "/v1/sync/facts/0/pull")
            check_problem(answer, 503, "FENCED")
            assert await h.pull_all(person_of(h, other)) == upgraded(other["rows"])

    run(scenario)
