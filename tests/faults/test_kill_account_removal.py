"""Kill -9 while an account is removed, at several moments: a start ends the removal, and no event of an agent outlives it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from faults.server_process import Served
from faults.slow_disk import unlink_slowly
from server.agents.agent_events import event
from vademecum.services.accounts.deleted_accounts import has_left

EMAIL = "ada@example.org"
EVENTS = 300  # to remove them takes a while, slowly
DONE_S = 60.0
# When the removal has been noted; some time later, while the account and its records go; when its events begin to go.
MOMENTS = ["noted", "soon after", "half-way"]


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_kill_while_an_account_is_removed_leaves_none_of_its_events(tmp_path: Path, moment: str) -> None:
    asyncio.run(besiege(tmp_path / "data", moment))


async def besiege(data: Path, moment: str) -> None:
    served = Served(
        data, data.with_name("no-models"), {"tiers": '{"FREE": {"storageBytes": 1}}'}, first=unlink_slowly
    )
    spool = data / "spool" / quote(EMAIL, safe="")
    aside = data / "spool" / "rejected" / spool.name
    try:
        client = await served.start()
        account = await served.admin("POST", "/v1/accounts", json={"email": EMAIL, "tier": "FREE"})
        token = (await served.admin("POST", "/v1/tokens", EMAIL, json={"name": "test"}))["secret"]
        fill(spool)
        fill(aside)
        leaving = asyncio.create_task(leave(client, token))
        await until(lambda: has_left(data, EMAIL))
        if moment == "soon after":
            await asyncio.sleep(0.03)
        elif moment == "half-way":
            await until(lambda: len(list(spool.glob("*.json"))) < EVENTS)
        served.kill()
        assert not await leaving, "it was over before the kill"
        left = sum(1 for folder in (spool, aside) for _ in folder.glob("*.json"))
        assert left > 0, "nothing was half-way"
        await client.aclose()
        served.first = None
        client = await served.start()
        await client.aclose()
    finally:
        served.kill()
    assert [path for path in data.rglob("*") if account["userId"] in path.name] == []
    assert not spool.exists() and not aside.exists(), served.tail()


def fill(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(EVENTS):
        one = event(f"step {number}", number // 60)
        (folder / f"{one['id']}.json").write_text(json.dumps(one), encoding="utf-8")


async def leave(client: httpx.AsyncClient, token: str) -> bool:
    """Was it answered?"""
    headers = {"Authorization": f"Bearer {token}"}
    try:
        await client.request("DELETE", "/v1/me", headers=headers, json={"confirm": "leave for good"})
    except httpx.TransportError:
        return False
    return True


async def until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + DONE_S
    while not is_so():
        assert time.monotonic() < end, "it does not come to that"
        await asyncio.sleep(0.001)
