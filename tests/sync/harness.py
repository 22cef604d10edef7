"""A real server for the tests with the real client, and a door beside it to do what no client may.

Prints one JSON line {"url", "admin", "log"} and serves until its standard input closes. The server is a process of its
own, so that it can be killed; the admin door makes users, kills and restarts, backs up and restores, revokes
tokens, and loses the next answer of a push or of another POST: a proxy in front of the server closes the
connection after the commit. The proxy can also break a download off: it closes the connection in the middle of an answer.
It can take a request and never answer it, as a network does that wants a sign-in first.
And it can let the server die: from a given request on nobody hears anything of it, and where it would answer it is killed.
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
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).parents[2]
SERVER = Path(__file__).with_name("server.py")
START_S = 60  # on cores that many tests share
TOLD_LINES = 100


def kept_port() -> socket.socket:
    """A port that nobody else is given, up or down; the server may listen on it all the same (SO_REUSEADDR)."""
    kept = socket.socket()
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    kept.bind(("127.0.0.1", 0))
    return kept


class Harness:
    def __init__(self) -> None:
        self.data = Path(tempfile.mkdtemp(prefix="vademecum-sync-"))
        fd, name = tempfile.mkstemp(prefix="vademecum-sync-", suffix=".log")
        self.log, self.log_path = os.fdopen(fd, "ab"), Path(name)
        self.kept = kept_port()
        self.port = int(self.kept.getsockname()[1])
        self.process: asyncio.subprocess.Process | None = None
        self.lose: str | None = None
        self.dies: str | None = None
        self.silent = False
        self.mute: str | None = None
        self.cut: list[int] = []
        self.secret = secrets.token_hex(16)

    async def start(self) -> None:
        self.process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(SERVER),
            stdout=self.log,
            stderr=self.log,
            env={
                "VADEMECUM_MODELS": str(
                    self.data / "no-models"
                ),  # unless a test says otherwise, not this machine's
                **os.environ,
                "HARNESS_SECRET": self.secret,
                "HARNESS_PORT": str(self.port),
                "VADEMECUM_DATA": str(self.data),
                "PYTHONPATH": str(ROOT / "server"),
            },
        )
        async with httpx.AsyncClient(verify=False) as client:
            until = time.monotonic() + START_S
            while self.process.returncode is None and time.monotonic() < until:
                try:
                    await client.get(f"http://127.0.0.1:{self.port}/test/alive")
                    return
                except httpx.TransportError:
                    await asyncio.sleep(0.025)
        lines = self.log_path.read_text(errors="replace").splitlines()[-TOLD_LINES:]
        self.log_path.unlink()
        raise RuntimeError("the server did not start\n" + "\n".join(lines))

    async def stop(self, *, kill: bool) -> None:
        assert self.process is not None
        with contextlib.suppress(ProcessLookupError):  # it may be down, or have died by itself
            self.process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
        await self.process.wait()

    async def control(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        # Without `verify=False` each client reads all the system's certificates, for HTTP.
        async with httpx.AsyncClient(verify=False, timeout=60) as client:
            answer = await client.post(
                f"http://127.0.0.1:{self.port}/test/{path}", json=body, headers={"x-harness": self.secret}
            )
            answer.raise_for_status()
            return dict(answer.json())

    async def admin(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        if path == "restart":
            await self.stop(kill=bool(body.get("kill")))
            await self.start()
            return {}
        if path == "down":
            await self.stop(kill=True)
            return {}
        if path == "up":
            self.silent = False
            await self.start()
            return {}
        if path == "freeze":
            lost = body["drop_next_answer"]  # a collection that is pushed, or the path of another request
            self.lose = lost if lost.startswith("/") else f"/v1/sync/{lost}/"
            return {}
        if path == "die":
            self.dies = body["instead_of_answering"]
            return {}
        if path == "mute":
            self.mute = body["request"]
            return {}
        if path == "muted":
            return {"yes": self.mute is None}
        if path == "cut":
            self.cut = body["after"]
            return {}
        if path == "dropped":
            return {"yes": self.lose is None}
        if path == "backup":
            target = Path(tempfile.mkdtemp(prefix="vademecum-backup-")) / "backup"
            await self.command("backup", str(target))
            return {"backup": str(target)}
        if path == "restore":
            await self.command("restore", body["backup"], "--yes")
            return {}
        return await self.control(path, body)

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

    # -- the proxy: bytes through, but for the answer that is to be lost ---------------------------------------

    async def proxy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            upstream_reader, upstream_writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            writer.close()
            return
        doomed = {"yes": False, "server": False, "muted": False}
        left: dict[str, int] = {}

        async def up() -> None:
            while data := await reader.read(65536):
                if self.cut and data.startswith(b"GET /models/"):
                    left["bytes"] = self.cut.pop(0)
                if self.mute and data.startswith(self.mute.encode()):
                    self.mute = None
                    doomed["muted"] = True
                if doomed["muted"]:
                    continue  # taken, and the connection stays
                if self.lose and b"POST " + self.lose.encode() in data:
                    self.lose = None
                    doomed["yes"] = True
                if self.dies and b"POST " + self.dies.encode() in data:
                    self.dies = None
                    self.silent = doomed["server"] = True
                upstream_writer.write(data)
                await upstream_writer.drain()
            upstream_writer.close()

        async def down() -> None:
            while data := await upstream_reader.read(65536):
                if doomed["server"]:
                    await self.stop(kill=True)
                if doomed["yes"] or doomed["server"]:
                    break
                if self.silent:
                    continue
                if "bytes" in left:
                    data, left["bytes"] = data[: left["bytes"]], left["bytes"] - len(data)
                writer.write(data)
                await writer.drain()
                if left.get("bytes", 1) <= 0:
                    break
            if doomed["muted"]:
                await asyncio.Event().wait()  # the server tires of it; whoever asked must not hear of that
            writer.close()

        tasks = [asyncio.create_task(up()), asyncio.create_task(down())]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for stream in (writer, upstream_writer):
            stream.close()


async def handle_admin(harness: Harness, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One request, one JSON answer; enough HTTP for fetch()."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = next(
        (int(line[15:]) for line in head.split("\r\n") if line.lower().startswith("content-length:")), 0
    )
    body = json.loads(await reader.readexactly(length) or b"{}") if length else {}
    path = head.split(" ")[1].strip("/").split("/")[-1]
    try:
        status, answer = "200 OK", await harness.admin(path, body)
    except Exception as error:
        status, answer = "500 Failed", {"error": f"{type(error).__name__}: {error}"}
    payload = json.dumps(answer).encode()
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
    door = await asyncio.start_server(lambda r, w: handle_admin(harness, r, w), "127.0.0.1", 0)
    ports = [s.sockets[0].getsockname()[1] for s in (proxy, door)]
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
