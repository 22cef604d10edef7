"""The cascade of each kind of delete.

The cases are in tests/conformance/cascade.json. The app has the same test, because devices cascade in the same way.
"""

import json
from pathlib import Path

import pytest

from property import rows as make
from property.rows import dead
from property.sync_wire import COLLECTIONS, alone, page, send, seqs

SHARED = json.loads((Path(__file__).parents[2] / "conformance" / "cascade.json").read_text())
CASES = {case["name"]: case for case in SHARED["cases"]}
ROUTES = {
    "delete a document": "/v1/documents/d",
    "delete a session": "/v1/sessions/s",
    "delete all documents": "/v1/documents",
    "delete a project": "/v1/projects/p",
    "delete a project with its sessions": "/v1/projects/p?sessions=delete",
}


async def make_world(ada):
    """Create two rows of each kind in the case: one that depends on the row to delete, and one that does not."""
    world = {}
    for collection, rows in SHARED["world"].items():
        usual = make.one_of_each(ada.id)[collection]
        made = [without_nulls({**usual, **row}) for row in rows]
        assert await send(ada, collection, *((row, None) for row in made)) == []
        world |= {f"{collection}/{row['id']}": row for row in made}
    return world


async def remove(ada, action, world):
    if action in ROUTES:
        answer = await ada.call("DELETE", ROUTES[action])
        assert answer.status_code == 200, answer.text
        return
    for key in CASES[action]["delete"]:
        assert await send(ada, key.partition("/")[0], (dead(world[key]), world[key])) == []


def expected(action, key, row):
    """Return the expected content of a row that stays. A null in the case stands for a removed field."""
    return without_nulls({**row, **CASES[action]["changed"].get(key, {})})


def without_nulls(row):
    return {name: value for name, value in row.items() if value is not None}


@pytest.mark.parametrize("action", CASES)
def test_cascade_deletes_and_keeps_rows_as_specified(tmp_path, action):
    async def scenario(ada):
        world = await make_world(ada)
        before = await seqs(ada)
        await remove(ada, action, world)
        after = await seqs(ada)
        for key, row in world.items():
            collection, row_id = key.split("/")
            now = next(r for r in (await page(ada, collection))["documents"] if r["id"] == row_id)
            if key in CASES[action]["dead"]:
                assert now["_deleted"] is True, f"{key} was not deleted"
                assert content_of(row).isdisjoint(content_of(now)), f"{key} kept its content"
            else:
                assert now == expected(action, key, row), key
            changed = key in CASES[action]["dead"] or expected(action, key, row) != row
            assert (after[key] > max(before.values())) == changed, (
                f"{key}: the next pull must return exactly the changed rows"
            )
        assert len(set(after.values())) == len(after), "each changed row must have its own seq"

    alone(tmp_path, scenario)


def content_of(row):
    """Return the row's texts that its tombstone must not contain. Ids of parents and times may stay."""
    names = (
        "filename",
        "title",
        "userMessage",
        "aiResponse",
        "value",
        "text",
        "name",
        "label",
        "content",
        "embedding",
    )
    return {row[name] for name in names if row.get(name)} | {c["text"] for c in row.get("chunks", [])}


@pytest.mark.parametrize("collection", ["documents", "sessions", "projects"])
def test_pushed_delete_cascades_like_the_delete_route(tmp_path, collection):
    action = {
        "documents": "delete a document",
        "sessions": "delete a session",
        "projects": "delete a project",
    }
    first = {"documents": "d", "sessions": "s", "projects": "p"}[collection]

    async def scenario(ada):
        world = await make_world(ada)
        row = world[f"{collection}/{first}"]
        assert await send(ada, collection, (dead(row), row)) == []
        died = set()
        for name in COLLECTIONS:
            died |= {f"{name}/{r['id']}" for r in (await page(ada, name))["documents"] if r["_deleted"]}
        assert died == set(CASES[action[collection]]["dead"])

    alone(tmp_path, scenario)


def test_dropping_a_reference_gives_a_new_seq_but_keeps_updated_at(tmp_path):
    async def scenario(ada):
        world = await make_world(ada)
        await remove(ada, "delete a session", world)
        repaired = (await ada.live("documents"))["d"]
        assert repaired["updatedAt"] == world["documents/d"]["updatedAt"] and repaired["activeSessions"] == [
            "s2"
        ]

    alone(tmp_path, scenario)


@pytest.mark.parametrize("known", [True, False], ids=["here", "unknown"])
def test_row_that_drops_many_references_is_written_once(tmp_path, known):
    """One push may delete a thousand sessions that borrow the same document."""

    async def scenario(ada):
        gone = [f"gone{number}" for number in range(5)]
        if known:
            await send(ada, "sessions", *((make.session(i), None) for i in gone))
        await send(ada, "documents", (make.document(ada.id, "d", activeSessions=[*gone, "here"]), None))
        before = (await page(ada, "documents"))["checkpoint"]["lwt"]
        assert await send(ada, "sessions", *((dead(make.session(i)), None) for i in gone)) == []
        repaired = await page(ada, "documents")
        assert [row["activeSessions"] for row in repaired["documents"]] == [["here"]]
        assert (await page(ada, "sessions"))["checkpoint"]["lwt"] == before + len(gone)
        assert repaired["checkpoint"]["lwt"] == before + len(gone) + 1, "each row must take exactly one seq"

    alone(tmp_path, scenario)
