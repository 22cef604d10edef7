"""Requests of commands to a running server: repeats, lost responses and version mismatches."""

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
    """Run a server that returns these responses (status, headers, body) in turn, and the last one repeatedly.

    Yield its address and the list of received bodies.
    """
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


def test_command_repeats_complete_request_to_busy_server():
    with server(BUSY, BUSY, (200, {}, b'{"ok": true}')) as (address, sent):
        assert upload(address) == {"ok": True}
        assert len(sent) == 3 and all(b"text" in body for body in sent)


def test_command_fails_if_server_stays_busy_until_timeout(monkeypatch):
    monkeypatch.setattr(api_client, "BUSY_WAIT_S", 0.2)
    with server(BUSY) as (address, sent), pytest.raises(VademecumError, match="Reading"):
        upload(address)
    assert len(sent) > 1


def test_command_does_not_repeat_a_rejected_request():
    with server((409, {"retry-after": "0"}, b'{"code": "CONFLICT", "detail": "No."}')) as (address, sent):
        with pytest.raises(VademecumError, match="No"):
            upload(address)
        assert len(sent) == 1


@contextmanager
def lost(requests):
    """Run a server that appends the path of each request to `requests` and closes the connection without a response."""

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
    """Store a memory as an agent's command does, which waits while another command uses the folder."""
    return asyncio.run(
        api_client.use_client_in_turn(
            Settings(data=data), lambda client: client.call("POST", "/v1/memories", json={})
        )
    )


def test_command_does_not_repeat_a_write_whose_response_was_lost(tmp_path):
    requests = []
    with api_client.try_lock(tmp_path), lost(requests) as address:
        local_auth.publish(tmp_path, local_auth.ServerInfo(address, 1, "secret"))
        with pytest.raises(VademecumError, match="was lost"):
            write(tmp_path)
    assert requests == ["/v1/memories"]


def test_command_retries_an_unreachable_server(tmp_path, monkeypatch):
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
def test_error_about_missing_field_names_versions_of_server_and_command(tmp_path, version, message):
    """The server of another version does not return a field that the command needs."""
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


def test_error_about_missing_nested_field_names_outdated_server():
    with server((200, {}, b'{"rows": [{"id": "a", "of": {}}]}')) as (address, _):
        (row,) = upload(address)["rows"]
    assert row["id"] == "a" and row.get("name") is None
    with pytest.raises(api_client.OutdatedServer, match="`name`"):
        row["of"]["name"]
    assert msgspec.json.encode(row) == b'{"id":"a","of":{}}'


def test_server_file_contains_the_version_of_the_server(tmp_path):
    home = Home(tmp_path / "data")
    with home.serve():
        assert local_auth.read(home.data).version == __version__
