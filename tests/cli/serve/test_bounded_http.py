"""Limits of size and time that the server applies to requests before it authenticates them."""

import asyncio
import io
import json
import socket
import zipfile
from contextlib import asynccontextmanager, suppress

import pytest
import uvicorn

from cli.command_runner import Home
from server.in_process_server import run
from vademecum.cli.serve import bounded_http

START = b"GET /health HTTP/1.1\r\nHost: x\r\n"
PIECE = 2**16
LOOK_S = 0.3  # a time limit that active connections do not exceed, even on a busy machine


def flooded(url, start, piece, most):
    """Send `start` and then `piece` again and again, up to `most` bytes or until the server responds.

    Return the number of bytes sent after `start`, and the response.
    """
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as line:
        line.sendall(start)
        sent = 0
        with suppress(OSError):
            while sent < most:
                line.sendall(piece)
                sent += len(piece)
                line.settimeout(0.02)
                with suppress(TimeoutError):
                    return sent, line.recv(2**16)
                line.settimeout(10)
        return sent, b""


def test_endless_request_head_is_rejected(tmp_path):
    home = Home(tmp_path / "data")
    chunked = b"POST /v1/sign-in HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"
    with home.serve() as server:
        for start, piece in (
            (START + b"X: ", b"a" * PIECE),
            (START, b"X: a\r\n" * (PIECE // 6)),
            (b"GET /", b"a" * PIECE),
            (START + b"X: ", b"a" * 1000),
        ):
            sent, answer = flooded(server.url, start, piece, 2**22)
            assert sent < 2**20, f"{start!r} {piece[:9]!r}"
            if b" 431 " in answer:
                head, _, body = answer.partition(b"\r\n\r\n")
                assert b"application/problem+json" in head
                assert (json.loads(body)["code"], json.loads(body)["error"]) == ("TOO_LARGE", True)
        sent, _ = flooded(server.url, chunked + b"0\r\n", b"X: a\r\n" * (PIECE // 6), 2**22)
        assert sent < 2**20, "an endless trailer after a body must be rejected"
        with server.client() as other:
            assert other.get("/health", headers={"X": "a" * 30_000}).status_code == 200


def test_invalid_http_gets_a_problem_response(tmp_path):
    home = Home(tmp_path / "data")
    with home.serve() as server:
        _, answer = flooded(server.url, b"NONSENSE\r\n\r\n", b"\r\n", 100)
        assert answer.startswith(b"HTTP/1.1 400 ") and b"application/problem+json" in answer


async def echo(scope, receive, send):
    """Respond with the length of the body. /later reads the body after a pause, and /early does not read it."""
    if scope["path"] == "/later":
        await asyncio.sleep(3 * LOOK_S)
    length, more = 0, scope["path"] != "/early"
    while more:
        message = await receive()
        length += len(message.get("body", b""))
        more = message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"<%d>" % length})


@asynccontextmanager
async def speaking():
    """Yield the address of an echo server."""
    config = uvicorn.Config(
        echo, http=bounded_http.BoundedProtocol, log_config=None, lifespan="off", port=0, timeout_keep_alive=1
    )
    server = uvicorn.Server(config)
    server.capture_signals = suppress
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()
    server.should_exit = True
    await task


def test_connection_with_incomplete_request_head_times_out(monkeypatch):
    monkeypatch.setattr(bounded_http, "HEAD_S", LOOK_S)

    async def scenario():
        async with speaking() as address:
            for begun in (b"", b"GET / HTTP/1.1\r\nHo", b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HT"):
                reader, writer = await asyncio.open_connection(*address[:2])
                writer.write(begun)
                printed_text = await asyncio.wait_for(reader.read(), 60)
                assert printed_text.count(b"200 OK") == begun.count(b"\r\n\r\n")
                writer.close()

    run(scenario)


def test_stalled_request_body_times_out(monkeypatch):
    monkeypatch.setattr(bounded_http, "BODY_IDLE_S", 0.1)

    async def scenario():
        async with speaking() as address:
            for begun in (b"", b"a" * 10, b"a" * 200_000):
                reader, writer = await asyncio.open_connection(*address[:2])
                writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 400000\r\n\r\n" + begun)
                assert await asyncio.wait_for(reader.read(), 60) == b""
                writer.close()

    run(scenario)


def test_request_body_that_server_reads_late_does_not_time_out(monkeypatch):
    monkeypatch.setattr(bounded_http, "BODY_IDLE_S", LOOK_S)
    monkeypatch.setattr(bounded_http, "HEAD_S", LOOK_S)

    async def scenario():
        async with speaking() as address:
            reader, writer = await asyncio.open_connection(*address[:2])
            writer.write(
                b"POST /later HTTP/1.1\r\nHost: x\r\nContent-Length: 4000000\r\n\r\n" + b"a" * 4_000_000
            )
            printed_text = await asyncio.wait_for(reader.readuntil(b">"), 60)
            assert printed_text.endswith(b"<4000000>")
            writer.close()

    run(scenario)


def test_response_that_takes_long_does_not_time_out(monkeypatch):
    monkeypatch.setattr(bounded_http, "BODY_IDLE_S", LOOK_S)
    monkeypatch.setattr(bounded_http, "HEAD_S", LOOK_S)

    async def scenario():
        async with speaking() as address:
            reader, writer = await asyncio.open_connection(*address[:2])
            writer.write(b"GET /later HTTP/1.1\r\nHost: x\r\n\r\n")
            await asyncio.wait_for(reader.readuntil(b"<0>"), 60)
            writer.close()

    run(scenario)


def test_slow_but_steady_request_body_is_accepted(monkeypatch):
    monkeypatch.setattr(bounded_http, "HEAD_S", LOOK_S)

    async def scenario():
        async with speaking() as address:
            for coded in (False, True):
                reader, writer = await asyncio.open_connection(*address[:2])
                how = b"Transfer-Encoding: chunked" if coded else b"Content-Length: 400000"
                writer.write(b"POST / HTTP/1.1\r\nHost: x\r\n" + how + b"\r\n\r\n")
                for _ in range(4):
                    await asyncio.sleep(LOOK_S / 2)
                    writer.write(
                        (b"186a0\r\n" if coded else b"") + b"a" * 100_000 + (b"\r\n" if coded else b"")
                    )
                writer.write(b"0\r\n\r\n" if coded else b"")
                printed_text = await asyncio.wait_for(reader.readuntil(b">"), 60)
                assert printed_text.endswith(b"<400000>")
                writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                await asyncio.wait_for(reader.readuntil(b"<0>"), 60)
                writer.close()

    run(scenario)


def test_idle_connection_is_closed(monkeypatch):
    """Data that is no request must not keep it open: a blank line, or the rest of a body after the response."""
    monkeypatch.setattr(bounded_http, "HEAD_S", LOOK_S)

    async def scenario():
        async with speaking() as address:
            for start, rest in (
                (START, b"\r\n"),
                (START, b""),
                (b"POST /early HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n", b"abc"),
            ):
                reader, writer = await asyncio.open_connection(*address[:2])
                writer.write(start + b"\r\n")
                assert (await asyncio.wait_for(reader.readuntil(b">"), 60)).startswith(b"HTTP/1.1 200 OK")
                writer.write(rest)
                assert await asyncio.wait_for(reader.read(), 30) in (b"", b"\r\n0\r\n\r\n"), (start, rest)
                writer.close()

    run(scenario)


@pytest.mark.parametrize("path", ["/v1/export", "/health"])
def test_http_1_0_response_is_not_chunked(tmp_path, path):
    """nginx sends such requests by default: HTTP/1.0 without forwarding headers."""
    home = Home(tmp_path / "data")
    home.add("ada@example.org")
    token = home.token("ada@example.org")
    with home.serve() as server:
        host, port = server.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=30) as line:
            line.sendall(f"GET {path} HTTP/1.0\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
            head, _, body = b"".join(iter(lambda: line.recv(2**16), b"")).partition(b"\r\n\r\n")
        assert b" 200 " in head and b"chunked" not in head.lower() and b"connection: close" in head.lower()
        if path == "/v1/export":
            with zipfile.ZipFile(io.BytesIO(body)) as archive:
                assert archive.testzip() is None and "account.json" in archive.namelist()
        else:
            assert json.loads(body) == {"alive": True}
