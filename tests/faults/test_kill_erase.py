"""Kill the server during `vademecum erase`. The next start completes the erasure."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import httpx

from faults.server_process import ServerProcess
from faults.slow_disk import slow_down_fsync
from property.rows import dead, fact
from vademecum.services.data.erase import scan
from wait_until import soon


def test_server_kill_during_erasure_leaves_no_bytes_of_deleted_rows(tmp_path: Path) -> None:
    asyncio.run(_kill_during_erasure(tmp_path / "data"))


async def _kill_during_erasure(data: Path) -> None:
    server = ServerProcess(
        data, data.with_name("no-models"), {"erase_delay_s": "600"}, before_serving=slow_down_fsync
    )
    secret = f"{Random(3).getrandbits(256):064x}"
    try:
        client = await server.start()
        account, token = await server.add_user("ada@example.org")
        client.headers["Authorization"] = f"Bearer {token}"
        await _push(client, fact("live"), fact("secret", value=secret))
        await _push(client, dead(fact("secret")))
        [folder] = data.glob(f"users/*/{account}")
        erasure = asyncio.create_task(server.admin("POST", "/v1/local/erase", json={"email": None}))
        await soon((folder / "records.duckdb.new").exists)
        server.kill()
        await asyncio.gather(erasure, return_exceptions=True)
        await client.aclose()
        assert scan(data, [secret.encode()]) == 1, "the erasure ended before the kill"
        server.settings["erase_delay_s"], server.before_serving = "0", None
        client = await server.start()
        await soon(lambda: not (data / "jobs" / "erase" / account).exists())
        assert scan(data, [secret.encode()]) == 0
        await client.aclose()
    finally:
        server.kill()


async def _push(client: httpx.AsyncClient, *rows: dict[str, object]) -> None:
    batch = [{"newDocumentState": row} for row in rows]
    response = await client.post("/v1/sync/facts/0/push", json=batch)
    assert response.json() == [], response.text
