"""The kept copy of a damaged log: it stays until the next erasure, and every erasure removes it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from faults.server_process import Served
from property.rows import dead, fact
from vademecum.services.data.erase import scan
from wait_until import soon

SECRET = "the xylophone of Bartholomew"


@dataclass
class Damaged:
    served: Served
    client: httpx.AsyncClient
    folder: Path
    marker: Path

    @property
    def copy(self) -> Path:
        return self.folder / "records.duckdb.wal.damaged"


@asynccontextmanager
async def damaged(data: Path, *, deletes: bool = False) -> AsyncIterator[Damaged]:
    """A server that has repaired the damaged log of its one account. `deletes`: a row was deleted before the damage, and
    the kill took the marker of its erasure away."""
    served = Served(data, data.with_name("no-models"), {"erase_delay_s": "600"})
    try:
        client = await served.start()
        account, token = await served.add_user("ada@example.org")
        marker = data / "jobs" / "erase" / account
        client.headers["Authorization"] = f"Bearer {token}"
        await push(client, fact("first", value=SECRET))
        if deletes:
            await push(client, dead(fact("first")))
        for number in range(3):
            await push(client, fact(f"f{number}"))
        served.kill()
        await client.aclose()
        [log] = data.glob(f"users/*/{account}/records.duckdb.wal")
        log.write_bytes(log.read_bytes()[:-30] + bytes(30))
        marker.unlink(missing_ok=True)
        if deletes:
            served.settings["erase_delay_s"] = "0"
        client = await served.start(token, "facts")
        client.headers["Authorization"] = f"Bearer {token}"
        yield Damaged(served, client, log.parent, marker)
        await client.aclose()
    finally:
        served.kill()


async def push(client: httpx.AsyncClient, row: dict[str, object]) -> None:
    answer = await client.post("/v1/sync/facts/0/push", json=[{"newDocumentState": row}])
    assert answer.json() == [], answer.text


def test_copy_stays_while_nothing_is_deleted_and_leaves_with_a_delete(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with damaged(tmp_path / "data") as one:
            assert one.copy.exists() and "until the next erasure" in one.served.tail()
            assert not one.marker.exists(), "nobody deleted anything"
            await push(one.client, dead(fact("first")))
            await soon(one.marker.exists)
            assert await one.served.admin("POST", "/v1/local/erase", json={"email": None}) == {"accounts": 1}
            assert not one.copy.exists() and scan(tmp_path / "data", [SECRET.encode()]) == 0

    asyncio.run(scenario())


def test_erase_command_removes_the_copy_though_nothing_was_deleted(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with damaged(tmp_path / "data") as one:
            assert await one.served.admin("POST", "/v1/local/erase", json={"email": None}) == {"accounts": 1}
            assert not one.copy.exists()

    asyncio.run(scenario())


def test_delete_whose_marker_was_lost_is_erased_after_the_start(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with damaged(tmp_path / "data", deletes=True) as one:
            await soon(lambda: not one.copy.exists() and not one.marker.exists())
            assert scan(tmp_path / "data", [SECRET.encode()]) == 0

    asyncio.run(scenario())
