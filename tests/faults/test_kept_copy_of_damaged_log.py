"""The server keeps a copy of a damaged log until the next erasure or "forget everything", which delete the copy."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from faults.server_process import ServerProcess
from property.rows import dead, fact
from vademecum.model.schema.json_values import FORGET_EVERYTHING
from vademecum.services.data.erase import scan
from wait_until import soon

SECRET = "the xylophone of Bartholomew"


@dataclass
class Repaired:
    server: ServerProcess
    client: httpx.AsyncClient
    folder: Path
    marker: Path

    @property
    def copy(self) -> Path:
        return self.folder / "records.duckdb.wal.damaged"


@asynccontextmanager
async def repaired_server(data: Path, *, deletes: bool = False) -> AsyncIterator[Repaired]:
    """Run a server that has repaired the damaged log of its only account.

    `deletes`: delete a row before the damage, and remove the marker file of its erasure.
    """
    server = ServerProcess(data, data.with_name("no-models"), {"erase_delay_s": "600"})
    try:
        client = await server.start()
        account, token = await server.add_user("ada@example.org")
        marker = data / "jobs" / "erase" / account
        client.headers["Authorization"] = f"Bearer {token}"
        await push(client, fact("first", value=SECRET))
        if deletes:
            await push(client, dead(fact("first")))
        for number in range(3):
            await push(client, fact(f"f{number}"))
        server.kill()
        await client.aclose()
        [log] = data.glob(f"users/*/{account}/records.duckdb.wal")
        log.write_bytes(log.read_bytes()[:-30] + bytes(30))
        marker.unlink(missing_ok=True)
        if deletes:
            server.settings["erase_delay_s"] = "0"
        client = await server.start(token, "facts")
        client.headers["Authorization"] = f"Bearer {token}"
        yield Repaired(server, client, log.parent, marker)
        await client.aclose()
    finally:
        server.kill()


async def push(client: httpx.AsyncClient, row: dict[str, object]) -> None:
    response = await client.post("/v1/sync/facts/0/push", json=[{"newDocumentState": row}])
    assert response.json() == [], response.text


def test_copy_of_damaged_log_stays_until_a_row_is_deleted(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with repaired_server(tmp_path / "data") as repaired:
            assert repaired.copy.exists() and "until the next erasure" in repaired.server.log_tail()
            assert not repaired.marker.exists(), "there must be no erasure job before a delete"
            await push(repaired.client, dead(fact("first")))
            await soon(repaired.marker.exists)
            assert await repaired.server.admin("POST", "/v1/local/erase", json={"email": None}) == {
                "accounts": 1
            }
            assert not repaired.copy.exists() and scan(tmp_path / "data", [SECRET.encode()]) == 0

    asyncio.run(scenario())


def test_erase_command_removes_copy_of_damaged_log_without_any_delete(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with repaired_server(tmp_path / "data") as repaired:
            assert await repaired.server.admin("POST", "/v1/local/erase", json={"email": None}) == {
                "accounts": 1
            }
            assert not repaired.copy.exists()

    asyncio.run(scenario())


def test_erase_command_for_one_account_removes_copy_of_damaged_log(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with repaired_server(tmp_path / "data") as repaired:
            body = {"email": "ada@example.org"}
            assert await repaired.server.admin("POST", "/v1/local/erase", json=body) == {"accounts": 1}
            assert not repaired.copy.exists()

    asyncio.run(scenario())


def test_forget_everything_removes_copy_of_damaged_log(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with repaired_server(tmp_path / "data") as repaired:
            assert repaired.copy.exists() and scan(tmp_path / "data", [SECRET.encode()]) > 0
            receipt = await repaired.server.admin(
                "POST", "/v1/forget", "ada@example.org", json={"confirm": FORGET_EVERYTHING}
            )
            assert receipt["rows"] == 3 and receipt["leftovers"] == 0
            assert not repaired.copy.exists() and scan(tmp_path / "data", [SECRET.encode()]) == 0

    asyncio.run(scenario())


def test_server_start_erases_deleted_row_although_erase_job_marker_was_lost(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with repaired_server(tmp_path / "data", deletes=True) as repaired:
            await soon(lambda: not repaired.copy.exists() and not repaired.marker.exists())
            assert scan(tmp_path / "data", [SECRET.encode()]) == 0

    asyncio.run(scenario())
