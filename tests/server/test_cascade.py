"""What goes and what stays, cell by cell, when a thing is deleted: the table of section 6 of the design."""

import pytest

from property import rows as make
from property.rows import dead
from property.wire import COLLECTIONS, alone, page, send, seqs

# By which route -> what dies of the world below; everything else lives.
DEATHS = {
    "delete a document": {"documents/d", "vectorEmbeddings/d.0", "vectorEmbeddings/d.1"},
    "delete a session": {"sessions/s", "episodes/e", "summaries/of-s"},
    "delete all documents": {"documents/d", "documents/d2", "vectorEmbeddings/d.0", "vectorEmbeddings/d.1",
                             "vectorEmbeddings/d2.0"},
    "delete a project": {"projects/p", "memories/m-p", "entities/n", "entities/n2", "relationships/r", "summaries/of-p"},
    "delete a project with its sessions": {"projects/p", "memories/m-p", "entities/n", "entities/n2",
                                           "relationships/r", "summaries/of-p", "sessions/s", "episodes/e",
                                           "summaries/of-s"},
    "delete an entity": {"entities/n", "relationships/r"},
}  # fmt: skip


async def make_world(ada):
    """Two of everything that matters: one that hangs on what is deleted, and one beside it."""
    rows = {
        "projects": [make.project("p"), make.project("p2")],
        "sessions": [make.session("s", projectId="p"), make.session("s2")],
        "documents": [
            make.document(ada.id, "d", activeSessions=["s", "s2"]),
            make.document(ada.id, "d2", activeSessions=["s"]),
        ],
        "vectorEmbeddings": [make.block("d", 0), make.block("d", 1), make.block("d2", 0)],
        "episodes": [
            make.episode("e", "s"),
            make.episode("e2", "s2", citations=[{"documentId": "d", "filename": "d.txt", "page": 1}]),
        ],
        "facts": [
            make.fact("f", sourceDocumentId="d"),
            make.fact("f2", sourceDocumentId="d2"),
            make.fact("typed"),
        ],
        "memories": [
            make.memory("m-p", projectId="p", sessionIds=["s"]),
            make.memory("m", sessionIds=["s", "s2"]),
        ],
        "entities": [make.entity("n", "p"), make.entity("n2", "p"), make.entity("n3", "p2")],
        "relationships": [make.relationship("r", "n", "n2")],
        "summaries": [
            make.summary("of-s", sessionId="s"),
            make.summary("of-p", projectId="p"),
            make.summary("of-s2", sessionId="s2"),
        ],
    }
    for collection, some in rows.items():
        assert await send(ada, collection, *((row, None) for row in some)) == []
    return {f"{collection}/{row['id']}": row for collection, some in rows.items() for row in some}


async def remove(ada, action, world):
    by_route = {
        "delete a document": "/v1/documents/d",
        "delete a session": "/v1/sessions/s",
        "delete all documents": "/v1/documents",
        "delete a project": "/v1/projects/p",
        "delete a project with its sessions": "/v1/projects/p?sessions=delete",
    }
    if action in by_route:
        answer = await ada.call("DELETE", by_route[action])
        assert answer.status_code == 200, answer.text
    else:
        row = world["entities/n"]
        assert await send(ada, "entities", (dead(row), row)) == []


def expected(action, key, row):
    """What a survivor looks like afterwards."""
    gone = {"delete a document": {"d"}, "delete all documents": {"d", "d2"}}.get(action, set())
    if row.get("sourceDocumentId") in gone:
        return {**row, "sourceRemoved": True}
    if "session" in action and "sessions/s" in DEATHS[action]:
        for name in ("activeSessions", "sessionIds"):
            if "s" in row.get(name, ()):
                row = {**row, name: [i for i in row[name] if i != "s"]}
    if "projects/p" in DEATHS[action] and key == "sessions/s":
        row = {name: value for name, value in row.items() if name != "projectId"}
    return row


@pytest.mark.parametrize("action", DEATHS)
def test_what_goes_and_what_stays(tmp_path, action):
    async def scenario(ada):
        world = await make_world(ada)
        before = await seqs(ada)
        await remove(ada, action, world)
        after = await seqs(ada)
        for key, row in world.items():
            collection, row_id = key.split("/")
            now = next(r for r in (await page(ada, collection))["documents"] if r["id"] == row_id)
            if key in DEATHS[action]:
                assert now["_deleted"] is True, f"{key} lives"
                assert content_of(row).isdisjoint(content_of(now)), f"{key} kept its content"
            else:
                assert now == expected(action, key, row), key
            changed = key in DEATHS[action] or expected(action, key, row) != row
            assert (after[key] > max(before.values())) == changed, (
                f"{key}: others learn of it by the next pull"
            )
        assert len(set(after.values())) == len(after), "each victim takes its own seq"

    alone(tmp_path, scenario)


def content_of(row):
    """Texts that must not outlive the row; ids of parents and times may."""
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
def test_a_pushed_delete_does_what_the_route_does(tmp_path, collection):
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
        assert died == DEATHS[action[collection]]

    alone(tmp_path, scenario)


def test_healing_takes_a_seq_and_leaves_updated_at(tmp_path):
    async def scenario(ada):
        world = await make_world(ada)
        await remove(ada, "delete a session", world)
        healed = (await ada.live("documents"))["d"]
        assert healed["updatedAt"] == world["documents/d"]["updatedAt"] and healed["activeSessions"] == ["s2"]

    alone(tmp_path, scenario)


@pytest.mark.parametrize("known", [True, False], ids=["here", "unknown"])
def test_a_row_that_names_many_of_the_deleted_is_healed_once(tmp_path, known):
    """A document may be borrowed by thousands of sessions, and a push may delete a thousand of them."""

    async def scenario(ada):
        gone = [f"gone{number}" for number in range(5)]
        if known:
            await send(ada, "sessions", *((make.session(i), None) for i in gone))
        await send(ada, "documents", (make.document(ada.id, "d", activeSessions=[*gone, "here"]), None))
        before = (await page(ada, "documents"))["checkpoint"]["lwt"]
        assert await send(ada, "sessions", *((dead(make.session(i)), None) for i in gone)) == []
        healed = await page(ada, "documents")
        assert [row["activeSessions"] for row in healed["documents"]] == [["here"]]
        assert (await page(ada, "sessions"))["checkpoint"]["lwt"] == before + len(gone)
        assert healed["checkpoint"]["lwt"] == before + len(gone) + 1, "each took one seq"

    alone(tmp_path, scenario)
