"""Repeated uploads of a file: after the text was stored only partly, and after a lost response."""

import hashlib

from property.rows import block, document, fact, session
from server.in_process_server import check_problem, run, serve

TEXT = "The landlord repairs the roof."


def announced(person, **more):
    """Return the row of a document whose blocks were not pushed."""
    file_hash = hashlib.sha256(TEXT.encode()).hexdigest()
    given = {"status": "pending", "chunkCount": 3, "contentHash": file_hash, "activeSessions": ["s2"], **more}
    return document(person.id, "d", **given)


def texts(blocks):
    return {row_id: [chunk["text"] for chunk in row["chunks"]] for row_id, row in blocks.items()}


def test_uploading_the_file_again_repairs_a_failed_document(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            stored = (await ada.upload("roof.txt", TEXT)).json()["document"]
            await h.drain_jobs(ada)
            stored = (await ada.live("documents"))[stored["id"]]
            failed = {**stored, "status": "failed", "statusDetail": "A part is missing."}
            assert await ada.push("documents", failed, assumed=stored) == []
            answer = (await ada.upload("roof.txt", TEXT, "s2")).json()
            await h.drain_jobs(ada)
            assert (answer["existing"], answer["document"]["id"]) == (False, stored["id"])
            (row,) = (await ada.live("documents")).values()
            assert row["status"] == "ready" and "statusDetail" not in row
            assert row["activeSessions"] == ["s1", "s2"] and row["createdAt"] == stored["createdAt"]

    run(scenario)


def test_uploading_the_file_completes_a_document_with_missing_text(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            await ada.push("sessions", session("s1"), session("s2"))
            assert await ada.push("documents", announced(ada)) == []
            old = [block("d", n, text=f"left over {n}", embedding=None, dims=0) for n in (0, 1)]
            assert await ada.push("vectorEmbeddings", *old) == []
            assert await ada.push("facts", fact("f1", sourceDocumentId="d")) == []
            assert (await ada.upload("other name.txt", TEXT)).json()["existing"] is False
            await h.drain_jobs(ada)
            (row,) = (await ada.live("documents")).values()
            assert (row["id"], row["status"], row["chunkCount"]) == ("d", "ready", 1)
            assert (row["filename"], row["activeSessions"]) == ("d.txt", ["s2", "s1"])
            assert texts(await ada.live("vectorEmbeddings")) == {"d.0": [TEXT]}
            assert (await ada.live("facts"))["f1"]["sourceRemoved"] is False
            for asking in ("s1", "s2"):
                assert (await ada.search("landlord", asking))["results"][0]["documentId"] == "d"
            assert (await ada.upload("roof.txt", TEXT)).json()["existing"] is True

    run(scenario)


def test_account_at_document_limit_can_complete_an_announced_document(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            others = [document(ada.id, f"o{n}") for n in range(99)]
            assert await ada.push("documents", announced(ada), *others) == []
            assert (await ada.upload("roof.txt", TEXT)).status_code == 201
            check_problem(await ada.upload("new.txt", "A new text."), 409, "DOCUMENT_LIMIT")

    run(scenario)


def test_failed_upload_leaves_the_announced_document_unchanged(tmp_path, monkeypatch):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            assert await ada.push("documents", announced(ada)) == []
            old = block("d", 7, text="left over", embedding=None, dims=0)
            assert await ada.push("vectorEmbeddings", old) == []
            full = h.services.settings.tiers["JIGGA"].__replace__(storage_bytes=500)
            monkeypatch.setitem(h.services.settings.tiers, "JIGGA", full)
            check_problem(await ada.upload("roof.txt", TEXT), 409, "STORAGE_LIMIT")
            assert (await ada.live("documents"))["d"] == announced(ada)
            assert await ada.live("vectorEmbeddings") == {"d.7": old}

    run(scenario)


async def send(person, document_id, text=TEXT, session_id="s1"):
    """Upload a file with an id that the client has chosen."""
    form = {"sessionId": session_id, "id": document_id}
    return await person.call("POST", "/v1/documents", files={"file": ("roof.txt", text.encode())}, data=form)


def test_upload_repeated_with_its_id_makes_one_document(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            first = await send(ada, "chosen")
            again = await send(ada, "chosen")
            assert (first.json()["existing"], again.json()["existing"]) == (False, True)
            assert first.json()["document"]["id"] == again.json()["document"]["id"] == "chosen"
            assert list(await ada.live("documents")) == ["chosen"]

    run(scenario)


def test_upload_of_an_announced_document_keeps_its_id(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            assert await ada.push("documents", announced(ada)) == []
            answer = await send(ada, "d", session_id="s2")
            assert (answer.json()["existing"], answer.json()["document"]["id"]) == (False, "d")
            assert texts(await ada.live("vectorEmbeddings")) == {"d.0": [TEXT]}

    run(scenario)


def test_upload_of_existing_file_borrows_it(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            await send(ada, "chosen")
            other = (await send(ada, "other", session_id="s2")).json()
            assert (other["existing"], other["document"]["id"]) == (True, "chosen")
            assert other["document"]["activeSessions"] == ["s1", "s2"]

    run(scenario)


def test_document_id_cannot_be_reused_for_other_text_or_after_deletion(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            await send(ada, "chosen")
            check_problem(await send(ada, "chosen", "Another text."), 409, "CONFLICT")
            assert texts(await ada.live("vectorEmbeddings")) == {"chosen.0": [TEXT]}
            await ada.call("DELETE", "/v1/documents/chosen")
            check_problem(await send(ada, "chosen"), 409, "GONE")
            assert await ada.live("documents") == {}

    run(scenario)


def test_invalid_document_id_is_rejected(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            for wrong in ("a b", "../up", "x" * 91):
                check_problem(await send(ada, wrong), 400, "BAD_REQUEST")
            file = {"file": ("a.txt", b"a"), "id": ("b.txt", b"b")}
            check_problem(await ada.call("POST", "/v1/documents", files=file), 400, "BAD_REQUEST")
            assert await ada.live("documents") == {}

    run(scenario)
