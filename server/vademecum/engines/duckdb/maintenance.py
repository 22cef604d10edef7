"""Maintain the files in the background.

While files are idle, cached memory is released and segments of older versions get checksums. Write-ahead logs of idle
files are checkpointed, so that little must be replayed after a crash. The accounts file is repaired after a failed
change. High-water marks are fsynced even while files are in use.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog

from vademecum.engines.duckdb.account_store import DuckDBAccountStore
from vademecum.engines.duckdb.instance import Instance
from vademecum.engines.duckdb.marks import HighWaterMarks
from vademecum.engines.duckdb.user_stores import DuckDBUserStores

_log = structlog.get_logger("vademecum.maintenance")
CHECKPOINT_EVERY_S = 15
RELEASE_EVERY_S = 0.25
SYNC_EVERY_S = 0.1


@asynccontextmanager
async def maintain(users: DuckDBUserStores, accounts: DuckDBAccountStore) -> AsyncIterator[None]:
    """Run the maintenance tasks for the duration of the context."""
    loops = _checkpoint(users, accounts), _release_memory(users.files.instance), _sync_marks(users.marks)
    tasks = [asyncio.create_task(loop) for loop in loops]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _checkpoint(users: DuckDBUserStores, accounts: DuckDBAccountStore) -> None:
    while True:
        await asyncio.sleep(CHECKPOINT_EVERY_S)
        try:
            await accounts.repair_file()
        except Exception as error:
            _log.error("the accounts file could not be repaired", exc_info=error)
        try:
            await users.add_checksums_to_idle()
            await users.checkpoint_idle()
        except Exception as error:
            _log.error("idle files could not be maintained", exc_info=error)


async def _release_memory(instance: Instance) -> None:
    while True:
        await asyncio.sleep(RELEASE_EVERY_S)
        instance.release_memory()


async def _sync_marks(marks: HighWaterMarks) -> None:
    while True:
        await asyncio.sleep(SYNC_EVERY_S)
        if marks.is_unsynced:
            await asyncio.to_thread(marks.sync)
