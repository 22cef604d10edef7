"""Uploads during which the session is deleted, or all data of the account is forgotten, while the file is parsed."""

from property.rows import session
from server.in_process_server import run, serve
from vademecum.services.documents import upload

TEXT = "The landlord repairs the roof."


def while_it_is_read(monkeypatch, happens):
    parse = upload.parse

    async def parsed(*file):
        await happens()
        return await parse(*file)

    monkeypatch.setattr(upload, "parse", parsed)


def test_document_survives_session_deletion_during_upload(tmp_path, monkeypatch):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            await ada.push("sessions", session("s1"))
            while_it_is_read(monkeypatch, lambda: ada.call("DELETE", "/v1/sessions/s1"))
            answer = await ada.upload("roof.txt", TEXT)
            assert answer.status_code == 201, answer.text
            (row,) = (await ada.live("documents")).values()
            assert (row["activeSessions"], row["accessCount"]) == ([], 0), "the document must be in the pool"

    run(scenario)


def test_forget_everything_during_upload_stores_no_document(tmp_path, monkeypatch):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            everything = {"confirm": "forget everything"}
            while_it_is_read(monkeypatch, lambda: ada.call("POST", "/v1/forget", json=everything))
            answer = await ada.upload("roof.txt", TEXT, None)
            assert (answer.status_code, answer.json()["code"]) == (409, "GONE"), answer.text
            assert "The file was not stored" in answer.json()["detail"]
            assert await ada.live("documents") == {}
            monkeypatch.undo()
            assert (await ada.upload("roof.txt", TEXT, None)).status_code == 201, (
                "a later upload must be accepted"
            )

    run(scenario)
