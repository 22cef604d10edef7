"""The disk of the data folder is full when the server starts: it starts all the same, reads, and writes when there is room."""

from __future__ import annotations

import asyncio
import errno
import re
import time
from pathlib import Path

import httpx
import pytest

from faults.server_process import PLAIN, START_S, Served
from faults.test_io_errors import live, push, pushed, shim
from property.rows import fact
from vademecum.services.accounts import local_auth
from wait_until import soon

__all__ = ["shim"]
NAME = "full-disk"


def fill(control: Path) -> None:
    """No file of the data folder takes a byte from now on."""
    control.write_text(f"write {errno.ENOSPC} 0 1000000000 {NAME}/ {time.time_ns()}")


def make_room(control: Path) -> None:
    control.write_text(f"none 0 0 0 zz {time.time_ns()}")


async def started(served: Served) -> httpx.AsyncClient:
    """Start the server and find it by what it prints, because `server.json` cannot be written."""
    served.log.write_bytes(b"")
    process = served.spawn(in_new_process=True)
    async with asyncio.timeout(START_S):
        while (found := re.search(r"http://127\.0\.0\.1:\d+", served.tail())) is None:
            assert process.poll() is None, served.tail()
            await asyncio.sleep(0.05)
    return httpx.AsyncClient(base_url=found[0], timeout=30, verify=PLAIN)


@pytest.mark.parametrize("killed", [False, True])
def test_server_starts_with_a_full_disk_and_answers_reads(tmp_path: Path, shim: Path, killed: bool) -> None:
    control = tmp_path / "control"
    make_room(control)
    loaded = {"LD_PRELOAD": str(shim), "SHIM_CTL": str(control)}
    served = Served(tmp_path / NAME, tmp_path / "no models", environment=loaded)

    async def scenario() -> None:
        client = await served.start(in_new_process=True)
        _, ada = await served.add_user("ada@example.org")
        for number in range(3):
            await pushed(client, ada, fact(f"f{number}"))
        await pushed(client, ada, {**fact("f0"), "_deleted": True})
        await client.aclose()
        served.kill() if killed else served.stop()
        fill(control)
        client = await started(served)
        headers = {"Authorization": f"Bearer {ada}"}
        assert {"f1", "f2"} <= await live(client, ada)
        assert (await client.get("/v1/me", headers=headers)).json()["problem"] is None
        assert (await client.get("/health")).status_code == 200
        assert (await client.get("/ready")).status_code == 503
        assert await push(client, ada, fact("late")) == 503
        make_room(control)
        await pushed(client, ada, fact("late"))
        await soon(lambda: local_auth.read(served.data) is not None)
        assert served.process is not None and served.process.poll() is None
        await client.aclose()

    try:
        asyncio.run(scenario())
    finally:
        served.kill()
