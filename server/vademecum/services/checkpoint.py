"""Checkpoint: fold the logs of files that nobody uses just now, so that a start after a crash has little to replay."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog

from vademecum.engines.duckdb.users import Users

_log = structlog.get_logger("vademecum.checkpoint")
EVERY_S = 15


@asynccontextmanager
async def checkpointing(users: Users) -> AsyncIterator[None]:
    """Goes on in the background for as long as the block runs."""
    task = asyncio.create_task(_go_on(users))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _go_on(users: Users) -> None:
    while True:
        await asyncio.sleep(EVERY_S)
        try:
            await users.checkpoint_idle()
        except Exception as error:
            _log.error("checkpoint failed", exc_info=error)
