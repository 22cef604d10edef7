"""Partial failures of a push: acknowledged writes stay, no request waits forever, and the next request succeeds."""

import asyncio
import shutil
import time

import pytest

from property.rows import dead, document, fact, session
from property.sync_wire import alone, send, seqs
from server.in_process_server import run, serve
from vademecum.engines.duckdb.erasure_ledger import ErasureLedger
from vademecum.engines.duckdb.user_database import DatabaseFactory

WRONG = [
    {"activeSessions": 5},
    {"activeSessions": None},
    {"activeSessions": [{}]},
    {"accessCount": "x"},
    {"accessCount": None},
    {"updatedAt": 3},
    {"lastAccessedAt": []},
    {"syncError": 1},
    {"syncError": {"base": {}}},
]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_malformed_assumed_state_affects_only_its_row(tmp_path, wrong):
    async def scenario(ada):
        stored = document(ada.id, "d")
        assert await send(ada, "documents", (stored, None)) == []
        edited = {**stored, "filename": "new.txt"}
        answered = await send(
            ada, "documents", (edited, {**stored, "size": 1, **wrong}), (document(ada.id, "e"), None)
        )
        assert [row["id"] for row in answered] in (["d"], []) and set(await ada.live("documents")) == {
            "d",
            "e",
        }

    alone(tmp_path, scenario)


def test_delete_stays_committed_if_ledger_write_fails(tmp_path, monkeypatch):
    async def scenario(ada):
        await send(ada, "facts", (fact("f"), None))

        def full(self, *changes):
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(ErasureLedger, "append", full)
            assert await send(ada, "facts", (fact("g"), None), (dead(fact("f")), None)) == []
        assert await send(ada, "facts", (fact("h"), None)) == []
        assert set(await ada.live("facts")) == {"g", "h"}
        assert sorted((await seqs(ada)).values()) == [2, 3, 4]

    alone(tmp_path, scenario)


def test_push_succeeds_if_its_jobs_cannot_be_saved(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            shutil.rmtree(tmp_path / "jobs")
            async with asyncio.timeout(60):
                assert await send(ada, "documents", (document(ada.id, "d", status="pending"), None)) == []
                assert await send(ada, "sessions", (session("s"), None)) == []
            (tmp_path / "jobs" / "embed").mkdir(parents=True)
            (tmp_path / "jobs" / "index").mkdir()
            (tmp_path / "jobs" / "erase").mkdir()

    run(scenario)


def test_cancelled_opening_of_a_file_does_not_lock_it(tmp_path, monkeypatch):
    opening = DatabaseFactory.open

    def slow(self, path, known):
        time.sleep(0.2)
        return opening(self, path, known)

    monkeypatch.setattr(DatabaseFactory, "open", slow)

    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            impatient = asyncio.create_task(ada.pull("facts"))
            await asyncio.sleep(0.05)
            impatient.cancel()
            assert await send(ada, "facts", (fact("f"), None)) == []
            assert set(await ada.live("facts")) == {"f"}

    run(scenario)
