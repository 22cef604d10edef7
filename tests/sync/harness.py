"""Run a real server behind a proxy for tests of the real client. An admin port controls both.

Print one JSON line {"url", "admin", "log"} and serve until standard input closes. The server is a separate process, so
that it can be killed. The admin port creates users and tokens, kills and starts the server, backs up and restores, and
requests faults of the proxy:

- dropResponse: close the connection instead of forwarding the next response to a POST, after the commit.
- killInsteadOfResponse: stay silent from a POST on, and kill the server when it responds.
- ignoreRequest: never respond to a request.
- truncateDownloads: close the connection in the middle of a model download.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).parents[2]
SERVER = Path(__file__).with_name("server.py")
START_S = 60  # long, because many tests share the CPU cores
LOG_LINES = 100


def reserve_port() -> socket.socket:
    """Bind a port, so that no other process takes it while the server is down. SO_REUSEADDR lets the server use it."""
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(("127.0.0.1", 0))
    return reserved


@dataclass
class Connection:
    """The faults of one connection of the proxy."""

    drops_response: bool = False
    kills_server: bool = False
    is_ignored: bool = False
    bytes_left: int | None = None


class Harness:
    def __init__(self) -> None:
        self.data = Path(tempfile.mkdtemp(prefix="vademecum-sync-"))
        fd, name = tempfile.mkstemp(prefix="vademecum-sync-", suffix=".log")
        self.log, self.log_path = os.fdopen(fd, "ab"), Path(name)
        self.reserved = reserve_port()
        self.port = int(self.reserved.getsockname()[1])
        self.process: asyncio.subprocess.Process | None = None
        self.drop_response_to: str | None = None
        self.kill_at: str | None = None
        self.silent = False
        self.ignore_request: str | None = None
        self.download_limits: list[int] = []  # of the next downloads, in bytes
        self.secret = secrets.token_hex(16)

    async def start(self) -> None:
        self.process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(SERVER),
            stdout=self.log,
            stderr=self.log,
            env={
                "VADEMECUM_MODELS": str(self.data / "no-models"),  # before os.environ, which may override it
                **os.environ,
                "HARNESS_SECRET": self.secret,
                "HARNESS_PORT": str(self.port),
                "VADEMECUM_DATA": str(self.data),
                "PYTHONPATH": str(ROOT / "server"),
            },
        )
        async with httpx.AsyncClient(verify=False) as client:
            end = time.monotonic() + START_S
            while self.process.returncode is None and time.monotonic() < end:
                try:
                    await client.get(f"http://127.0.0.1:{self.port}/test/alive")
                    return
                except httpx.TransportError:
                    await asyncio.sleep(0.025)
        lines = self.log_path.read_text(errors="replace").splitlines()[-LOG_LINES:]
        self.log_path.unlink()
        raise RuntimeError("the server did not start\n" + "\n".join(lines))

    async def stop(self, *, kill: bool) -> None:
        assert self.process is not None
        with contextlib.suppress(ProcessLookupError):  # the process may already have ended
            self.process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
        await self.process.wait()

    async def call_server(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Call a test route of server.py."""
        # Without verify=False, each client would load all system certificates, which is slow.
        async with httpx.AsyncClient(verify=False, timeout=60) as client:
            url, headers = f"http://127.0.0.1:{self.port}/test/{path}", {"x-harness": self.secret}
            response = await client.post(url, json=body, headers=headers)
            response.raise_for_status()
            return dict(response.json())

    async def admin(self, command: str, body: dict[str, Any]) -> dict[str, Any]:
        match command:
            case "restart":
                await self.stop(kill=False)
                await self.start()
            case "kill":
                await self.stop(kill=True)
            case "start":
                self.silent = False
                await self.start()
            case "dropResponse":
                target = body["to"]
                self.drop_response_to = target if target.startswith("/") else f"/v1/sync/{target}/"
            case "isResponseDropped":
                return {"yes": self.drop_response_to is None}
            case "killInsteadOfResponse":
                self.kill_at = body["to"]
            case "ignoreRequest":
                self.ignore_request = body["request"]
            case "isRequestIgnored":
                return {"yes": self.ignore_request is None}
            case "truncateDownloads":
                self.download_limits = body["after"]
            case "backup":
                folder = Path(tempfile.mkdtemp(prefix="vademecum-backup-")) / "backup"
                await self.command("backup", str(folder))
                return {"backup": str(folder)}
            case "restore":
                await self.command("restore", body["backup"], "--yes")
            case _:
                return await self.call_server(command, body)
        return {}

    async def command(self, *words: str) -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "vademecum.cli.main",
            *words,
            "--data",
            str(self.data),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=self.log,
        )
        if await process.wait():
            raise RuntimeError(f"vademecum {words[0]} failed")

    async def proxy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward one connection to the server, except for the faults that were requested."""
        try:
            upstream_reader, upstream_writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            writer.close()
            return
        connection = Connection()

        async def forward_requests() -> None:
            while data := await reader.read(65536):
                if self.download_limits and data.startswith(b"GET /models/"):
                    connection.bytes_left = self.download_limits.pop(0)
                if self.ignore_request and data.startswith(self.ignore_request.encode()):
                    self.ignore_request = None
                    connection.is_ignored = True
                if connection.is_ignored:
                    continue  # drop the data, but keep the connection open
                if self.drop_response_to and b"POST " + self.drop_response_to.encode() in data:
                    self.drop_response_to = None
                    connection.drops_response = True
                if self.kill_at and b"POST " + self.kill_at.encode() in data:
                    self.kill_at = None
                    self.silent = connection.kills_server = True
                upstream_writer.write(data)
                await upstream_writer.drain()
            upstream_writer.close()

        async def forward_responses() -> None:
            while data := await upstream_reader.read(65536):
                if connection.kills_server:
                    await self.stop(kill=True)
                if connection.drops_response or connection.kills_server:
                    break
                if self.silent:
                    continue
                if connection.bytes_left is not None:
                    data = data[: connection.bytes_left]
                    connection.bytes_left -= len(data)
                writer.write(data)
                await writer.drain()
                if connection.bytes_left == 0:
                    break
            if connection.is_ignored:
                await (
                    asyncio.Event().wait()
                )  # the server closes its connection, but the client's must stay open
            writer.close()

        tasks = [asyncio.create_task(forward_requests()), asyncio.create_task(forward_responses())]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for stream in (writer, upstream_writer):
            stream.close()


async def handle_admin(harness: Harness, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Handle one request with a JSON response. Only the parts of HTTP that fetch() needs are implemented."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = next(
        (int(line[15:]) for line in head.split("\r\n") if line.lower().startswith("content-length:")), 0
    )
    body = json.loads(await reader.readexactly(length) or b"{}") if length else {}
    command = head.split(" ")[1].strip("/").split("/")[-1]
    try:
        status, result = "200 OK", await harness.admin(command, body)
    except Exception as error:
        status, result = "500 Failed", {"error": f"{type(error).__name__}: {error}"}
    payload = json.dumps(result).encode()
    writer.write(
        f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(payload)}\r\n"
        "connection: close\r\n\r\n".encode()
        + payload
    )
    await writer.drain()
    writer.close()


async def main() -> None:
    harness = Harness()
    await harness.start()
    proxy = await asyncio.start_server(harness.proxy, "127.0.0.1", 0)
    admin = await asyncio.start_server(lambda r, w: handle_admin(harness, r, w), "127.0.0.1", 0)
    ports = [s.sockets[0].getsockname()[1] for s in (proxy, admin)]
    print(
        json.dumps(
            {
                "url": f"http://127.0.0.1:{ports[0]}",
                "admin": f"http://127.0.0.1:{ports[1]}",
                "log": str(harness.log_path),
            }
        ),
        flush=True,
    )
    try:
        await asyncio.to_thread(sys.stdin.read)
    finally:
        await harness.stop(kill=True)
        shutil.rmtree(harness.data, ignore_errors=True)
        harness.log_path.unlink(missing_ok=True)
        os._exit(0)


if __name__ == "__main__":
    asyncio.run(main())
