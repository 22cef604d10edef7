"""Statements that never end. One of an account stops that account only, until its thread returns.

With several, or if DuckDB cannot be started again, the process replaces itself, keeps its sockets and fences, and serves
all other accounts. If the accounts file hangs, the process ends with status 70 and says what to do, so that a supervisor
can start it again.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from pathlib import Path

import httpx
import pytest

from faults.fact_requests import authorization, pull_ids, push, push_until_stored
from faults.failing_disk import FailingDisk
from faults.server_process import ServerProcess
from property.rows import fact
from vademecum.engines.duckdb.fence import fence_folder
from vademecum.services.accounts import local_auth

PROGRAM = (str(Path(__file__).with_name("hanging_command.py")),)
ADVICE = "replace the file with the `accounts.duckdb` of a backup"
PULL = "/v1/sync/facts/0/pull?lwt=0&limit=10"


async def pull_status(client: httpx.AsyncClient, token: str) -> int:
    """Pull and return the status, or 0 if the connection ended with the process."""
    try:
        return (await client.get(PULL, headers=authorization(token))).status_code
    except httpx.TransportError:
        return 0


def hanging_server(tmp_path: Path, **settings: str) -> tuple[ServerProcess, Path]:
    """Return a server and a folder. Files in the folder make statements hang, as `hanging_command.py` describes."""
    hanging = tmp_path / "hanging"
    hanging.mkdir()
    server = ServerProcess(
        tmp_path / "data",
        tmp_path / "no models",
        {"statement_read_s": "0.5", **settings},
        environment={"HANGING": str(hanging)},
        program=PROGRAM,
    )
    return server, hanging


def test_server_process_with_stuck_threads_replaces_itself(tmp_path: Path) -> None:
    async def scenario() -> None:
        server, hanging = hanging_server(tmp_path, attached_max="1")
        client = await server.start(in_new_process=True)
        try:
            accounts = [await server.add_user(f"p{number}@example.org") for number in range(4)]
            # Each push detaches the account of the previous one, so a later pull reads its rows from the file.
            for _, token in accounts:
                await push_until_stored(client, token, fact("f"))
            before, stuck = local_auth.read(server.data), accounts[:3]
            for user_id, _ in stuck:
                (hanging / user_id).touch()
            statuses = await asyncio.gather(*(pull_status(client, token) for _, token in stuck))
            assert set(statuses) <= {503, 0}
            async with asyncio.timeout(60):
                while (door := local_auth.read(server.data)) is None or door == before:
                    await asyncio.sleep(0.05)
            assert before is not None and (door.url, door.pid) == (before.url, before.pid)
            log = server.log.read_text()
            assert all(f'"account": "{user_id}"' in log for user_id, _ in stuck), log
            assert "server restarts" in log, log
            assert await pull_ids(client, accounts[3][1]) == {"f"}
            # The files are undamaged, so the server recovers the accounts.
            await asyncio.gather(*(push_until_stored(client, token, fact("g")) for _, token in stuck))
            for _, token in stuck:
                assert await pull_ids(client, token) == {"f", "g"}
            assert not any(hanging.iterdir()) and not any(fence_folder(server.data).iterdir())
        finally:
            await client.aclose()
            server.kill()

    asyncio.run(scenario())


def test_server_shutdown_ends_despite_a_stuck_thread(tmp_path: Path) -> None:
    async def scenario() -> None:
        server, hanging = hanging_server(tmp_path, attached_max="1")
        client = await server.start(in_new_process=True)
        assert server.process is not None
        try:
            (user_id, token), (_, other) = [await server.add_user(f"p{n}@example.org") for n in range(2)]
            for each in (token, other):  # the second push detaches the first account
                await push_until_stored(client, each, fact("f"))
            (hanging / user_id).touch()
            assert await pull_status(client, token) == 503
            server.process.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(server.process.wait, 30) == 0
            assert "shutdown hangs" not in server.log.read_text()
        finally:
            await client.aclose()
            server.kill()

    asyncio.run(scenario())


def test_one_stuck_statement_stops_one_account_until_its_thread_returns(tmp_path: Path) -> None:
    async def scenario() -> None:
        server, hanging = hanging_server(tmp_path, attached_max="1")
        client = await server.start(in_new_process=True)
        assert server.process is not None
        try:
            (user_id, token), (_, other) = [await server.add_user(f"p{n}@example.org") for n in range(2)]
            for each in (token, other):  # the second push detaches the first account
                await push_until_stored(client, each, fact("f"))
            (hanging / user_id).touch()
            first, again = [await client.get(PULL, headers=authorization(token)) for _ in range(2)]
            for answer in (first, again):
                assert (answer.status_code, answer.json()["code"]) == (503, "FENCED"), answer.text
                assert "p0@example.org" in answer.json()["detail"]
            for number in range(5):
                assert await push(client, other, fact(f"g{number}")) == 200
            ready = await client.get("/ready")
            assert (ready.status_code, ready.json()["fenced"]) == (200, 1)
            assert "could not be recovered" not in server.log.read_text(), (
                "the stuck thread still uses the file"
            )
            assert (fence_folder(server.data) / user_id).exists()
            (hanging / "release").touch()
            await push_until_stored(client, token, fact("g"))
            assert await pull_ids(client, token) == {"f", "g"}
            assert (await client.get("/ready")).json()["fenced"] == 0
            assert server.process.poll() is None and "server restarts" not in server.log.read_text()
        finally:
            await client.aclose()
            server.kill()

    asyncio.run(scenario())


def test_stuck_detach_stops_only_the_detached_account(tmp_path: Path) -> None:
    async def scenario() -> None:
        server, hanging = hanging_server(tmp_path, attached_max="1")
        client = await server.start(in_new_process=True)
        try:
            (user_id, token), (_, other) = [await server.add_user(f"p{n}@example.org") for n in range(2)]
            await push_until_stored(client, token, fact("f"))
            (hanging / f"detach-{user_id}").touch()
            assert await push(client, other, fact("f")) == 200  # detaches the file of the first account
            assert not (hanging / f"detach-{user_id}").exists()
            answer = await client.get(PULL, headers=authorization(token))
            assert (answer.status_code, answer.json()["code"]) == (503, "FENCED"), answer.text
            assert await push(client, other, fact("g")) == 200
            (hanging / "release").touch()
            await push_until_stored(client, token, fact("g"))
            assert await pull_ids(client, token) == {"f", "g"}
        finally:
            await client.aclose()
            server.kill()

    asyncio.run(scenario())


def assert_ended(server: ServerProcess, status: int) -> None:
    """Assert that the process ended with this status and a sentence about the accounts file."""
    assert server.process is not None and status == 70
    assert ADVICE in server.log_tail() and str(server.data / "accounts.duckdb") in server.log_tail()
    assert "Traceback" not in server.log_tail()


def test_stuck_accounts_file_ends_the_process_which_starts_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        server, hanging = hanging_server(tmp_path)
        client = await server.start(in_new_process=True)
        assert server.process is not None
        try:
            _, token = await server.add_user("ada@example.org")
            await push_until_stored(client, token, fact("f"))
            (hanging / "accounts").touch()
            with contextlib.suppress(httpx.TransportError):  # the process may end before its answer arrives
                answer = await client.get("/ready")
                assert answer.status_code == 503 and "failed" in answer.json()["store"]
            assert_ended(server, await asyncio.to_thread(server.process.wait, 30))
            await client.aclose()
            client = await server.start(in_new_process=True)
            assert await pull_ids(client, token) == {"f"}
        finally:
            await client.aclose()
            server.kill()

    asyncio.run(scenario())


@pytest.mark.parametrize("hangs", ["start", "slow-start"])
def test_start_that_hangs_at_the_accounts_file_ends(tmp_path: Path, hangs: str) -> None:
    server, hanging = hanging_server(tmp_path, statement_write_s="0.5")
    (hanging / hangs).touch()
    process = server.spawn(in_new_process=True)
    try:
        assert_ended(server, process.wait(30))
        assert "is damaged" not in server.log_tail()
    finally:
        server.kill()


def test_process_replaces_itself_if_duckdb_cannot_be_started_again(tmp_path: Path, disk: FailingDisk) -> None:
    """A failed fsync makes DuckDB reject every statement until it is started again."""

    async def scenario() -> None:
        server, hanging = hanging_server(tmp_path)
        server.environment |= disk.environment
        client = await server.start(in_new_process=True)
        try:
            (user_id, token), (_, other) = [await server.add_user(f"p{n}@example.org") for n in range(2)]
            for each in (token, other):
                await push_until_stored(client, each, fact("f"))
            before = local_auth.read(server.data)
            (hanging / "restart").touch()
            disk.fail("fsync", 0, f"{user_id}/records.duckdb")
            with contextlib.suppress(httpx.TransportError):  # the process may end before its answer arrives
                assert await push(client, token, fact("g")) == 503
            disk.recover()
            async with asyncio.timeout(60):
                while (door := local_auth.read(server.data)) is None or door == before:
                    await asyncio.sleep(0.05)
            assert before is not None and (door.url, door.pid) == (before.url, before.pid)
            assert "DuckDB cannot be restarted" in server.log.read_text()
            assert await pull_ids(client, other) == {"f"}
            await push_until_stored(client, token, fact("g"))
            assert await pull_ids(client, token) == {"f", "g"}
        finally:
            await client.aclose()
            server.kill()

    asyncio.run(scenario())
