"""A change of the accounts fails with the disk, at each fsync and write in turn: file and memory agree afterwards, so a
restart brings back nothing that was refused and nobody who was shut out."""

from __future__ import annotations

import asyncio
import errno
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from faults.server_process import Served
from faults.test_io_errors import DEPTH, Disk, shim

__all__ = ["shim"]
FILE = "accounts.duckdb"
EMAIL = "ada@example.org"
REFUSED = (503, 404, 409)  # by the failing disk, and a repetition of what was done
Change = Callable[[Served, int], Awaitable[Any]]


async def add(served: Served, number: int) -> Any:
    body = {"email": f"new{number}@example.org", "tier": "FREE"}
    return await served.admin("POST", "/v1/accounts", json=body, allowed=REFUSED)


async def change_tier(served: Served, number: int) -> Any:
    [account] = [one for one in await served.admin("GET", "/v1/accounts") if one["email"] == EMAIL]
    body = {"tier": ("FREE", "JIGGA")[number % 2]}
    return await served.admin("PATCH", f"/v1/accounts/{account['userId']}", json=body, allowed=REFUSED)


async def add_token(served: Served, number: int) -> Any:
    return await served.admin("POST", "/v1/tokens", EMAIL, json={"name": f"t{number}"}, allowed=REFUSED)


async def revoke(served: Served, number: int) -> Any:
    oldest = (await served.admin("GET", "/v1/tokens", EMAIL))[0]
    return await served.admin("DELETE", f"/v1/tokens/{oldest['id']}", EMAIL, allowed=REFUSED)


async def in_memory(served: Served) -> tuple[set[tuple[str, str]], set[str]]:
    """Return the accounts with their tiers, and the names of Ada's tokens, as the server serves them."""
    accounts = {(one["email"], one["tier"]) for one in await served.admin("GET", "/v1/accounts")}
    return accounts, {one["name"] for one in await served.admin("GET", "/v1/tokens", EMAIL)}


def in_file(data: Path, copy: Path) -> tuple[set[tuple[str, str]], set[str]]:
    """Return the same as a server would load it after a kill."""
    for end in ("", ".wal"):
        copy.with_name(copy.name + end).unlink(missing_ok=True)
        if (data / f"{FILE}{end}").exists():
            shutil.copyfile(data / f"{FILE}{end}", copy.with_name(copy.name + end))
    with duckdb.connect(copy) as connection:
        accounts = {*connection.execute("SELECT email, tier FROM accounts").fetchall()}
        of_ada = f"kind = 'api' AND account_id = (SELECT id FROM accounts WHERE email = '{EMAIL}')"
        return accounts, {
            name for (name,) in connection.execute(f"SELECT name FROM tokens WHERE {of_ada}").fetchall()
        }


@pytest.mark.parametrize("change", [add, change_tier, add_token, revoke])
@pytest.mark.parametrize("kind", ["fsync", "write"])
def test_failed_change_leaves_file_and_memory_equal(
    tmp_path: Path, shim: Path, kind: str, change: Change
) -> None:
    async def scenario() -> None:
        disk = Disk(tmp_path / "control")
        disk.recover()
        loaded = {"LD_PRELOAD": str(shim), "SHIM_CTL": str(tmp_path / "control")}
        served = Served(tmp_path / "data", tmp_path / "no models", environment=loaded)
        client = await served.start(in_new_process=True)
        try:
            await served.add_user(EMAIL)
            for number in range(DEPTH):
                await served.admin("POST", "/v1/tokens", EMAIL, json={"name": f"old{number}"})
            failures = 0
            for at in range(DEPTH):
                disk.fail(kind, errno.EIO, at, FILE)
                failed = "code" in await change(served, at)
                disk.recover()
                failures += failed
                async with asyncio.timeout(60):  # the next change brings file and memory together
                    while "code" in await add(served, 100 + at):
                        await asyncio.sleep(0.05)
                assert in_file(served.data, tmp_path / "copy.duckdb") == await in_memory(served), at
            assert failures >= 1
        finally:
            await client.aclose()
            served.kill()

    asyncio.run(scenario())
