"""The disk fails once, at each fsync and write of a push in turn: the others go on, and nothing acknowledged is lost."""

from __future__ import annotations

import asyncio
import errno
import shutil
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from faults.server_process import Served
from property.rows import fact

KINDS = {"fsync": errno.EIO, "write": errno.EIO}
DEPTH = 8  # calls of a push, at most


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that makes chosen calls of the C library fail."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("needs Linux and a C compiler")
    made = tmp_path_factory.mktemp("shim") / "shim.so"
    source = Path(__file__).with_name("failing_disk.c")
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-o", made, source, "-ldl"], check=True, capture_output=True
    )
    return made


class Disk:
    """Tells the shim which call is to fail: the `at`-th one from now on, for files whose path has `word`."""

    def __init__(self, control: Path) -> None:
        self._control = control

    def fail(self, kind: str, number: int, at: int, word: str) -> None:
        self._control.write_text(f"{kind} {number} {at} 1 {word} {time.time_ns()}")

    def recover(self) -> None:
        self._control.write_text(f"none 0 0 0 zz {time.time_ns()}")


async def push(client: httpx.AsyncClient, token: str, row: dict[str, object]) -> int:
    answer = await client.post(
        "/v1/sync/facts/0/push",
        json=[{"newDocumentState": row}],
        headers={"Authorization": f"Bearer {token}"},
    )
    assert answer.status_code in (200, 503), answer.text
    if answer.status_code == 503:
        assert answer.headers["content-type"].startswith("application/problem+json")
    return answer.status_code


async def pushed(client: httpx.AsyncClient, token: str, row: dict[str, object]) -> None:
    """Push until it is acknowledged."""
    async with asyncio.timeout(60):
        while await push(client, token, row) != 200:
            await asyncio.sleep(0.05)


async def live(client: httpx.AsyncClient, token: str) -> set[str]:
    answer = await client.get(
        "/v1/sync/facts/0/pull?lwt=0&limit=1000", headers={"Authorization": f"Bearer {token}"}
    )
    return {row["id"] for row in answer.json()["documents"]}


def test_failed_disk_call_of_a_push_spares_other_accounts(tmp_path: Path, shim: Path) -> None:
    async def scenario() -> None:
        disk = Disk(tmp_path / "control")
        disk.recover()
        loaded = {"LD_PRELOAD": str(shim), "SHIM_CTL": str(tmp_path / "control")}
        served = Served(tmp_path / "data", tmp_path / "no models", environment=loaded)
        client = await served.start(in_new_process=True)
        try:
            (ada_id, ada), (_, bob) = [
                await served.add_user(f"{name}@example.org") for name in ("ada", "bob")
            ]
            await pushed(client, ada, fact("first"))
            await pushed(client, bob, fact("first"))
            acknowledged = {"first"}
            for kind, number in KINDS.items():
                failures = 0
                for at in range(DEPTH):
                    disk.fail(kind, number, at, f"{ada_id}/records.duckdb")
                    row = fact(f"{kind}-{at}")
                    failed = await push(client, ada, row) != 200
                    disk.recover()
                    await pushed(client, bob, row)
                    await pushed(client, ada, row)  # as a device does
                    acknowledged.add(row["id"])
                    assert await live(client, ada) == await live(client, bob) == acknowledged
                    failures += failed
                    if not failed:
                        break
                assert failures >= 1, kind
            assert served.process is not None and served.process.poll() is None
        finally:
            await client.aclose()
            served.kill()
        client = await served.start(in_new_process=True)
        try:
            assert await live(client, ada) == await live(client, bob) == acknowledged
        finally:
            await client.aclose()
            served.kill()

    asyncio.run(scenario())
