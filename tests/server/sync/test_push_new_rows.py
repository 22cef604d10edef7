"""Push, rule 7: a new row is accepted, rejected as forgotten, deleted with its parent, or waits for its parent."""

import pytest

from property import rows as make
from property.rows import NEW, dead, unmarked
from property.sync_wire import alone, codes, forget, send, seqs, stored
from vademecum.model.sync.quotas import Limits

CHILDREN = [
    ("documents", "vectorEmbeddings", make.block("x")),
    ("sessions", "episodes", make.episode("e", "x")),
    ("sessions", "summaries", make.summary("u", sessionId="x")),
    ("projects", "summaries", make.summary("u", projectId="x")),
    ("projects", "memories", make.memory("m", projectId="x")),
    ("projects", "entities", make.entity("n", "x", name="Nora")),
    ("entities", "relationships", make.relationship("r", "x", "y")),
    ("entities", "relationships", make.relationship("r", "y", "x")),
]


def parent_row(ada, collection, row_id="x"):
    if collection == "entities":
        return make.entity(row_id, "pp")
    makers = {
        "sessions": make.session,
        "projects": make.project,
        "documents": lambda i: make.document(ada.id, i),
    }
    return makers[collection](row_id)


async def put_grandparents(ada, collection):
    """For a test with entities, push the project of the parent and the other entity of its relationship."""
    if collection == "entities":
        await send(ada, "projects", (make.project("pp"), None))
        await send(ada, "entities", (make.entity("y", "pp"), None))


def test_unknown_row_with_assumed_state_is_accepted(tmp_path):
    async def scenario(ada):
        assert await send(ada, "facts", (make.fact("f", value="new"), make.fact("f"))) == []
        assert await stored(ada, "facts", "f") == make.fact("f", value="new")

    alone(tmp_path, scenario)


def test_row_from_before_a_forget_is_rejected(tmp_path):
    async def scenario(ada):
        await forget(ada)
        answered = await send(
            ada,
            "facts",
            (make.fact("old"), None),
            (make.fact("assumed"), make.fact("assumed")),
            (make.fact("new", createdAt=NEW), None),
        )
        assert [unmarked(row) for row in answered] == [make.fact("old"), make.fact("assumed")]
        assert codes(answered) == ["FORGOTTEN"] * 2 and "base" not in answered[0]["syncError"]
        assert set(await ada.live("facts")) == {"new"}

    alone(tmp_path, scenario)


@pytest.mark.parametrize(("parents", "children", "child"), CHILDREN)
def test_push_of_row_with_deleted_parent_returns_a_tombstone(tmp_path, parents, children, child):
    async def scenario(ada):
        await put_grandparents(ada, parents)
        await send(ada, parents, (dead(parent_row(ada, parents)), None))
        answered = await send(ada, children, (child, None))
        assert [(row["id"], row["_deleted"]) for row in answered] == [(child["id"], True)]
        assert "syncError" not in answered[0] and await ada.live(children) in (
            {},
            {"y": make.entity("y", "pp")},
        )
        text = next(
            child[k] for k in ("userMessage", "content", "text", "label", "chunks", "name") if k in child
        )
        assert text not in answered[0].values()

    alone(tmp_path, scenario)


@pytest.mark.parametrize(("parents", "children", "child"), CHILDREN)
def test_row_without_its_parent_waits_until_the_parent_is_pushed(tmp_path, parents, children, child):
    async def scenario(ada):
        await put_grandparents(ada, parents)
        before = await seqs(ada)
        assert await send(ada, children, (child, None)) == []
        assert await seqs(ada) == before and await stored(ada, children, child["id"]) is None
        assert await send(ada, parents, (parent_row(ada, parents), None)) == []
        assert await stored(ada, children, child["id"]) == child
        after = await seqs(ada)
        assert after[f"{parents}/x"] < after[f"{children}/{child['id']}"]

    alone(tmp_path, scenario)


@pytest.mark.parametrize(("parents", "children", "child"), CHILDREN)
def test_waiting_row_is_deleted_with_its_parent(tmp_path, parents, children, child):
    async def scenario(ada):
        await put_grandparents(ada, parents)
        await send(ada, children, (child, None))
        assert await send(ada, parents, (dead(parent_row(ada, parents)), None)) == []
        assert child["id"] not in await ada.live(children)
        answered = await send(ada, children, (child, None))
        assert [(row["id"], row["_deleted"]) for row in answered] == [(child["id"], True)]

    alone(tmp_path, scenario)


def test_waiting_rows_are_admitted_when_their_last_parent_arrives(tmp_path):
    async def scenario(ada):
        await send(ada, "relationships", (make.relationship("r", "a", "b"), None))
        await send(ada, "entities", (make.entity("a", "p"), None), (make.entity("b", "q"), None))
        assert await ada.pull("relationships") == await ada.pull("entities") == []
        await send(ada, "projects", (make.project("p"), None))
        assert list(await ada.live("entities")) == ["a"] and await ada.pull("relationships") == []
        await send(ada, "projects", (make.project("q"), None))
        assert await ada.live("relationships") == {"r": make.relationship("r", "a", "b")}

    alone(tmp_path, scenario)


def test_waiting_row_can_be_edited_and_deleted(tmp_path):
    async def scenario(ada):
        first, second = make.episode("e", "s"), make.episode("e", "s", userMessage="edited")
        for pair in ((first, None), (first, None), (second, first)):
            assert await send(ada, "episodes", pair) == []
        assert await ada.pull("episodes") == []
        await send(ada, "episodes", (make.episode("gone", "s"), None))
        assert await send(ada, "episodes", (dead(make.episode("gone", "s")), make.episode("gone", "s"))) == []
        await send(ada, "sessions", (make.session("s"), None))
        assert await ada.live("episodes") == {"e": second}

    alone(tmp_path, scenario)


def test_edits_of_waiting_row_are_merged(tmp_path):
    async def scenario(ada):
        old = make.episode("e", "s")
        row = [{**old, "userMessage": "edited"}, {**old, "aiResponse": "rewritten"}]
        for pair in ((old, None), (row[0], old), (row[1], old)):
            await send(ada, "episodes", pair)
        await send(ada, "sessions", (make.session("s"), None))
        assert await stored(ada, "episodes", "e") == make.bumped({**row[0], "aiResponse": "rewritten"})

    alone(tmp_path, scenario)


def test_waiting_rows_are_charged_until_their_parent_is_deleted(tmp_path):
    async def scenario(ada):
        text = "x" * 3000
        assert await send(ada, "episodes", (make.episode("a", "s", userMessage=text), None)) == []
        refused = await send(ada, "episodes", (make.episode("b", "s", userMessage=text), None))
        assert codes(refused) == ["STORAGE_LIMIT"]
        assert await send(ada, "sessions", (dead(make.session("s")), None)) == []
        assert await send(ada, "facts", (make.fact("f", value=text), None)) == []

    alone(tmp_path, scenario, tiers={"JIGGA": Limits(storage_bytes=5000)})


def test_forget_erases_waiting_rows(tmp_path):
    async def scenario(ada):
        waiting = make.episode("e", "s", createdAt=NEW)
        await send(ada, "episodes", (waiting, None))
        await forget(ada)
        await send(ada, "sessions", (make.session("s", createdAt=NEW), None))
        assert await ada.live("episodes") == {}

    alone(tmp_path, scenario)


def test_waiting_row_is_not_found_by_search(tmp_path):
    async def scenario(ada):
        await send(
            ada, "vectorEmbeddings", (make.block("d", text="a zebra crossed", embedding=None, dims=0), None)
        )
        assert (await ada.search("zebra"))["results"] == []
        row = make.document(ada.id, "d", activeSessions=["s1"], originSessionId="s1")
        await send(ada, "documents", (row, None))
        assert [hit["documentId"] for hit in (await ada.search("zebra"))["results"]] == ["d"]

    alone(tmp_path, scenario)
