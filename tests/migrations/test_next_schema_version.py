"""A next version of the schema, walked before it is needed: files of today, opened by the program of tomorrow.

`v1/` holds the migration of that version; the program of tomorrow is today's with one more migration and a `facts`
of version 1 that requires a field of its own.
"""

import dataclasses
import shutil
from pathlib import Path

import duckdb
import pytest

from property.rows import fact, session
from server.in_process_server import house, run
from vademecum.errors import Broken
from vademecum.model.schema.collections import COLLECTIONS, Fact, Registry
from vademecum.services.runtime.composition import migrations_folder

NEXT = Path(__file__).parent / "v1"


class FactV1(Fact, kw_only=True):
    origin: str


TOMORROW = Registry(
    dataclasses.replace(c, struct=FactV1, version=1) if c.name == "facts" else c for c in COLLECTIONS
)


@pytest.fixture
def tomorrows(tmp_path) -> Path:
    """The migrations folder of the next version."""
    folder = tmp_path / "migrations"
    shutil.copytree(migrations_folder(), folder)
    for path in NEXT.iterdir():
        shutil.copy(path, folder)
    return folder


async def write_today(data, persons=1):
    """Users with a live fact, a dead one and a session; their tokens."""
    made = []
    async with house(data) as h:
        for _ in range(persons):
            person = await h.person()
            assert await person.push("facts", fact("kept"), fact("dead")) == []
            assert await person.push("facts", {**fact("dead"), "_deleted": True}) == []
            assert await person.push("sessions", session("s")) == []
            made.append(person)
    return made


def later(h, person):
    """The same person on the server of another day."""
    person.client._transport.app = h.app
    return person


async def pull(person, version):
    return await person.call("GET", f"/v1/sync/facts/{version}/pull?lwt=0&limit=100")


def test_a_file_of_today_is_migrated_when_its_owner_comes(tmp_path, tomorrows):
    async def scenario():
        people = await write_today(tmp_path / "data", persons=2)
        async with house(tmp_path / "data", registry=TOMORROW, migrations=tomorrows) as h:
            for person in people:
                answer = await pull(later(h, person), 1)
                rows = {row["id"]: row for row in answer.json()["documents"]}
                assert rows["kept"] == {**fact("kept"), "origin": "typed"}
                assert rows["dead"]["_deleted"] is True and rows["dead"]["origin"] == ""
                assert set(await person.live("sessions")) == {"s"}

    run(scenario)


def test_a_migrated_file_takes_rows_of_the_new_version_and_edits_of_old_ones(tmp_path, tomorrows):
    async def scenario():
        [person] = await write_today(tmp_path / "data")
        async with house(tmp_path / "data", registry=TOMORROW, migrations=tomorrows) as h:
            later(h, person)
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


def test_the_schema_gate_sends_old_apps_to_an_update_and_asks_new_ones_to_wait(tmp_path, tomorrows):
    async def scenario():
        [person] = await write_today(tmp_path / "data")
        async with house(tmp_path / "data") as h:
            too_new = await pull(later(h, person), 1)
            assert too_new.status_code == 503 and int(too_new.headers["retry-after"]) > 0
        async with house(tmp_path / "data", registry=TOMORROW, migrations=tomorrows) as h:
            too_old = await pull(later(h, person), 0)
            assert too_old.status_code == 426 and too_old.json()["error"] is True
            pushed = await person.call("POST", "/v1/sync/facts/0/push", json=[])
            assert pushed.status_code == 426

    run(scenario)


def test_a_file_from_the_future_is_not_opened_and_not_touched(tmp_path, tomorrows):
    async def scenario():
        [person] = await write_today(tmp_path / "data")
        async with house(tmp_path / "data", registry=TOMORROW, migrations=tomorrows) as h:
            assert (await pull(later(h, person), 1)).status_code == 200
        before = contents(tmp_path / "data")
        with pytest.raises(BaseException) as caught:
            async with house(tmp_path / "data"):
                raise AssertionError("it started")
        assert "newer version" in said(caught.value) and "0099_facts_v1.sql" in said(caught.value)
        assert contents(tmp_path / "data") == before

    run(scenario)


def test_one_users_file_from_the_future_costs_nobody_else_anything(tmp_path, tomorrows):
    """A folder that was copied here from a newer server."""

    async def scenario():
        people = await write_today(tmp_path / "data", persons=2)
        shutil.copytree(tmp_path / "data", tmp_path / "newer")
        async with house(tmp_path / "newer", registry=TOMORROW, migrations=tomorrows) as h:
            await pull(later(h, people[0]), 1)
        [source] = (tmp_path / "newer" / "users").rglob(people[0].id)
        [target] = (tmp_path / "data" / "users").rglob(people[0].id)
        shutil.copy(source / "records.duckdb", target / "records.duckdb")
        async with house(tmp_path / "data") as h:
            refused = await pull(later(h, people[0]), 0)
            assert refused.status_code >= 500 and "newer version" in refused.json()["detail"]
            assert (await pull(later(h, people[1]), 0)).status_code == 200
        assert (source / "records.duckdb").read_bytes() == (target / "records.duckdb").read_bytes()

    run(scenario)


def test_a_changed_migration_refuses_to_start(tmp_path, tomorrows):
    async def scenario():
        await write_today(tmp_path / "data")
        first = tomorrows / "0001_records.sql"
        first.write_text(first.read_text(encoding="utf-8") + "-- edited\n", encoding="utf-8")
        before = contents(tmp_path / "data")
        with pytest.raises(BaseException) as caught:
            async with house(tmp_path / "data", migrations=tomorrows):
                raise AssertionError("it started")
        assert "0001_records.sql" in said(caught.value) and "never edited" in said(caught.value)
        assert contents(tmp_path / "data") == before

    run(scenario)


def test_a_migration_that_fails_leaves_the_file_as_it_was(tmp_path, tomorrows):
    async def scenario():
        [person] = await write_today(tmp_path / "data")
        broken = tomorrows / "0099_facts_v1.sql"
        good = broken.read_text(encoding="utf-8")
        broken.write_text(
            good + "UPDATE packs SET first = bodies::BIGINT;\n", encoding="utf-8"
        )  # fits no row
        shutil.copytree(tmp_path / "data", tmp_path / "copy")
        async with house(tmp_path / "copy", registry=TOMORROW, migrations=tomorrows) as h:
            assert (await pull(later(h, person), 1)).status_code >= 500
        [path] = (tmp_path / "copy" / "users").rglob("records.duckdb")
        with duckdb.connect(path, read_only=True) as connection:
            bodies = connection.execute("SELECT bodies FROM packs").fetchall()
            names = connection.execute("SELECT name FROM migrations").fetchall()
        assert "origin" not in str(bodies)
        assert names == [(path.name,) for path in sorted(migrations_folder().glob("0*.sql"))]

    run(scenario)


def test_a_folder_without_migrations_is_an_incomplete_installation(tmp_path):
    async def scenario():
        (tmp_path / "empty").mkdir()
        with pytest.raises(BaseException) as caught:
            async with house(tmp_path / "data", migrations=tmp_path / "empty"):
                raise AssertionError("it started")
        assert "incomplete" in said(caught.value)

    run(scenario)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(folder.rglob("*.duckdb*")) if p.is_file()}


def said(error: BaseException) -> str:
    """The words of our own error, wherever a task group has put it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, Broken), repr(error)
    return str(error)
