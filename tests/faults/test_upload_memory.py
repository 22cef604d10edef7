"""Uploads go to temporary files: the memory of the server stays bounded, and no file remains after any end."""

from __future__ import annotations

import asyncio
import re
import socket
from contextlib import suppress
from pathlib import Path

from faults.server_process import ServerProcess
from wait_until import soon

MB = 2**20
HEAD = b'--B\r\nContent-Disposition: form-data; name="file"; filename="big.bin"\r\n\r\n'
FORM = {"Content-Type": "multipart/form-data; boundary=B"}
PNG = b"\x89PNG\r\n\x1a\n"  # not a document, so the upload ends when the parser has read the file


def open_files(pid):
    """Return how many files without a name the process has open."""
    count = 0
    for one in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed since the listing
            count += "(deleted)" in str(one.readlink())
    return count


def peak_memory(pid):
    return int(re.search(r"VmHWM:\s*(\d+) kB", Path(f"/proc/{pid}/status").read_text()).group(1)) * 1024


def with_server(tmp_path, scenario):
    async def whole():
        server = ServerProcess(tmp_path / "data", tmp_path / "no-models")
        client = await server.start()
        try:
            _, token = await server.add_user("ada@example.org")
            client.headers["Authorization"] = f"Bearer {token}"
            client.timeout = 120
            await scenario(client, server.process.pid)
        finally:
            await client.aclose()
            server.stop()

    asyncio.run(whole())


async def body(size):
    yield HEAD + PNG
    for _ in range(size // MB):
        yield b"\0" * MB
    yield b"\r\n--B--\r\n"


async def upload(client, size):
    return await client.post("/v1/documents", content=body(size), headers=FORM)


def test_concurrent_uploads_do_not_fill_memory(tmp_path):
    """Peak memory grew by 2 to 5 MB, and by 96 MB or more when the server kept one copy of each file in memory."""
    count, size = 4, 24 * MB

    async def scenario(client, pid):
        await upload(client, MB)  # loads what the first upload needs
        before, files = peak_memory(pid), open_files(pid)
        answers = await asyncio.gather(*(upload(client, size) for _ in range(count)))
        assert [answer.status_code for answer in answers] == [422] * count
        assert peak_memory(pid) - before < count * size / 2
        await soon(lambda: open_files(pid) == files)

    with_server(tmp_path, scenario)


def test_upload_over_the_limit_is_rejected_while_it_is_read(tmp_path):
    async def scenario(client, pid):
        files = open_files(pid)
        link = socket.create_connection((client.base_url.host, client.base_url.port))
        await asyncio.to_thread(link.sendall, request_head(client, 60 * MB) + HEAD + b"\0" * 26 * MB)
        link.settimeout(30)
        answer = b""
        while not answer.endswith(b"}"):  # although the rest of the body was never sent
            received = await asyncio.to_thread(link.recv, 100_000)
            assert received, f"the connection was closed after {answer!r}"
            answer += received
        link.close()
        assert b" 413 " in answer
        assert b"big.bin is larger than the limit of 25 MB for a file" in answer
        await soon(lambda: open_files(pid) == files)

    with_server(tmp_path, scenario)


def test_cut_connection_leaves_no_file(tmp_path):
    async def scenario(client, pid):
        files = open_files(pid)
        link = socket.create_connection((client.base_url.host, client.base_url.port))
        await asyncio.to_thread(link.sendall, request_head(client, 20 * MB) + HEAD + b"\0" * 10 * MB)
        await soon(lambda: open_files(pid) > files)
        link.close()
        await soon(lambda: open_files(pid) == files)
        assert (await upload(client, MB)).status_code == 422

    with_server(tmp_path, scenario)


def request_head(client, length):
    lines = [
        "POST /v1/documents HTTP/1.1",
        f"Host: {client.base_url.host}",
        f"Authorization: {client.headers['Authorization']}",
        f"Content-Type: {FORM['Content-Type']}",
        f"Content-Length: {length}",
    ]
    return "\r\n".join([*lines, "", ""]).encode()
