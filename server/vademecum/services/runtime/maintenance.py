"""Upkeep of the store, when nobody uses it just now: memory is given back, and the logs of files are folded into them, so
that a start after a crash has little to replay. Segments of older versions get their checksums. The accounts' file is
corrected after a failed change. High-water marks are written to the disk also while the store is in use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog

from vademecum.engines.duckdb.account_store import AccountStore
from vademecum.engines.duckdb.instance import Instance
from vademecum.engines.duckdb.marks import HighWaterMarks
from vademecum.engines.duckdb.user_stores import UserStores

_log = structlog.get_logger("vademecum.upkeep")
FOLD_EVERY_S = 15
SHRINK_EVERY_S = 0.25
SYNC_EVERY_S = 0.1


@asynccontextmanager
async def upkeep(users: UserStores, accounts: AccountStore) -> AsyncIterator[None]:
    """Goes on in the background for as long as the block runs."""
    work = _fold(users, accounts), _shrink(users.files.instance), _sync(users.marks)
    tasks = [asyncio.create_task(one) for one in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _fold(users: UserStores, accounts: AccountStore) -> None:
    while True:
        await asyncio.sleep(FOLD_EVERY_S)
        try:
            await accounts.repair_file()
        except Exception as error:
            _log.error("the accounts' file is not corrected", exc_info=error)
        try:
            await users.add_checksums_to_idle()
            await users.checkpoint_idle()
        except Exception as error:
            _log.error("logs are not folded", exc_info=error)


async def _shrink(instance: Instance) -> None:
    while True:
        await asyncio.sleep(SHRINK_EVERY_S)
        instance.release_memory()


async def _sync(marks: HighWaterMarks) -> None:
    while True:
        await asyncio.sleep(SYNC_EVERY_S)
        if marks.is_unsynced:
            await asyncio.to_thread(marks.sync)
