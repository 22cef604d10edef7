"""The server drops references to deleted rows from every row that it accepts, by whatever way the row arrives."""

from property.rows import dead, document, entity, fact, memory, project, session
from property.sync_wire import alone, send, seqs, stored
from vademecum.model.schema.derived_ids import entity_id


def test_pushed_row_with_dangling_references_is_returned_without_them(tmp_path):
    async def scenario(ada):
        await send(ada, "sessions", (dead(session("gone")), None), (session("here"), None))
        row = document(ada.id, "d", activeSessions=["gone", "here", "unknown"], originSessionId="gone")
        repaired = {**row, "activeSessions": ["here", "unknown"]}
        assert await send(ada, "documents", (row, None)) == [repaired]
        assert await stored(ada, "documents", "d") == repaired

    alone(tmp_path, scenario)


def test_every_kind_of_dangling_reference_is_dropped(tmp_path):
    async def scenario(ada):
        await send(ada, "sessions", (dead(session("s")), None))
        await send(ada, "projects", (dead(project("p")), None))
        await send(ada, "documents", (dead(document(ada.id, "d")), None))
        await send(ada, "memories", (dead(memory("m")), None))
        for collection, sent, repaired in [
            ("sessions", session("s2", projectId="p"), session("s2")),
            ("facts", fact("f", sourceDocumentId="d"), fact("f", sourceDocumentId="d", sourceRemoved=True)),
            ("memories", memory("m2", sessionIds=["s", "t"], supersedes="m"), memory("m2", sessionIds=["t"])),
            ("memories", memory("m3", supersededBy="m"), memory("m3")),
        ]:
            assert await send(ada, collection, (sent, None)) == [repaired]
            assert await stored(ada, collection, sent["id"]) == repaired
            assert await send(ada, collection, (sent, None)) == [repaired], (
                "a repeated push must return the same row"
            )

    alone(tmp_path, scenario)


def test_edit_and_merge_drop_dangling_references(tmp_path):
    async def scenario(ada):
        old = document(ada.id, "d")
        await send(ada, "documents", (old, None))
        await send(ada, "sessions", (dead(session("gone")), None))
        edited = {**old, "activeSessions": ["gone", "s"], "accessCount": 2}
        (first,) = await send(ada, "documents", (edited, old))
        assert first["activeSessions"] == ["s"]
        (second,) = await send(ada, "documents", ({**old, "activeSessions": ["gone", "t"]}, old))
        assert (
            second["activeSessions"] == ["s", "t"] == (await stored(ada, "documents", "d"))["activeSessions"]
        )

    alone(tmp_path, scenario)


def test_reference_dropped_by_server_does_not_conflict_with_new_reference(tmp_path):
    """A device that was offline has moved a session and a fact to new parents and deleted the old parents.

    It pushes the deletes first, so the server drops the references before the moves arrive.
    """

    async def scenario(ada):
        talk, told = session("s", projectId="p"), fact("f", sourceDocumentId="d")
        await send(ada, "projects", (project("p"), None), (project("q"), None))
        await send(ada, "documents", (document(ada.id, "d"), None), (document(ada.id, "e"), None))
        await send(ada, "sessions", (talk, None))
        await send(ada, "facts", (told, None))
        await send(ada, "projects", (dead(project("p")), project("p")))
        await send(ada, "documents", (dead(document(ada.id, "d")), document(ada.id, "d")))
        moved, resourced = {**talk, "projectId": "q"}, {**told, "sourceDocumentId": "e"}
        assert await send(ada, "sessions", (moved, talk)) == []
        assert await send(ada, "facts", (resourced, told)) == []
        assert await stored(ada, "sessions", "s") == moved and await stored(ada, "facts", "f") == resourced

    alone(tmp_path, scenario)


def test_edit_based_on_older_row_does_not_bring_back_dropped_reference(tmp_path):
    async def scenario(ada):
        talk = session("s", projectId="p")
        await send(ada, "projects", (project("p"), None), (project("q"), None))
        await send(ada, "sessions", (talk, None))
        await send(ada, "projects", (dead(project("p")), project("p")))
        edited = {**talk, "title": "edited"}
        for _ in range(2):
            assert await send(ada, "sessions", (edited, talk)) == [session("s", title="edited")]
            before = await seqs(ada, "sessions")
        assert await send(ada, "sessions", (edited, talk)) and await seqs(ada, "sessions") == before
        there = session("s", title="edited", projectId="q")
        assert await send(ada, "sessions", (there, session("s", title="edited"))) == []
        assert await send(ada, "sessions", (edited, talk)) == [there], "the move by another device must stay"

    alone(tmp_path, scenario)


def test_admitted_waiting_row_drops_dangling_references(tmp_path):
    async def scenario(ada):
        await send(ada, "memories", (memory("m", projectId="p", sessionIds=["s", "t"]), None))
        await send(ada, "sessions", (dead(session("s")), None))
        await send(ada, "projects", (project("p"), None))
        assert (await ada.live("memories"))["m"]["sessionIds"] == ["t"]

    alone(tmp_path, scenario)


def test_offline_row_of_merged_project_moves_to_the_final_project(tmp_path):
    async def scenario(ada):
        known = session("known", projectId="flat")
        await send(ada, "projects", *((project(name), None) for name in ("flat", "house", "town")))
        await send(ada, "sessions", (known, None))
        for part, whole in (("flat", "house"), ("house", "town")):
            answer = await ada.call("POST", f"/v1/projects/{part}/merge", json={"into": whole})
            assert answer.status_code == 200, answer.text
        for collection, made in [
            ("sessions", session("s", projectId="flat")),
            ("memories", memory("m", projectId="flat")),
        ]:
            there = {**made, "projectId": "town"}
            for _ in range(2):  # a client whose response was lost pushes again
                assert await send(ada, collection, (made, None)) == [there]
                assert await stored(ada, collection, made["id"]) == there
        renamed = {**known, "title": "Renamed"}
        (answer,) = await send(ada, "sessions", (renamed, known))
        assert (answer["title"], answer["projectId"]) == ("Renamed", "town")
        await send(ada, "sessions", (session("known", title="Left"), known))
        assert "projectId" not in await stored(ada, "sessions", "known"), (
            "a device must be able to move its session to the pool"
        )
        await send(ada, "projects", (dead(project("town")), None))
        assert await send(ada, "sessions", (session("late", projectId="flat"), None)) == [session("late")]

    alone(tmp_path, scenario)


def test_offline_entity_of_merged_project_is_merged_into_its_namesake(tmp_path):
    async def scenario(ada):
        def known_as(row_id, project_id, name, notes):
            return entity(row_id, project_id, name=name, type="person", notes=notes)

        def here(name):
            return entity_id("house", "person", name)

        old = known_as("old", "flat", "Ann", "eats no nuts")
        there = known_as(here("Ann"), "house", "Ann", "has a boat")
        gone = known_as(here("Bob"), "house", "Bob", "a neighbour")
        await send(ada, "projects", (project("flat"), None), (project("house"), None))
        await send(ada, "entities", (old, None), (there, None), (gone, None))
        answer = await ada.call("POST", "/v1/projects/flat/merge", json={"into": "house"})
        assert answer.status_code == 200, answer.text
        assert (await stored(ada, "entities", here("Ann")))["notes"] == "has a boat\neats no nuts"

        await send(ada, "entities", (dead(gone), gone))
        edited = {**old, "notes": "eats no nuts, nor eggs"}
        new = known_as("new", "flat", "Eve", "plays chess")
        late = known_as("late", "flat", "Bob", "a friend")
        for _ in range(2):  # a client whose response was lost pushes again
            answers = await send(ada, "entities", (edited, old), (new, None), (late, None))
            assert [(row["id"], row["_deleted"]) for row in answers] == [
                ("old", True),
                ("new", True),
                ("late", True),
            ]
        ann, eve = await stored(ada, "entities", here("Ann")), await stored(ada, "entities", here("Eve"))
        assert ann["notes"].split("\n") == ["has a boat", "eats no nuts, nor eggs"], (
            "the edited line must replace the old line"
        )
        assert (eve["notes"], eve["projectId"]) == ("plays chess", "house")
        assert set(await ada.live("entities")) == {ann["id"], eve["id"]}, "deleted entities must stay deleted"

    alone(tmp_path, scenario)


def test_project_revived_after_its_merge_is_a_separate_project(tmp_path):
    async def scenario(ada):
        await send(ada, "projects", (project("flat"), None), (project("house"), None))
        answer = await ada.call("POST", "/v1/projects/flat/merge", json={"into": "house"})
        assert answer.status_code == 200, answer.text
        tombstone = await stored(ada, "projects", "flat")
        await send(ada, "projects", (project("flat"), tombstone))
        assert await send(ada, "sessions", (session("s", projectId="flat"), None)) == []
        await send(ada, "projects", (dead(project("flat")), None))
        assert await send(ada, "sessions", (session("t", projectId="flat"), None)) == [session("t")]

    alone(tmp_path, scenario)
