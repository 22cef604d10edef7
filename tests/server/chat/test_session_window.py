"""The prompt's window of turns: each session has its own, built from stored turns for every question.

Neither a server restart nor the return of a document changes the stored turns.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from property.rows import day, episode, fact, memory, session
from server.in_process_server import Harness, Person, serve

LEASE = "The pet deposit is R2,500, due with the rent of the flat."
FACT = {"key": "pet deposit", "value": "R2,500"}
QUERY = "How high is the pet deposit?"
CONVERSATION = "[CONVERSATION CONTEXT]"


@asynccontextmanager
async def restarted(data: Path, person: Person, **settings: Any) -> AsyncIterator[Harness]:
    """Start another server on the same folder and connect `person` to it with the same token."""
    async with serve(data, **settings) as h:
        client = (await h.person()).client
        client.headers.update(person.client.headers)
        person.client = client
        yield h


async def fetch_prompt(person: Person, session_id: str = "s1", query: str = QUERY) -> dict[str, Any]:
    answer = await person.call("POST", "/v1/context", json={"query": query, "sessionId": session_id})
    assert answer.status_code == 200, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def create_session(person: Person) -> None:
    """Store a session with one turn, a document, a fact and a memory."""
    assert await person.push("sessions", session("s1", title="Flat")) == []
    turn = episode(
        "e1", "s1", createdAt=day(1), userMessage="Is a dog allowed?", aiResponse="With a pet deposit."
    )
    assert await person.push("episodes", turn) == []
    assert await person.push("facts", fact("f1", **FACT)) == []
    assert await person.push("memories", memory("m1", text="The pet is a dog.", sessionIds=["s1"])) == []
    assert (await person.upload("lease.txt", LEASE, "s1")).status_code == 201


async def test_server_restart_preserves_session_documents_and_window(
    tmp_path: Path,
) -> None:
    async with serve(tmp_path) as h:
        ada = await h.person()
        await create_session(ada)
        before = await fetch_prompt(ada)
        rows = {name: await ada.live(name) for name in ("sessions", "episodes", "documents")}
    async with restarted(tmp_path, ada):
        assert {name: await ada.live(name) for name in rows} == rows
        assert len(rows["documents"]) == 1 and "User: Is a dog allowed?" in before["prompt"]
        after = await fetch_prompt(ada)
        assert (after["prompt"], after["scope"]["search"]) == (
            before["prompt"],
            before["scope"]["search"],
        )


async def test_server_restart_keeps_vectors_without_embedding_again(tmp_path: Path) -> None:
    async with serve(tmp_path, model=True) as h:
        ada = await h.person()
        await create_session(ada)
        await h.drain_jobs(ada)
        blocks = await ada.pull("vectorEmbeddings")
        assert all(block["embedding"] for block in blocks) and blocks
    async with restarted(tmp_path, ada, model=True) as h:
        embedder = await h.services.inference.get(30)
        assert embedder is not None
        embedded: list[list[str]] = []
        passages = embedder.embed_passages

        async def counted(texts: list[str]) -> Any:
            embedded.append(texts)
            return await passages(texts)

        embedder.embed_passages = counted  # type: ignore[method-assign]
        await h.drain_jobs(ada)
        found = await ada.search("What does an animal cost?", mode="meaning")
        assert found["results"][0]["filename"] == "lease.txt"
        assert await ada.pull("vectorEmbeddings") == blocks and embedded == []
        await ada.upload("more.txt", "Something new.", "s1")
        await h.drain_jobs(ada)
        assert {text for texts in embedded for text in texts} == {"Something new."}, (
            "only the new document must be embedded"
        )
        assert blocks == [row for row in await ada.pull("vectorEmbeddings") if row in blocks]


async def test_new_session_gets_facts_chosen_documents_and_recalled_memory(
    tmp_path: Path,
) -> None:
    """The earlier chat appears only as recalled memory, never as part of the new conversation."""
    async with serve(tmp_path) as h:
        ada = await h.person()
        await create_session(ada)
    async with restarted(tmp_path, ada):
        assert await ada.push("sessions", session("s2")) == []
        document = next(iter(await ada.live("documents")))
        assert (await ada.call("PUT", f"/v1/documents/{document}/sessions/s2")).status_code == 200
        made = await fetch_prompt(ada, "s2")
        assert CONVERSATION not in made["prompt"] and "User: Is a dog allowed?" not in made["prompt"]
        assert "- pet deposit: R2,500" in made["prompt"], (
            "facts must be in the prompt of a new session (E12b)"
        )
        assert "Source: lease.txt" in made["prompt"]
        assert {one["id"] for one in made["scope"]["recalled"]} == {"e1", "m1"}
        first = await fetch_prompt(ada, "s1")
        assert CONVERSATION in first["prompt"], "the first session must keep its own conversation"


async def test_new_session_borrows_no_documents(
    tmp_path: Path,
) -> None:
    async with serve(tmp_path) as h:
        ada = await h.person()
        for number in range(6):
            assert (
                await ada.upload(f"{number}.txt", f"{LEASE} {number}", f"s{number % 2}")
            ).status_code == 201
        made = await fetch_prompt(ada, "new")
        assert made["scope"]["search"]["documentIds"] == [] and made["tokens"]["rag"] == 0
        assert len(await ada.live("documents")) == 6


async def test_sessions_that_share_a_document_have_separate_prompt_windows(tmp_path: Path) -> None:
    async with serve(tmp_path) as h:
        ada = await h.person()
        assert await ada.push("sessions", session("s1"), session("s2")) == []
        for number in (1, 2):
            words = {"userMessage": f"question {number}", "aiResponse": f"answer {number}"}
            assert await ada.push("episodes", episode(f"e{number}", f"s{number}", **words)) == []
            assert (await ada.upload("lease.txt", LEASE, f"s{number}")).status_code in (200, 201)
        assert len(await ada.live("documents")) == 1
        for own, other in ((1, 2), (2, 1)):
            prompt = (await fetch_prompt(ada, f"s{own}"))["prompt"]
            window = prompt.partition(CONVERSATION)[2].partition("[END CONVERSATION CONTEXT]")[0]
            assert f"User: question {own}\n" in window and f"question {other}" not in window
            assert "Source: lease.txt" in prompt


async def test_prompt_names_the_sessions_of_turns_and_sources_of_passages(
    tmp_path: Path,
) -> None:
    async with serve(tmp_path) as h:
        ada = await h.person()
        await create_session(ada)
        assert await ada.push("sessions", session("s2")) == []
        made = await fetch_prompt(ada, "s2", "What did we say about the dog?")
        assert 'session "Flat": Is a dog allowed? With a pet deposit.' in made["prompt"]
        nothing = await fetch_prompt(ada, "s2", "What did we say about submarines?")
        assert nothing["scope"]["recalled"] == [] and "MEMORY CONTEXT]" not in nothing["prompt"]
        own = await fetch_prompt(ada, "s1")
        assert f'Source: lease.txt [1]\n"{LEASE}"' in own["prompt"], (
            "the passage must name its document (E13b)"
        )


async def test_returned_document_is_absent_from_prompts_of_its_origin_session(
    tmp_path: Path,
) -> None:
    async with serve(tmp_path) as h:
        ada = await h.person()
        uploaded = (await ada.upload("lease.txt", LEASE, "s1")).json()["document"]
        path = f"/v1/documents/{uploaded['id']}/sessions"
        assert (await ada.call("PUT", f"{path}/s2")).status_code == 200
        assert (await ada.call("DELETE", f"{path}/s1")).status_code == 200
        stored = (await ada.live("documents"))[uploaded["id"]]
        assert (stored["originSessionId"], stored["activeSessions"]) == ("s1", ["s2"])
        assert "lease.txt" not in (await fetch_prompt(ada, "s1"))["prompt"]
        assert "lease.txt" in (await fetch_prompt(ada, "s2"))["prompt"]


@pytest.mark.parametrize("path", ["/v1/documents/{}/sessions/s1", "/v1/documents/{}"])
async def test_document_removed_during_question_is_not_in_the_prompt(tmp_path: Path, path: str) -> None:
    """The document is returned or deleted after the search in the index and before the server reads its row."""
    async with serve(tmp_path) as h:
        ada = await h.person()
        document_id = (await ada.upload("lease.txt", LEASE, "s1")).json()["document"]["id"]
        await ada.upload("stays.txt", f"{LEASE} And more.", "s1")
        meanwhile = path.format(document_id)
        _after_seeking(h, lambda: ada.call("DELETE", meanwhile))
        made = await fetch_prompt(ada)
        assert "lease.txt" not in made["prompt"] and "Source: stays.txt" in made["prompt"]
        assert document_id not in made["scope"]["search"]["documentIds"]


def _after_seeking(h: Harness, act: Callable[[], Awaitable[Any]]) -> None:
    seeker = h.services.document_search._hybrid_search
    seek = seeker.search_hybrid

    async def then(*asked: Any, **options: Any) -> Any:
        result = await seek(*asked, **options)
        assert result.hits, "the test needs a search with results"
        assert (await act()).status_code < 300
        return result

    seeker.search_hybrid = then  # type: ignore[method-assign]
