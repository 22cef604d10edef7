"""The accounts file is damaged while the server runs. All accounts are in memory, so devices keep syncing."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from faults.fact_requests import pull_ids, push
from faults.server_process import ServerProcess
from property.rows import fact

FILE = "accounts.duckdb"
FAILED = (500, 503)


def overwrite(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(os.urandom(path.stat().st_size))


def truncate(path: Path) -> None:
    """Cut the second half off. DuckDB can still open the file, but not read all rows."""
    os.truncate(path, path.stat().st_size // 2)


@pytest.mark.parametrize("damage", [overwrite, truncate])
def test_devices_sync_while_the_accounts_file_is_damaged(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    """DuckDB has small files in memory, so only a backup notices the damage, because it opens the file again."""

    async def scenario() -> None:
        server = ServerProcess(tmp_path / "data", tmp_path / "no models")
        client = await server.start()
        try:
            _, token = await server.add_user("ada@example.org")
            damage(server.data / FILE)
            backup = {"path": str(tmp_path / "backup")}
            answer = await server.admin("POST", "/v1/local/backup", json=backup, allowed=FAILED)
            assert answer.get("code") in ("BROKEN", "BUSY") and not (tmp_path / "backup").exists()
            account = {"email": "bob@example.org", "tier": "FREE"}
            answer = await server.admin("POST", "/v1/accounts", json=account, allowed=FAILED)
            assert answer.get("code") in ("BROKEN", "BUSY")
            ready = await client.get("/ready")
            assert ready.status_code == 503 and FILE in ready.json()["store"]
            assert await push(client, token, fact("f")) == 200
            assert await pull_ids(client, token) == {"f"}
            assert server.process is not None and server.process.poll() is None
        finally:
            await client.aclose()
            server.kill()
        assert server.spawn().wait(60) == 3

    asyncio.run(scenario())
