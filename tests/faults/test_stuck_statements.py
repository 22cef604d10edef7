"""Statements of several accounts never end: the process replaces itself, keeps its sockets and fences, and serves the rest."""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path

import httpx

from faults.server_process import Served
from faults.test_io_errors import live, pushed
from property.rows import fact
from vademecum.engines.duckdb.fence import fence_folder
from vademecum.services.accounts import local_auth

PROGRAM = (str(Path(__file__).with_name("hanging_command.py")),)
PULL = "/v1/sync/facts/0/pull?lwt=0&limit=10"


async def hang(client: httpx.AsyncClient, token: str) -> int:
    """Status of a pull that meets a statement without end; 0 if its connection ended with the process."""
    try:
        return (await client.get(PULL, headers={"Authorization": f"Bearer {token}"})).status_code
    except httpx.TransportError:
        return 0


def hanging_server(tmp_path: Path, **settings: str) -> tuple[Served, Path]:
    """Return a server and a folder: reads of an account hang while the folder has a file with the account's id."""
    hanging = tmp_path / "hanging"
    hanging.mkdir()
    served = Served(
        tmp_path / "data",
        tmp_path / "no models",
        {"statement_read_s": "0.5", **settings},
        environment={"HANGING": str(hanging)},
        program=PROGRAM,
    )
    return served, hanging


def test_process_with_stuck_threads_replaces_itself(tmp_path: Path) -> None:
    async def scenario() -> None:
        served, hanging = hanging_server(tmp_path, attached_max="1")
        client = await served.start(in_new_process=True)
        try:
            people = [await served.add_user(f"p{number}@example.org") for number in range(4)]
            for (
                _,
                token,
            ) in people:  # each takes the place of the one before, whose rows are then read from the file
                await pushed(client, token, fact("f"))
            before, *hung = local_auth.read(served.data), *people[:3]
            for user_id, _ in hung:
                (hanging / user_id).touch()
            answers = await asyncio.gather(*(hang(client, token) for _, token in hung))
            assert set(answers) <= {503, 0}
            async with asyncio.timeout(60):
                while (door := local_auth.read(served.data)) is None or door == before:
                    await asyncio.sleep(0.05)
            assert before is not None and (door.url, door.pid) == (before.url, before.pid)
            log = served.log.read_text()
            assert (
                all(f'"account": "{user_id}"' in log for user_id, _ in hung) and "server restarts" in log
            ), log
            assert await live(client, people[3][1]) == {"f"}
            # Every row of their files can be read, so they are recovered.
            await asyncio.gather(*(pushed(client, token, fact("g")) for _, token in hung))
            for _, token in hung:
                assert await live(client, token) == {"f", "g"}
            assert not any(hanging.iterdir()) and not any(fence_folder(served.data).iterdir())
        finally:
            await client.aclose()
            served.kill()

    asyncio.run(scenario())


def test_shutdown_with_a_stuck_thread_ends(tmp_path: Path) -> None:
    async def scenario() -> None:
        served, hanging = hanging_server(tmp_path, attached_max="1")
        client = await served.start(in_new_process=True)
        assert served.process is not None
        try:
            (user_id, token), (_, other) = [await served.add_user(f"p{n}@example.org") for n in range(2)]
            for one in (token, other):  # the second takes the place of the first
                await pushed(client, one, fact("f"))
            (hanging / user_id).touch()
            assert await hang(client, token) == 503
            began = time.monotonic()
            served.process.send_signal(signal.SIGTERM)
            await asyncio.to_thread(served.process.wait, 30)
            assert time.monotonic() - began < 20
        finally:
            await client.aclose()
            served.kill()

    asyncio.run(scenario())
