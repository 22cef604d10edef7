"""Borrowed documents: search results per session, the effects of deletions, and the document limit."""

from property.rows import block, document, fact
from server.in_process_server import check_problem, run_for_one

LEASE = "The tenant must give three months of notice before the lease ends."


async def found(person, session):
    return [hit["documentId"] for hit in (await person.search("tenant notice", session))["results"]]


async def lent(person, **more):
    """Upload a document that sessions s1 and s2 borrow, and return its id."""
    document_id = (await person.upload("lease.txt", LEASE, "s1")).json()["document"]["id"]
    answer = await person.call("PUT", f"/v1/documents/{document_id}/sessions/s2")
    assert answer.status_code == 200
    return document_id


def test_document_borrowed_by_two_sessions_is_stored_once(tmp_path):
    async def scenario(h, ada):
        await ada.upload("roses.txt", "Roses bloom along the wall.", "s1")
        lease = await lent(ada)
        assert await found(ada, "s2") == [lease], "only the borrowed document must be found, immediately"
        assert await found(ada, "s1") == [lease], "the first session must still find the document"
        assert await found(ada, "s3") == [], "a session that has not borrowed must not find the document"
        assert len(await ada.live("documents")) == len(await ada.live("vectorEmbeddings")) == 2
        await ada.call("DELETE", f"/v1/documents/{lease}/sessions/s2")
        assert (await found(ada, "s1"), await found(ada, "s2")) == ([lease], [])

    run_for_one(tmp_path, scenario)


def test_deleted_document_is_found_in_no_session_and_its_facts_are_marked(tmp_path):
    async def scenario(h, ada):
        lease = await lent(ada)
        known = fact("f1", sourceDocumentId=lease), fact("f2")
        assert await ada.push("facts", *known) == []
        assert (await ada.call("DELETE", f"/v1/documents/{lease}")).status_code == 200
        assert await ada.live("documents") == {} == await ada.live("vectorEmbeddings")
        assert await found(ada, "s1") == await found(ada, "s2") == []
        facts = await ada.live("facts")
        assert {row_id: row["sourceRemoved"] for row_id, row in facts.items()} == {"f1": True, "f2": False}
        assert {row["value"] for row in facts.values()} == {row["value"] for row in known}
        assert (await ada.call("PUT", f"/v1/documents/{lease}/sessions/s3")).status_code == 404

    run_for_one(tmp_path, scenario)


def test_document_without_sessions_can_be_borrowed_again(tmp_path):
    async def scenario(h, ada):
        for name in ("s1", "s2"):
            assert (
                await ada.call("POST", "/v1/sessions", json={"externalId": name, "title": name})
            ).status_code == 201
        first, second = list(await ada.live("sessions"))
        lease = (await ada.upload("lease.txt", LEASE, first)).json()["document"]["id"]
        await ada.call("PUT", f"/v1/documents/{lease}/sessions/{second}")
        for left, gone in (([second], first), ([], second)):
            assert (await ada.call("DELETE", f"/v1/sessions/{gone}")).status_code == 200
            assert (await ada.live("documents"))[lease]["activeSessions"] == left
            assert await found(ada, second) == [lease] * len(left)
        assert await found(ada, "s3") == [], "a document without sessions must not be found"
        await ada.call("PUT", f"/v1/documents/{lease}/sessions/s3")
        assert await found(ada, "s3") == [lease], "the document must be found by its stored vectors"

    run_for_one(tmp_path, scenario)


def test_upload_at_document_limit_reports_the_limit(tmp_path):
    async def scenario(h, ada):
        assert await ada.push("documents", *(document(ada.id, f"d{n}") for n in range(50))) == []
        assert (await ada.upload("the 51st.txt", "There is room for this.")).status_code == 201
        assert await ada.push("documents", *(document(ada.id, f"d{n}") for n in range(50, 99))) == []
        answer = check_problem(await ada.upload("lease.txt", LEASE), 409, "DOCUMENT_LIMIT")
        assert "100" in answer["detail"]
        assert (await ada.call("DELETE", "/v1/documents/d0")).status_code == 200
        assert (await ada.upload("lease.txt", LEASE)).status_code == 201
        assert (await ada.call("GET", "/v1/documents")).json()["count"] == 100

    run_for_one(tmp_path, scenario)


def test_vectors_reference_a_document_but_no_session(tmp_path):
    async def scenario(h, ada):
        lease = await lent(ada)
        rows = (await ada.live("vectorEmbeddings")).values()
        assert {row["documentId"] for row in rows} == {lease}
        assert not any("session" in name.lower() for row in rows for name in row)
        orphan = {name: value for name, value in block(lease, 7).items() if name != "documentId"}
        for bad in (orphan, {**orphan, "documentId": ""}, {**block(lease, 7), "sessionId": "s1"}):
            (answer,) = await ada.push("vectorEmbeddings", bad)
            assert answer["syncError"]["code"] == "INVALID"

    run_for_one(tmp_path, scenario)
