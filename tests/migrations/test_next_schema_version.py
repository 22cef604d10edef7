"""Migrations of the schema, tested with a hypothetical next version that opens files of this version.

The next version is this program with the migration in `v1/` and a `facts` collection of version 1, which requires an
additional field.
"""

import dataclasses
import shutil
from pathlib import Path

import duckdb
import pytest

from property.rows import fact, session
from server.in_process_server import reconnect, run, serve
from vademecum.errors import Broken
from vademecum.model.schema.collections import COLLECTIONS, Fact, Registry
from vademecum.services.runtime.composition import migrations_folder

NEXT_MIGRATIONS = Path(__file__).parent / "v1"


class FactV1(Fact, kw_only=True):
    origin: str


NEXT_REGISTRY = Registry(
    dataclasses.replace(c, struct=FactV1, version=1) if c.name == "facts" else c for c in COLLECTIONS
)


@pytest.fixture
def next_migrations(tmp_path) -> Path:
    """Return a migrations folder with all migrations of this version and the one of the next version."""
    folder = tmp_path / "migrations"
    shutil.copytree(migrations_folder(), folder)
    for path in NEXT_MIGRATIONS.iterdir():
        shutil.copy(path, folder)
    return folder


async def write_rows(data, persons=1):
    """With this version, create accounts with a live fact, a deleted fact and a session. Return the accounts."""
    result = []
    async with serve(data) as h:
        for _ in range(persons):
            person = await h.person()
            assert await person.push("facts", fact("kept"), fact("dead")) == []
            assert await person.push("facts", {**fact("dead"), "_deleted": True}) == []
            assert await person.push("sessions", session("s")) == []
            result.append(person)
    return result


async def pull(person, version):
    return await person.call("GET", f"/v1/sync/facts/{version}/pull?lwt=0&limit=100")


def test_account_file_is_migrated_at_first_access(tmp_path, next_migrations):
    async def scenario():
        people = await write_rows(tmp_path / "data", persons=2)
        async with serve(tmp_path / "data", registry=NEXT_REGISTRY, migrations=next_migrations) as h:
            for person in people:
                answer = await pull(reconnect(h, person), 1)
                rows = {row["id"]: row for row in answer.json()["documents"]}
                assert rows["kept"] == {**fact("kept"), "origin": "typed"}
                assert rows["dead"]["_deleted"] is True and rows["dead"]["origin"] == ""
                assert set(await person.live("sessions")) == {"s"}

    run(scenario)


def test_migrated_file_accepts_new_rows_and_edits(tmp_path, next_migrations):
    async def scenario():
        [person] = await write_rows(tmp_path / "data")
        async with serve(tmp_path / "data", registry=NEXT_REGISTRY, migrations=next_migrations) as h:
            reconnect(h, person)
            kept = {**fact("kept"), "origin": "typed"}
            batch = [
                {"newDocumentState": {**kept, "value": "edited"}, "assumedMasterState": kept},
                {"newDocumentState": {**fact("new"), "origin": "found"}},
                {"newDocumentState": fact("lacks its origin")},
            ]
            answer = await person.call("POST", "/v1/sync/facts/1/push", json=batch)
            assert [row["syncError"]["code"] for row in answer.json()] == ["INVALID"]
            rows = {row["id"]: row for row in (await pull(person, 1)).json()["documents"]}
            assert rows["kept"]["value"] == "edited" and rows["new"]["origin"] == "found"

    run(scenario)


def test_older_clients_get_426_and_newer_clients_get_503(tmp_path, next_migrations):
    async def scenario():
        [person] = await write_rows(tmp_path / "data")
        async with serve(tmp_path / "data") as h:
            too_new = await pull(reconnect(h, person), 1)
            assert too_new.status_code == 503 and int(too_new.headers["retry-after"]) > 0
        async with serve(tmp_path / "data", registry=NEXT_REGISTRY, migrations=next_migrations) as h:
            too_old = await pull(reconnect(h, person), 0)
            assert too_old.status_code == 426 and too_old.json()["error"] is True
            pushed = await person.call("POST", "/v1/sync/facts/0/push", json=[])
            assert pushed.status_code == 426

    run(scenario)


def test_server_does_not_start_on_files_of_a_newer_version(tmp_path, next_migrations):
    async def scenario():
        [person] = await write_rows(tmp_path / "data")
        async with serve(tmp_path / "data", registry=NEXT_REGISTRY, migrations=next_migrations) as h:
            assert (await pull(reconnect(h, person), 1)).status_code == 200
        before = contents(tmp_path / "data")
        with pytest.raises(BaseException) as caught:
            async with serve(tmp_path / "data"):
                raise AssertionError("the server started")
        assert "newer version" in message_of(caught.value) and "0099_facts_v1.sql" in message_of(caught.value)
        assert contents(tmp_path / "data") == before

    run(scenario)


def test_file_of_newer_version_blocks_only_its_own_account(tmp_path, next_migrations):
    """The account's file was copied from the data folder of a newer server."""

    async def scenario():
        people = await write_rows(tmp_path / "data", persons=2)
        shutil.copytree(tmp_path / "data", tmp_path / "newer")
        async with serve(tmp_path / "newer", registry=NEXT_REGISTRY, migrations=next_migrations) as h:
            await pull(reconnect(h, people[0]), 1)
        [source] = (tmp_path / "newer" / "users").rglob(people[0].id)
        [target] = (tmp_path / "data" / "users").rglob(people[0].id)
        shutil.copy(source / "records.duckdb", target / "records.duckdb")
        async with serve(tmp_path / "data") as h:
            response = await pull(reconnect(h, people[0]), 0)
            assert response.status_code >= 500 and "newer version" in response.json()["detail"]
            assert (await pull(reconnect(h, people[1]), 0)).status_code == 200
        assert (source / "records.duckdb").read_bytes() == (target / "records.duckdb").read_bytes()

    run(scenario)


def test_server_does_not_start_with_a_changed_migration(tmp_path, next_migrations):
    async def scenario():
        await write_rows(tmp_path / "data")
        first = next_migrations / "0001_records.sql"
        first.write_text(first.read_text(encoding="utf-8") + "-- edited\n", encoding="utf-8")
        before = contents(tmp_path / "data")
        with pytest.raises(BaseException) as caught:
            async with serve(tmp_path / "data", migrations=next_migrations):
                raise AssertionError("the server started")
        assert "0001_records.sql" in message_of(caught.value) and "write a new migration" in message_of(
            caught.value
        )
        assert contents(tmp_path / "data") == before

    run(scenario)


def test_failed_migration_leaves_the_account_file_unchanged(tmp_path, next_migrations):
    async def scenario():
        [person] = await write_rows(tmp_path / "data")
        broken = next_migrations / "0099_facts_v1.sql"
        good = broken.read_text(encoding="utf-8")
        failing = "UPDATE packs SET first = bodies::BIGINT;\n"  # a cast that fails for every row
        broken.write_text(good + failing, encoding="utf-8")
        shutil.copytree(tmp_path / "data", tmp_path / "copy")
        async with serve(tmp_path / "copy", registry=NEXT_REGISTRY, migrations=next_migrations) as h:
            assert (await pull(reconnect(h, person), 1)).status_code >= 500
        [path] = (tmp_path / "copy" / "users").rglob("records.duckdb")
        with duckdb.connect(path, read_only=True) as connection:
            bodies = connection.execute("SELECT bodies FROM packs").fetchall()
            names = connection.execute("SELECT name FROM migrations").fetchall()
        assert "origin" not in str(bodies)
        assert names == [(path.name,) for path in sorted(migrations_folder().glob("0*.sql"))]

    run(scenario)


def test_server_reports_incomplete_installation_without_migrations(tmp_path):
    async def scenario():
        (tmp_path / "empty").mkdir()
        with pytest.raises(BaseException) as caught:
            async with serve(tmp_path / "data", migrations=tmp_path / "empty"):
                raise AssertionError("the server started")
        assert "incomplete" in message_of(caught.value)

    run(scenario)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(folder.rglob("*.duckdb*")) if p.is_file()}


def message_of(error: BaseException) -> str:
    """Return the text of the application's error, also inside an exception group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, Broken), repr(error)
    return str(error)
