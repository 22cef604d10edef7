"""A passage that occurs in several documents is returned once, with a list of the other places."""

import threading

from property.rows import block, document, session
from server.in_process_server import serve
from vademecum.model.text.tokenize import duplicate_key
from vademecum.services.search import document_search

SAID = "the deposit is returned within thirty days"


async def lent(person, name, text, *sessions):
    row = document(person.id, name, activeSessions=list(sessions), chunkCount=1)
    assert await person.push("documents", row) == []
    assert await person.push("vectorEmbeddings", block(name, 0, text=text, embedding=None, dims=0)) == []


async def test_passage_in_two_documents_is_returned_once(tmp_path):
    async with serve(tmp_path) as h:
        ada = await h.person()
        await ada.push("sessions", session("s1"))
        await lent(ada, "a", SAID, "s1")
        await lent(ada, "b", SAID.upper().replace(" ", "  "), "s1")
        await lent(ada, "c", "the deposit is two rents", "s1")
        await h.drain_jobs(ada)
        for mode in ("words", "hybrid"):
            found = (await ada.search("deposit returned within days", mode=mode, k=2))["results"]
            assert [result["documentId"] for result in found] == ["a", "c"], mode
            (also,) = found[0]["also"]
            assert (also["documentId"], also["filename"], also["chunkIndex"]) == ("b", "b.txt", 0)
            assert found[1]["also"] == []


async def test_duplicate_passage_in_unborrowed_document_is_not_named(tmp_path):
    async with serve(tmp_path) as h:
        ada = await h.person()
        await ada.push("sessions", session("s1"))
        await lent(ada, "a", SAID, "s1")
        await lent(ada, "b", SAID)
        await h.drain_jobs(ada)
        (result,) = (await ada.search("deposit", mode="words"))["results"]
        assert (result["documentId"], result["also"]) == ("a", [])


async def test_passages_are_compared_outside_the_event_loop(tmp_path, monkeypatch):
    threads = set()
    monkeypatch.setattr(
        document_search,
        "duplicate_key",
        lambda text: threads.add(threading.current_thread()) or duplicate_key(text),
    )
    async with serve(tmp_path) as h:
        ada = await h.person()
        await ada.push("sessions", session("s1"))
        await lent(ada, "a", SAID, "s1")
        await lent(ada, "b", SAID, "s1")
        (result,) = (await ada.search("deposit", mode="words"))["results"]
        assert len(result["also"]) == 1
        assert threads and threading.main_thread() not in threads
