"""Results of an index that lags behind the records may be incomplete, but they never show outdated text."""

from property.rows import block, document, fact, session
from server.in_process_server import serve, stop_index

OLD, NEW = "the password is swordfish", "the password is not here any more"


async def lent(person, *texts):
    """Push a document that s1 borrows, with one block per text."""
    await person.push("sessions", session("s1"))
    row = document(person.id, "d", activeSessions=["s1"], chunkCount=len(texts))
    assert await person.push("documents", row) == []
    blocks = [block("d", n, text=text, embedding=None, dims=0) for n, text in enumerate(texts)]
    assert await person.push("vectorEmbeddings", *blocks) == []
    return blocks


async def edit(person, row, **changes):
    chunk = {**row["chunks"][0], **changes}
    assert await person.push("vectorEmbeddings", {**row, "chunks": [chunk]}, assumed=row) == []


async def test_stale_document_index_does_not_show_edited_text(tmp_path):
    async with serve(tmp_path, search_wait_s=0.05) as h:
        ada = await h.person()
        first, _ = await lent(ada, OLD, "a password is a secret")
        await h.drain_jobs(ada)
        assert len((await ada.search("password", mode="words"))["results"]) == 2
        stop_index(h.services.indexer)
        await edit(ada, first, text=NEW)
        found = await ada.search("password", mode="words", k=1)
        assert [result["text"] for result in found["results"]] == ["a password is a secret"]
        assert not found["scope"]["complete"]


async def test_page_and_section_of_passage_come_from_the_records(tmp_path):
    async with serve(tmp_path, search_wait_s=0.05) as h:
        ada = await h.person()
        (row,) = await lent(ada, OLD)
        await h.drain_jobs(ada)
        stop_index(h.services.indexer)
        await edit(ada, row, page=7, section="Secrets")
        (result,) = (await ada.search("password", mode="words"))["results"]
        assert (result["text"], result["page"], result["section"]) == (OLD, 7, "Secrets")
        assert result["filename"] == "d.txt"


async def test_search_does_not_wait_for_writes_to_unindexed_collections(tmp_path):
    async with serve(tmp_path, search_wait_s=0) as h:
        ada = await h.person()
        await lent(ada, OLD)
        await h.drain_jobs(ada)
        stop_index(h.services.indexer)
        await ada.push("facts", fact("f"))
        assert (await ada.search("password", mode="words"))["scope"]["complete"]
