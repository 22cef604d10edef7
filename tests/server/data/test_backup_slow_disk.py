"""Accounts can change during a backup to a slow disk."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import pytest

from server.in_process_server import run, serve
from wait_until import soon


def test_accounts_change_during_backup_to_slow_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync = os.fsync
    is_reached, may_go_on = threading.Event(), threading.Event()

    def slow(descriptor: int) -> None:
        name = Path(f"/proc/self/fd/{descriptor}").readlink()
        if name.name == "accounts.duckdb" and not name.is_relative_to(tmp_path / "data"):
            is_reached.set()
            assert may_go_on.wait(60)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", slow)

    async def scenario() -> None:
        async with serve(tmp_path / "data") as h:
            await h.services.account_service.create("ada@example.org", "FREE")
            making = asyncio.create_task(h.services.backup.create(tmp_path / "saved"))
            try:
                await soon(is_reached.is_set)
                async with asyncio.timeout(30):
                    await h.services.account_service.create("bob@example.org", "FREE")
                    await h.services.accounts.ping()
                assert not making.done()
            finally:
                may_go_on.set()
            await making
        async with serve(tmp_path / "other") as h:
            await h.services.restore.restore_all(tmp_path / "saved")
            assert h.services.accounts.by_email("ada@example.org")

    run(scenario)
