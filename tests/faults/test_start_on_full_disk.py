"""The server starts on a full disk, answers reads, and accepts writes once there is space."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import httpx
import pytest

from faults.fact_requests import authorization, pull_ids, push, push_until_stored
from faults.failing_disk import FailingDisk
from faults.server_process import NO_TLS, START_S, ServerProcess
from property.rows import fact
from vademecum.services.accounts import local_auth
from wait_until import soon

FOLDER = "full-disk"


async def start_without_room(server: ServerProcess) -> httpx.AsyncClient:
    """Start the server and read its address from its output, because `server.json` cannot be written."""
    server.log.write_bytes(b"")
    process = server.spawn(in_new_process=True)
    async with asyncio.timeout(START_S):
        while (address := re.search(r"http://127\.0\.0\.1:\d+", server.log_tail())) is None:
            assert process.poll() is None, server.log_tail()
            await asyncio.sleep(0.05)
    return httpx.AsyncClient(base_url=address[0], timeout=30, verify=NO_TLS)


@pytest.mark.parametrize("killed", [False, True])
def test_server_starts_on_full_disk_and_answers_reads(
    tmp_path: Path, disk: FailingDisk, killed: bool
) -> None:
    server = ServerProcess(tmp_path / FOLDER, tmp_path / "no models", environment=disk.environment)

    async def scenario() -> None:
        client = await server.start(in_new_process=True)
        _, ada = await server.add_user("ada@example.org")
        for number in range(3):
            await push_until_stored(client, ada, fact(f"f{number}"))
        await push_until_stored(client, ada, {**fact("f0"), "_deleted": True})
        await client.aclose()
        server.kill() if killed else server.stop()
        disk.fill(f"{FOLDER}/")
        client = await start_without_room(server)
        assert {"f1", "f2"} <= await pull_ids(client, ada)
        assert (await client.get("/v1/me", headers=authorization(ada))).json()["problem"] is None
        assert (await client.get("/health")).status_code == 200
        assert (await client.get("/ready")).status_code == 503
        assert await push(client, ada, fact("late")) == 503
        disk.recover()
        await push_until_stored(client, ada, fact("late"))
        await soon(lambda: local_auth.read(server.data) is not None)
        assert server.process is not None and server.process.poll() is None
        await client.aclose()

    try:
        asyncio.run(scenario())
    finally:
        server.kill()
