"""The documents API: uploads, borrowing, search, deletion and rejections."""

import asyncio

from property.rows import OLD, dead, document, fact, session
from server.in_process_server import MODELS, check_problem, run, serve

LEASE = "The lease ends on the thirty-first of March.\n\nThe tenant gives notice three months before the end."


def test_identical_uploads_share_one_document_across_sessions(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            first = (await ada.upload("lease.txt", LEASE, "s1")).json()
            second = (await ada.upload("copy of lease.txt", LEASE, "s2")).json()
            assert (first["existing"], second["existing"]) == (False, True)
            assert second["document"]["id"] == first["document"]["id"]
            assert second["document"]["activeSessions"] == ["s1", "s2"]
            assert second["document"]["accessCount"] == 0, "borrowing must not count as an access"
            listed = (await ada.call("GET", "/v1/documents")).json()
            assert (listed["count"], listed["limit"], listed["warnFrom"]) == (1, 100, 90)

    run(scenario)


def test_delete_request_without_document_id_deletes_no_document(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            await ada.upload("lease.txt", LEASE)
            check_problem(await ada.call("DELETE", "/v1/documents/"), 400, "BAD_REQUEST")
            assert (await ada.call("GET", "/v1/documents")).json()["count"] == 1
            assert (await ada.call("DELETE", "/v1/documents")).json()["deleted"] == 1

    run(scenario)


def test_session_search_finds_only_borrowed_documents(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            document = (await ada.upload("lease.txt", LEASE, "s1")).json()["document"]
            assert (await ada.search("tenant notice", "s1"))["results"][0]["documentId"] == document["id"]
            assert (await ada.search("tenant notice", "s2"))["results"] == []
            await ada.call("PUT", f"/v1/documents/{document['id']}/sessions/s2")
            assert (await ada.search("tenant notice", "s2"))["results"]
            # After a return, even the session of the upload has no access.
            await ada.call("DELETE", f"/v1/documents/{document['id']}/sessions/s1")
            found = await ada.search("tenant notice", "s1")
            assert found["results"] == [] and found["scope"]["documentIds"] == []

    run(scenario)


def test_pushed_text_is_searchable_immediately(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            document = (await ada.upload("a.txt", LEASE)).json()["document"]
            await ada.search("lease")
            block = (await ada.pull("vectorEmbeddings"))[0]
            changed = {**block, "chunks": [{**block["chunks"][0], "text": "a zebra crossed the road"}]}
            assert await ada.push("vectorEmbeddings", changed, assumed=block) == []
            found = await ada.search("zebra")
            assert found["scope"]["complete"] and "zebra" in found["results"][0]["text"]
            assert (await ada.search("tenant"))["results"] == []
            assert document["id"] == found["results"][0]["documentId"]

    run(scenario)


def test_borrowing_does_not_count_as_access_and_rejects_unknown_ids(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada, bob = await h.person(), await h.person()
            document = (await ada.upload("lease.txt", LEASE, None)).json()["document"]
            path = f"/v1/documents/{document['id']}/sessions/s9"
            for _ in range(2):
                row = (await ada.call("PUT", path)).json()
                assert (row["activeSessions"], row["accessCount"]) == (["s9"], 0)
                assert row["lastAccessedAt"] == document["lastAccessedAt"]
            foreign = await bob.call("PUT", path)
            unknown = await bob.call("PUT", "/v1/documents/nope/sessions/s9")
            assert foreign.status_code == 404 and foreign.json() == unknown.json()

    run(scenario)


def test_lookup_finds_pool_document_named_in_the_message(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            await ada.upload("Léase Agreement.txt", LEASE, "s1")
            await ada.upload("roses.txt", "Roses are red.", "s1")

            async def named(message, asking="s2"):
                answer = await ada.call(
                    "GET", "/v1/documents/lookup", params={"name": message, "sessionId": asking}
                )
                return [d["filename"] for d in answer.json()["matches"]]

            assert await named("what does the LEASE agreement say?") == ["Léase Agreement.txt"]
            assert await named("lease agreement.txt") == ["Léase Agreement.txt"]
            assert await named("what about tulips?") == []
            # Lookup skips documents that the session has borrowed.
            assert await named("lease agreement", asking="s1") == []

    run(scenario)


def test_upload_beyond_the_document_limit_is_rejected(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            assert await ada.push("documents", *(document(ada.id, f"d{n}") for n in range(99))) == []
            assert (await ada.upload("the 100th.txt", "One that there is room for.")).status_code == 201
            answer = await ada.upload("lease.txt", LEASE)
            check_problem(answer, 409, "DOCUMENT_LIMIT")
            assert "lease.txt was not stored" in answer.json()["detail"]
            suggested = (await ada.call("GET", "/v1/documents/suggestions?limit=3")).json()
            assert suggested["warn"] and len(suggested["suggestions"]) == 3

    run(scenario)


def test_account_is_warned_once_it_has_90_documents(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            assert await ada.push("documents", *(document(ada.id, f"d{n}") for n in range(89))) == []
            assert not (await ada.call("GET", "/v1/documents/suggestions")).json()["warn"]
            assert await ada.push("documents", document(ada.id, "d89")) == []
            assert (await ada.call("GET", "/v1/documents/suggestions")).json()["warn"]

    run(scenario)


def test_upload_rejection_truncates_and_sanitizes_the_file_name(tmp_path):
    name = f"\u202einvoice{'x' * 3000}\u2067fdp.exe"

    async def scenario():
        async with serve(tmp_path) as h:
            ada, bob = await h.person("FREE"), await h.person()
            answers = [await ada.upload(name, "word " * 500_000)]
            assert await bob.push("documents", *(document(bob.id, f"d{n}") for n in range(100))) == []
            answers.append(await bob.upload(name, LEASE))
            h.services.uploads.limit.per_user = 0
            answers.append(await bob.upload(name, LEASE))
            for answer, code in zip(answers, ("TOO_LARGE", "DOCUMENT_LIMIT", "BUSY"), strict=True):
                detail = answer.json()["detail"]
                assert answer.json()["code"] == code and "fdp.exe " in detail
                assert len(detail) < 250 and detail.isprintable(), detail

    run(scenario)


def test_file_over_the_tier_limit_is_rejected(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person("FREE")
            answer = await ada.upload("big.txt", "word " * 500_000)
            check_problem(answer, 413, "TOO_LARGE")
            assert (await ada.call("GET", "/v1/documents")).json()["count"] == 0

    run(scenario)


def test_free_account_can_sync_but_not_search_documents(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person("FREE")
            await ada.upload("lease.txt", LEASE)
            answer = await ada.call("POST", "/v1/search", json={"query": "lease", "sessionId": "s1"})
            check_problem(answer, 403, "TIER")
            assert len(await ada.live("documents")) == 1

    run(scenario)


def test_deleting_a_document_marks_its_facts_as_source_removed(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            await ada.push("sessions", session("s1"))
            document = (await ada.upload("lease.txt", LEASE)).json()["document"]
            assert await ada.push("facts", fact("f1", sourceDocumentId=document["id"])) == []
            assert (await ada.call("DELETE", f"/v1/documents/{document['id']}")).json() == {"deleted": 1}
            assert (await ada.search("tenant"))["results"] == []
            assert await ada.live("documents") == {} and await ada.live("vectorEmbeddings") == {}
            kept = (await ada.live("facts"))["f1"]
            assert kept["sourceRemoved"] is True and kept["value"] == "Ada" and kept["updatedAt"] == OLD
            assert (await ada.call("DELETE", f"/v1/documents/{document['id']}")).status_code == 404

    run(scenario)


def test_session_deletion_keeps_its_borrowed_documents(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            await ada.push("sessions", session("s1"))
            document = (await ada.upload("lease.txt", LEASE)).json()["document"]
            assert (await ada.call("DELETE", "/v1/sessions/s1")).status_code == 200
            row = (await ada.live("documents"))[document["id"]]
            assert row["activeSessions"] == [] and row["originSessionId"] == "s1"
            assert (await ada.upload("b.txt", "More text.", "s1")).status_code == 404

    run(scenario)


def test_deleting_a_never_synced_session_returns_its_documents(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            document = (await ada.upload("lease.txt", LEASE, "s7")).json()["document"]
            assert await ada.push("sessions", dead(session("s7"))) == []
            assert (await ada.live("documents"))[document["id"]]["activeSessions"] == []

    run(scenario)


def test_vectors_of_uploads_are_computed_in_background_and_synced(tmp_path):
    async def scenario():
        async with serve(tmp_path, model=MODELS) as h:
            ada = await h.person()
            await ada.upload("pets.txt", "The dog barks at night.\n\n" + LEASE)
            await h.drain_jobs(ada)
            block = (await ada.pull("vectorEmbeddings"))[-1]
            embedder = await h.services.inference.get()
            assert embedder is not None, "the test needs a model: `make test` prepares it"
            assert (block["model"], block["dims"]) == (embedder.model, 384) and block["embedding"]
            assert next(iter((await ada.live("documents")).values()))["status"] == "ready"
            found = await ada.search("which animal makes noise?", mode="meaning")
            assert "dog" in found["results"][0]["text"] and found["scope"]["mode"] == "meaning"

    run(scenario)


def test_search_without_model_uses_words_and_reports_the_mode(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            await ada.upload("lease.txt", LEASE)
            found = await ada.search("tenant", mode="meaning")
            assert found["scope"]["mode"] == "words" and found["results"]
            await h.drain_jobs(ada)
            assert next(iter((await ada.live("documents")).values()))["status"] == "ready"

    run(scenario)


def test_document_index_is_rebuilt_if_its_folder_is_missing(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            await ada.upload("lease.txt", LEASE)
            await h.drain_jobs(ada)
        for folder in tmp_path.glob("users/*/*/vectors"):
            for path in sorted(folder.rglob("*"), reverse=True):
                path.unlink() if path.is_file() else path.rmdir()
            folder.rmdir()
        async with serve(tmp_path) as h:
            token_owner = next(iter(h.services.accounts.accounts))
            found = await h.services.document_search.search(
                token_owner, h.services.settings.tiers["JIGGA"], "tenant", "s1", 5, "words"
            )
            assert found.results and found.scope.complete

    run(scenario)


def test_concurrent_uploads_of_same_bytes_make_one_document(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            await asyncio.gather(*(ada.upload(f"{n}.txt", LEASE, f"s{n}") for n in range(4)))
            rows = await ada.live("documents")
            assert len(rows) == 1
            (row,) = rows.values()
            assert sorted(row["activeSessions"]) == ["s0", "s1", "s2", "s3"] and row["accessCount"] == 0

    run(scenario)
