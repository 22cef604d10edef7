"""Kill the server while it removes an account. The next start completes the removal, also of events in the spool."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from faults.server_process import ServerProcess
from faults.slow_disk import slow_down_unlink
from server.agents.agent_events import event
from vademecum.services.accounts.deleted_accounts import was_deleted

EMAIL = "ada@example.org"
EVENTS = 300  # so many that deleting them with a slow unlink takes long enough for a kill
TIMEOUT_S = 60.0
MOMENTS = ["removal recorded", "records being deleted", "events being deleted"]


@pytest.mark.parametrize("moment", MOMENTS)
def test_server_kill_during_account_removal_leaves_no_events(tmp_path: Path, moment: str) -> None:
    asyncio.run(kill_during_removal(tmp_path / "data", moment))


async def kill_during_removal(data: Path, moment: str) -> None:
    tiers = {"tiers": '{"FREE": {"storageBytes": 1}}'}
    server = ServerProcess(data, data.with_name("no-models"), tiers, before_serving=slow_down_unlink)
    spool = data / "spool" / quote(EMAIL, safe="")
    rejected = data / "spool" / "rejected" / spool.name
    try:
        client = await server.start()
        account = await server.admin("POST", "/v1/accounts", json={"email": EMAIL, "tier": "FREE"})
        token = (await server.admin("POST", "/v1/tokens", EMAIL, json={"name": "test"}))["secret"]
        write_events(spool)
        write_events(rejected)
        removal = asyncio.create_task(delete_account(client, token))
        await wait_until(lambda: was_deleted(data, EMAIL))
        if moment == "records being deleted":
            await asyncio.sleep(0.03)
        elif moment == "events being deleted":
            await wait_until(lambda: len(list(spool.glob("*.json"))) < EVENTS)
        server.kill()
        assert not await removal, "the removal ended before the kill"
        remaining = sum(1 for folder in (spool, rejected) for _ in folder.glob("*.json"))
        assert remaining > 0, "all events were deleted before the kill"
        await client.aclose()
        server.before_serving = None
        client = await server.start()
        await client.aclose()
    finally:
        server.kill()
    assert [path for path in data.rglob("*") if account["userId"] in path.name] == []
    assert not spool.exists() and not rejected.exists(), server.log_tail()


def write_events(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(EVENTS):
        content = event(f"step {number}", number // 60)
        (folder / f"{content['id']}.json").write_text(json.dumps(content), encoding="utf-8")


async def delete_account(client: httpx.AsyncClient, token: str) -> bool:
    """Request the deletion. Return False if the server ended before it responded."""
    headers = {"Authorization": f"Bearer {token}"}
    try:
        await client.request("DELETE", "/v1/me", headers=headers, json={"confirm": "leave for good"})
    except httpx.TransportError:
        return False
    return True


async def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < end, "the condition did not become true"
        await asyncio.sleep(0.001)
