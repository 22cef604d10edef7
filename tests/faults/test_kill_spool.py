"""Kill the server while hooks write events to the spool. Every event is ingested exactly once."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from faults.server_process import ServerProcess
from server.agents.agent_events import APP, event

EMAIL = "ada@example.org"
EVENTS = 1500
FILES = 50  # number of distinct paths; the 30 events of each path become one observation
KILLS = 2
TIMEOUT_S = 120.0


def test_server_kills_while_spool_fills_count_each_event_once(tmp_path):
    asyncio.run(ingest_under_kills(tmp_path))


async def ingest_under_kills(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data", tmp_path / "no-models")
    spool = tmp_path / "data" / "spool" / quote(EMAIL, safe="")
    writer = threading.Thread(target=write_events, args=(spool,))
    try:
        client = await server.start()
        _, token = await server.add_user(EMAIL)
        writer.start()
        interrupted = 0
        for _ in range(KILLS):
            await wait_for_ingest(spool)
            server.kill()
            interrupted += len(list(spool.glob("*.json"))) > 0
            await client.aclose()
            client = await server.start()
        writer.join()
        await wait_until_empty(spool, server)
        assert interrupted == KILLS, "a kill did not interrupt ingestion"
        await check_observations(client, token)
        await client.aclose()
    finally:
        if writer.ident is not None:
            writer.join()
        server.kill()
    assert not (tmp_path / "data" / "spool" / "rejected").exists()


def write_events(spool: Path) -> None:
    """Write events continuously, like hooks, which do so whether or not a server runs."""
    spool.mkdir(parents=True, exist_ok=True)
    for number in range(EVENTS):
        path = f"src/{number % FILES}.py"
        content = event(f"read {number}", number // 30, kind="read", path=path, project=APP)
        temporary = spool / f"{content['id']}.tmp"
        temporary.write_text(json.dumps(content), encoding="utf-8")
        temporary.rename(temporary.with_suffix(".json"))
        time.sleep(0.005)


async def wait_for_ingest(spool: Path) -> None:
    """Wait until some files are ingested while others still wait."""
    end = time.monotonic() + TIMEOUT_S
    seen: set[Path] = set()
    while True:
        waiting = set(spool.glob("*.json"))
        if seen - waiting and waiting:
            return
        seen |= waiting
        assert time.monotonic() < end, "no event was ingested"
        await asyncio.sleep(0.002)


async def wait_until_empty(spool: Path, server: ServerProcess) -> None:
    end = time.monotonic() + TIMEOUT_S
    while list(spool.glob("*.json")):
        assert time.monotonic() < end, server.log_tail()
        await asyncio.sleep(0.05)


async def check_observations(client: httpx.AsyncClient, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    params: dict[str, Any] = {"project": "*", "limit": 1000}
    rows = (await client.get("/v1/observations", headers=headers, params=params)).json()["observations"]
    assert {row["path"]: row["count"] for row in rows} == {
        f"src/{n}.py": EVENTS // FILES for n in range(FILES)
    }
    assert len({row["projectId"] for row in rows}) == 1
