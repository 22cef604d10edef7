"""Kill -9 while the spool fills: every event is taken up once, whichever moment the power went."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from faults.server_process import Served
from server.agents.agent_events import APP, event

EMAIL = "ada@example.org"
EVENTS = 1500
FILES = 50  # paths, so that each row counts thirty times
KILLS = 2
DONE_S = 120.0


def test_kills_while_the_spool_fills_lose_no_event_and_count_none_twice(tmp_path):
    asyncio.run(besiege(tmp_path))


async def besiege(tmp_path: Path) -> None:
    served = Served(tmp_path / "data", tmp_path / "no-models")
    spool = tmp_path / "data" / "spool" / quote(EMAIL, safe="")
    writer = threading.Thread(target=fill, args=(spool,))
    try:
        client = await served.start()
        _, token = await served.add_user(EMAIL)
        writer.start()
        half_way = 0
        for _ in range(KILLS):
            await until_some_are_taken(spool)
            served.kill()
            half_way += len(list(spool.glob("*.json"))) > 0
            await client.aclose()
            client = await served.start()
        writer.join()
        await emptied(spool, served)
        assert half_way == KILLS, "the kills came when nothing was half-way"
        await check(client, token)
        await client.aclose()
    finally:
        if writer.ident is not None:  # it has begun
            writer.join()
        served.kill()
    assert not (tmp_path / "data" / "spool" / "rejected").exists()


def fill(spool: Path) -> None:
    """As hooks do it, at their own pace, server or no server."""
    spool.mkdir(parents=True, exist_ok=True)
    for number in range(EVENTS):
        one = event(f"read {number}", number // 30, kind="read", path=f"src/{number % FILES}.py", project=APP)
        new = spool / f"{one['id']}.tmp"
        new.write_text(json.dumps(one), encoding="utf-8")
        new.rename(new.with_suffix(".json"))
        time.sleep(0.005)


async def until_some_are_taken(spool: Path) -> None:
    """From a full spool on, until files begin to go: then a commit has been, and others are to come."""
    end = time.monotonic() + DONE_S
    seen: set[Path] = set()
    while True:
        there = set(spool.glob("*.json"))
        if seen - there and there:
            return
        seen |= there
        assert time.monotonic() < end, "nothing is taken up"
        await asyncio.sleep(0.002)


async def emptied(spool: Path, served: Served) -> None:
    end = time.monotonic() + DONE_S
    while list(spool.glob("*.json")):
        assert time.monotonic() < end, served.tail()
        await asyncio.sleep(0.05)


async def check(client: httpx.AsyncClient, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    params: dict[str, Any] = {"project": "*", "limit": 1000}
    rows = (await client.get("/v1/observations", headers=headers, params=params)).json()["observations"]
    assert {row["path"]: row["count"] for row in rows} == {
        f"src/{n}.py": EVENTS // FILES for n in range(FILES)
    }
    assert len({row["projectId"] for row in rows}) == 1
