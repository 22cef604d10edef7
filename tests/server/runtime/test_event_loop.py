"""Scans of a whole account run in threads, because in the event loop they would delay all other requests."""

import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from property.rows import episode, fact, memory, session
from server.agents.agent_events import event, send_events
from server.in_process_server import Harness, Person, run, serve
from server.memory.extracting_server import push_turns, serve_with_jobs
from server.models.model_change_server import opened
from server.scripted_llm import Rule
from vademecum.engines.duckdb.user_store import DuckDBUserStore
from vademecum.model import secrets
from vademecum.model.memory import summary_input
from vademecum.model.sync.transaction import Transaction
from vademecum.services.agents import project_claims
from vademecum.services.memory import extract, remember

ROWS = 120
IN_A_SCOPE = {"sessionId": "s1"}


def record_calls(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[Any]:
    """Return a list to which each call of the function in the event loop appends its last argument."""
    told: list[Any] = []
    real = getattr(owner, name)

    def watched(*given: Any) -> Any:
        if threading.current_thread() is threading.main_thread():
            told.append(given[-1])
        return real(*given)

    monkeypatch.setattr(owner, name, watched)
    return told


async def furnished(h: Harness) -> Person:
    ada = await h.person()
    assert await ada.push("sessions", session("s1")) == []
    assert (
        await ada.push("episodes", *(episode(f"e{n}", "s1", userMessage=f"word{n}") for n in range(ROWS)))
        == []
    )
    assert await ada.push("memories", *(memory(f"m{n}", text=f"word{n} is said") for n in range(ROWS))) == []
    await h.drain_jobs(ada)
    return ada


async def search_turns(ada: Person) -> Any:
    return await ada.call("GET", "/v1/episodes/search", params={"q": "word7", **IN_A_SCOPE})


async def list_turns(ada: Person) -> Any:
    return await ada.call("GET", "/v1/episodes", params={"limit": 5, **IN_A_SCOPE})


@pytest.mark.parametrize("ask", [search_turns, list_turns])
def test_requests_do_not_scan_all_rows_on_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Callable[[Person], Awaitable[Any]]
) -> None:
    async def scenario() -> None:
        async with serve(tmp_path) as h:
            ada = await furnished(h)
            looked = record_calls(monkeypatch, DuckDBUserStore, "is_live")
            assert (await ask(ada)).status_code == 200
            assert len(looked) < ROWS / 2

    run(scenario)


def test_memory_deduplication_normalizes_stored_texts_in_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with serve(tmp_path) as h:
            ada = await furnished(h)
            compared = record_calls(monkeypatch, remember, "exact_form")
            answer = await ada.call("POST", "/v1/memories", json={"text": "WORD7 is said.", **IN_A_SCOPE})
            assert answer.json()["deduplicated"] and set(compared) <= {"WORD7 is said."}

    run(scenario)


def test_indexing_does_not_rescan_the_session_per_turn(
    tmp_path: Path, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with opened(tmp_path, installed) as h:
            ada = await h.person()
            looked = record_calls(monkeypatch, DuckDBUserStore, "is_live")
            assert await ada.push("sessions", session("s1")) == []
            assert await ada.push("episodes", *(episode(f"e{n}", "s1") for n in range(100))) == []
            await h.drain_jobs(ada)
            assert len(looked) < 100 * 100 / 4

    run(scenario)


def test_fact_lookup_for_proposals_runs_in_a_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with serve(tmp_path) as h:
            ada = await h.person()
            assert await ada.push("facts", *(fact(f"f{n}", key=f"user.k{n}") for n in range(ROWS))) == []
            async with h.services.users.open(ada.id) as store:
                looked = record_calls(monkeypatch, DuckDBUserStore, "is_live")
                assert await extract._find_facts(store, {"user.k7"}) == {"user.k7": ["facts/f7"]}
                assert len(looked) < ROWS / 2

    run(scenario)


def test_folder_conflict_check_runs_in_a_thread_without_rereading_claims(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with serve(tmp_path) as h:
            ada = await h.person()
            read: list[str] = []
            row = Transaction.row

            def counted(tx: Transaction, key: str) -> Any:
                read.append(key)
                return row(tx, key)

            monkeypatch.setattr(Transaction, "row", counted)
            folders = [{"name": "app", "root": f"~/{n}/app", "source": "git"} for n in range(ROWS)]
            await send_events(ada, *(event(project=folder) for folder in folders))
            assert len(read) < 20 * ROWS, "claims must not be read again for each folder"
            in_the_loop = [
                record_calls(monkeypatch, project_claims, name) for name in ("_build_notices", "_comparable")
            ]
            said: list[str] = []
            advice = project_claims._advice
            monkeypatch.setattr(
                project_claims, "_advice", lambda folder: said.append(folder) or advice(folder)
            )
            answer = await ada.call("GET", "/v1/agents/projects", params={"project": "*"})
            notices = [one["notice"] for one in answer.json()["projects"]]
            assert len(notices) == ROWS and all("kept apart" in notice for notice in notices)
            assert max(map(len, notices)) < 1000 and project_claims.MORE_CONFLICTS in notices[0]
            assert in_the_loop == [[], []] and len(said) < 10 * ROWS

    run(scenario)


def test_summary_input_and_reply_are_processed_in_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        long = Rule(say=["a word of it. "] * 10_000)
        async with serve_with_jobs(tmp_path, long, extraction_daily=0) as (h, _):
            ada = await h.person()
            await push_turns(ada, episode("e1", "s1", userMessage="word " * 1000))
            looked = [
                record_calls(monkeypatch, secrets, "redact"),
                record_calls(monkeypatch, summary_input, "strip_markup"),
            ]
            answer = await ada.call("POST", "/v1/sessions/s1/summarize")
            assert len(answer.json()["content"]) == summary_input.CONTENT_MAX
            assert looked == [[], []]

    run(scenario)
