"""The disk fails once, at each fsync and write of a push in turn. Other accounts work, and no acknowledged row is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from faults.fact_requests import pull_ids, push, push_until_stored
from faults.failing_disk import FailingDisk
from faults.server_process import ServerProcess
from property.rows import fact

CALLS_MAX = 8  # an upper bound of the calls of one kind during a push


def test_failed_disk_call_during_push_affects_no_other_account(
    tmp_path: Path, disk: FailingDisk, sweep_case: Callable[[str], AbstractContextManager[None]]
) -> None:
    async def scenario() -> None:
        server = ServerProcess(tmp_path / "data", tmp_path / "no models", environment=disk.environment)
        client = await server.start(in_new_process=True)
        try:
            ada_id, ada = await server.add_user("ada@example.org")
            _, bob = await server.add_user("bob@example.org")
            await push_until_stored(client, ada, fact("first"))
            await push_until_stored(client, bob, fact("first"))
            acknowledged = {"first"}
            for call in ("fsync", "write"):
                failures = 0
                for index in range(CALLS_MAX):
                    with sweep_case("disk errors during a push"):
                        disk.fail(call, index, f"{ada_id}/records.duckdb")
                        row = fact(f"{call}-{index}")
                        failed = await push(client, ada, row) != 200
                        disk.recover()
                        await push_until_stored(client, bob, row)
                        # A device also repeats a push until it succeeds.
                        await push_until_stored(client, ada, row)
                        acknowledged.add(row["id"])
                        assert await pull_ids(client, ada) == await pull_ids(client, bob) == acknowledged
                    failures += failed
                    if not failed:
                        break
                assert failures >= 1, call
            assert server.process is not None and server.process.poll() is None
        finally:
            await client.aclose()
            server.kill()
        client = await server.start(in_new_process=True)
        try:
            assert await pull_ids(client, ada) == await pull_ids(client, bob) == acknowledged
        finally:
            await client.aclose()
            server.kill()

    asyncio.run(scenario())
