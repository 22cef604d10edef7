"""Kill -9 while `vademecum erase` works: the next start finishes the erasure."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import httpx

from faults.server_process import Served
from faults.slow_disk import fsync_slowly
from property.rows import dead, fact
from vademecum.services.data.erase import scan
from wait_until import soon


def test_kill_during_an_erasure_leaves_no_deleted_byte(tmp_path: Path) -> None:
    asyncio.run(_kill_half_way(tmp_path / "data"))


async def _kill_half_way(data: Path) -> None:
    served = Served(data, data.with_name("no-models"), {"erase_delay_s": "600"}, first=fsync_slowly)
    secret = f"{Random(3).getrandbits(256):064x}"
    try:
        client = await served.start()
        account, token = await served.add_user("ada@example.org")
        client.headers["Authorization"] = f"Bearer {token}"
        await _push(client, fact("live"), fact("secret", value=secret))
        await _push(client, dead(fact("secret")))
        [folder] = data.glob(f"users/*/{account}")
        erasing = asyncio.create_task(served.admin("POST", "/v1/local/erase", json={"email": None}))
        await soon((folder / "records.duckdb.new").exists)
        served.kill()
        await asyncio.gather(erasing, return_exceptions=True)
        await client.aclose()
        assert scan(data, [secret.encode()]) == 1, "the kill came too late to show anything"
        served.settings["erase_delay_s"], served.first = "0", None
        client = await served.start()
        await soon(lambda: not (data / "jobs" / "erase" / account).exists())
        assert scan(data, [secret.encode()]) == 0
        await client.aclose()
    finally:
        served.kill()


async def _push(client: httpx.AsyncClient, *rows: dict[str, object]) -> None:
    batch = [{"newDocumentState": row} for row in rows]
    answer = await client.post("/v1/sync/facts/0/push", json=batch)
    assert answer.json() == [], answer.text
