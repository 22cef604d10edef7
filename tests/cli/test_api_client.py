"""Calls from a command to a running server."""

import asyncio
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import httpx
import msgspec
import pytest

from cli.command_runner import Home
from vademecum import __version__
from vademecum.cli import api_client
from vademecum.cli.api_client import ApiClient
from vademecum.errors import VademecumError
from vademecum.services.accounts import local_auth
from vademecum.settings import Settings


@contextmanager
def server(*answers):
    """Run a server that gives these answers (status, headers, body) in turn and then repeats the last one. Yield its
    address and the bodies that it received."""
    sent: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            sent.append(self.rfile.read(int(self.headers["content-length"])))
            status, headers, body = answers[min(len(sent), len(answers)) - 1]
            self.send_response(status)
            for name, value in {**headers, "content-length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{httpd.server_port}", sent
        finally:
            httpd.shutdown()
            thread.join()


def upload(address):
    async def call():
        async with httpx.AsyncClient(base_url=address) as client:
            return await ApiClient(client, "secret").call(
                "POST", "/v1/documents", files={"file": ("a.txt", b"text")}
            )

    return asyncio.run(call())


BUSY = (503, {"retry-after": "0"}, b'{"code": "BUSY", "detail": "Reading."}')


def test_busy_server_gets_complete_request_again():
    with server(BUSY, BUSY, (200, {}, b'{"ok": true}')) as (address, sent):
        assert upload(address) == {"ok": True}
        assert len(sent) == 3 and all(b"text" in body for body in sent)


def test_busy_server_fails_after_timeout(monkeypatch):
    monkeypatch.setattr(api_client, "BUSY_WAIT_S", 0.2)
    with server(BUSY) as (address, sent), pytest.raises(VademecumError, match="Reading"):
        upload(address)
    assert len(sent) > 1


def test_refused_request_is_not_repeated():
    with server((409, {"retry-after": "0"}, b'{"code": "CONFLICT", "detail": "No."}')) as (address, sent):
        with pytest.raises(VademecumError, match="No"):
            upload(address)
        assert len(sent) == 1


@contextmanager
def lost(requests):
    """Run a server that records requests and drops their connections."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            requests.append(self.path)
            self.close_connection = True

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{httpd.server_port}"
        finally:
            httpd.shutdown()
            thread.join()


def write(data):
    """Send a write as an agent does, waiting for other commands."""
    return asyncio.run(
        api_client.use_client_in_turn(
            Settings(data=data), lambda client: client.call("POST", "/v1/memories", json={})
        )
    )


def test_write_with_lost_answer_is_not_repeated(tmp_path):
    requests = []
    with api_client.try_lock(tmp_path), lost(requests) as address:
        local_auth.publish(tmp_path, local_auth.ServerInfo(address, 1, "secret"))
        with pytest.raises(VademecumError, match="was lost"):
            write(tmp_path)
    assert requests == ["/v1/memories"]


def test_unreachable_server_is_retried(tmp_path, monkeypatch):
    monkeypatch.setattr(api_client, "LOCK_WAIT_S", 0.5)
    with lost([]) as gone:
        pass
    began = time.monotonic()
    with api_client.try_lock(tmp_path):
        local_auth.publish(tmp_path, local_auth.ServerInfo(gone, 1, "secret"))
        with pytest.raises(api_client.FolderInUse, match="it is stopping"):
            write(tmp_path)
    assert time.monotonic() - began >= 0.5


OLD = b'{"users": 1, "accounts": 1, "erasedAgain": 0, "backupAt": "", "skipped": []}'


@pytest.mark.parametrize(
    ("version", "message"), [("0.0.9", "its version is 0.0.9,"), ("", "its version is unknown,")]
)
def test_missing_field_names_both_versions(tmp_path, version, message):
    """Only the command that needs the missing field fails."""
    home = Home(tmp_path / "data")
    with api_client.try_lock(home.data), server((200, {}, OLD)) as (address, sent):
        local_auth.publish(home.data, local_auth.ServerInfo(address, 1, "secret", version=version))
        done = home.run("restore", tmp_path, "--yes")
    assert sent and done.code == 1 and "Traceback" not in done.err
    refusal = done.err.strip()
    assert "lacks `removed`" in refusal
    assert (
        message in refusal
        and f"this command's is {__version__}" in refusal
        and "Restart the server" in refusal
    )


def test_missing_nested_field_names_outdated_server():
    with server((200, {}, b'{"rows": [{"id": "a", "of": {}}]}')) as (address, _):
        (row,) = upload(address)["rows"]
    assert row["id"] == "a" and row.get("name") is None
    with pytest.raises(api_client.OutdatedServer, match="`name`"):
        row["of"]["name"]
    assert msgspec.json.encode(row) == b'{"id":"a","of":{}}'


def test_server_publishes_its_version(tmp_path):
    home = Home(tmp_path / "data")
    with home.serving():
        assert local_auth.read(home.data).version == __version__
