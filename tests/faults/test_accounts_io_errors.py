"""The disk fails during a change of accounts, at each fsync and write in turn.

Afterwards the accounts file and the server's memory must be equal. Otherwise a restart could apply a rejected change or
restore revoked access.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from faults.failing_disk import FailingDisk
from faults.server_process import ServerProcess

CALLS_MAX = 8  # an upper bound of the calls of one kind during a change
FILE = "accounts.duckdb"
EMAIL = "ada@example.org"
ALLOWED = (503, 404, 409)  # 503 if the disk fails; 404 or 409 if a change is repeated that was stored
Change = Callable[[ServerProcess, int], Awaitable[Any]]


async def add_account(server: ServerProcess, number: int) -> Any:
    body = {"email": f"new{number}@example.org", "tier": "FREE"}
    return await server.admin("POST", "/v1/accounts", json=body, allowed=ALLOWED)


async def change_tier(server: ServerProcess, number: int) -> Any:
    [account] = [a for a in await server.admin("GET", "/v1/accounts") if a["email"] == EMAIL]
    body = {"tier": ("FREE", "JIGGA")[number % 2]}
    return await server.admin("PATCH", f"/v1/accounts/{account['userId']}", json=body, allowed=ALLOWED)


async def add_token(server: ServerProcess, number: int) -> Any:
    return await server.admin("POST", "/v1/tokens", EMAIL, json={"name": f"t{number}"}, allowed=ALLOWED)


async def revoke_token(server: ServerProcess, number: int) -> Any:
    oldest = (await server.admin("GET", "/v1/tokens", EMAIL))[0]
    return await server.admin("DELETE", f"/v1/tokens/{oldest['id']}", EMAIL, allowed=ALLOWED)


async def read_from_server(server: ServerProcess) -> tuple[set[tuple[str, str]], set[str]]:
    """Return the accounts with their tiers, and the names of Ada's tokens."""
    accounts = {(a["email"], a["tier"]) for a in await server.admin("GET", "/v1/accounts")}
    return accounts, {token["name"] for token in await server.admin("GET", "/v1/tokens", EMAIL)}


def read_from_file(data: Path, copy: Path) -> tuple[set[tuple[str, str]], set[str]]:
    """Return the same values from a copy of the file, as a server would load them after a kill."""
    for suffix in ("", ".wal"):
        copy.with_name(copy.name + suffix).unlink(missing_ok=True)
        if (data / f"{FILE}{suffix}").exists():
            shutil.copyfile(data / f"{FILE}{suffix}", copy.with_name(copy.name + suffix))
    with duckdb.connect(copy) as connection:
        accounts = {*connection.execute("SELECT email, tier FROM accounts").fetchall()}
        of_ada = f"kind = 'api' AND account_id = (SELECT id FROM accounts WHERE email = '{EMAIL}')"
        return accounts, {
            name for (name,) in connection.execute(f"SELECT name FROM tokens WHERE {of_ada}").fetchall()
        }


@pytest.mark.parametrize("change", [add_account, change_tier, add_token, revoke_token])
@pytest.mark.parametrize("call", ["fsync", "write"])
def test_failed_account_change_leaves_file_and_memory_consistent(
    tmp_path: Path, disk: FailingDisk, call: str, change: Change
) -> None:
    async def scenario() -> None:
        server = ServerProcess(tmp_path / "data", tmp_path / "no models", environment=disk.environment)
        client = await server.start(in_new_process=True)
        try:
            await server.add_user(EMAIL)
            for number in range(CALLS_MAX):
                await server.admin("POST", "/v1/tokens", EMAIL, json={"name": f"old{number}"})
            failures = 0
            for index in range(CALLS_MAX):
                disk.fail(call, index, FILE)
                failed = "code" in await change(server, index)
                disk.recover()
                failures += failed
                # Repeat a change until it succeeds, because that makes file and memory equal.
                async with asyncio.timeout(60):
                    while "code" in await add_account(server, 100 + index):
                        await asyncio.sleep(0.05)
                stored = read_from_file(server.data, tmp_path / "copy.duckdb")
                assert stored == await read_from_server(server), index
            assert failures >= 1
        finally:
            await client.aclose()
            server.kill()

    asyncio.run(scenario())
