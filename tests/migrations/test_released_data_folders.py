"""This version can open, sync and search data folders that released versions have written."""

import json
import tarfile
from pathlib import Path

import pytest

from property.rows import fact, session
from server.in_process_server import Person, run, serve, with_token
from vademecum.model.schema.row_upgrades import upgrade_row
from vademecum.model.sync.transaction import WAITING

STORED = sorted((Path(__file__).parent / "stored").glob("*.tar.gz"))


def unpack(archive, target):
    """Unpack a stored data folder. Return its path, and a map from person to expected content."""
    with tarfile.open(archive) as tar:
        tar.extractall(target, filter="data")
    data = target / "data"
    return data, json.loads((data / "expected.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("archive", STORED, ids=lambda path: path.name.removesuffix(".tar.gz"))
def test_data_folder_of_released_version_opens_syncs_and_searches(tmp_path, archive):
    data, expected = unpack(archive, tmp_path)

    async def scenario():
        async with serve(data, model=True) as h:
            for name, words in (("ada", "tenant notice"), ("ben", "sugar flour")):
                stored = expected[name]
                person = Person(stored["id"], with_token(h, stored["secret"]))
                assert await h.pull_all(person) == upgraded(stored["rows"])
                async with h.services.users.open(person.id) as store:
                    assert store.row_index.rows["episodes/early"].seq == WAITING
                found = (await person.search(words))["results"]
                assert found[0]["filename"].startswith(name)
                await check_writes(person)

    run(scenario)


def upgraded(rows):
    """Return the expected rows in their current schema versions."""
    return {name: [upgrade_row(name, row) for row in some] for name, some in rows.items()}


async def check_writes(person):
    """Check that new rows, edits and deletes are stored, and that a waiting row appears once its parent is pushed."""
    before = await person.live("facts")
    await person.add("facts", fact("new", key="user.new"))
    edited = {**before["f7"], "value": "edited by the new version", "updatedAt": "2026-12-01T00:00:00.000Z"}
    assert await person.push("facts", edited, assumed=before["f7"]) == []
    assert await person.push("facts", {**before["f8"], "_deleted": True}, assumed=before["f8"]) == []
    await person.add("sessions", session("not-here-yet"))
    after = await person.live("facts")
    assert set(after) == set(before) - {"f8"} | {"new"}
    assert after["f7"]["value"] == edited["value"]
    assert "early" in await person.live("episodes")
