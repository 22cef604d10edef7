"""`/mcp` answers a POST, refuses all else at once, and is there again after it could not be opened."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from cli.command_runner import Home
from server.in_process_server import Person, house, refused, run
from vademecum.http.routes.agents import mcp

ACCEPT = {"Accept": "application/json, text/event-stream"}
ASKED = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
VERSIONS = ["", "2025-06-18", "2026-07-28"]
WAIT_S = 30.0


async def ask(person: Person) -> httpx.Response:
    asking = person.call("POST", "/mcp", json=ASKED, headers=ACCEPT)
    return await asyncio.wait_for(asking, WAIT_S)


def refused_method(answer: httpx.Response) -> None:
    assert (answer.status_code, answer.headers.get("allow")) == (405, "POST"), answer.headers


@pytest.mark.parametrize("version", VERSIONS)
def test_all_methods_but_post_are_refused(tmp_path: Path, version: str) -> None:
    headers = ACCEPT | ({"MCP-Protocol-Version": version} if version else {})

    async def scenario() -> None:
        async with house(tmp_path) as h:
            ada = await h.person()
            for method in ("GET", "HEAD", "DELETE", "PUT", "PATCH", "OPTIONS"):
                answer = await asyncio.wait_for(ada.call(method, "/mcp", headers=headers), WAIT_S)
                refused_method(answer)
                if method != "HEAD":
                    refused(answer, 405, "METHOD_NOT_ALLOWED")
            assert (await ask(ada)).json()["result"]["tools"]

    run(scenario)


def test_get_request_does_not_delay_stop(tmp_path: Path) -> None:
    home = Home(tmp_path / "data")
    home.add("ada@example.org")
    token = home.token("ada@example.org")
    with home.serving() as server, server.client(token) as client:
        client.post("/mcp", json=ASKED, headers=ACCEPT).raise_for_status()
        with client.stream("GET", "/mcp", headers=ACCEPT) as stream:
            refused_method(stream)
            code, took = server.end()
    assert code == 0 and took < 5, "a stream that is open is waited for longer than this"


@asynccontextmanager
async def failing():
    raise OSError(24, "Too many open files")
    yield


@pytest.mark.parametrize("where", ["opening", "running"])
def test_failed_start_is_reported_and_retried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    opened = mcp._open

    def once(app):
        monkeypatch.setattr(mcp, "_open", opened)
        if where == "opening":
            raise OSError(24, "Too many open files")
        manager = opened(app)
        manager.run = failing
        return manager

    async def scenario() -> None:
        async with house(tmp_path) as h:
            ada = await h.person()
            monkeypatch.setattr(mcp, "_open", once)
            answers = await asyncio.gather(*(ask(ada) for _ in range(3)))
            for answer in answers:
                refused(answer, 503, "BUSY")
                assert answer.headers["retry-after"] == "5"
            assert (await ask(ada)).json()["result"]["tools"]
            began = time.monotonic()
        assert time.monotonic() - began < 5

    run(scenario)


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"{", ACCEPT, 400),
        (b"[]", ACCEPT, 400),
        (b'{"jsonrpc": "2.0"}', ACCEPT, 400),
        (b"{}", {"Accept": "text/html"}, 406),
        (b"x" * (mcp.BODY_MAX + 1), ACCEPT, 413),
        (b"{}", ACCEPT | {"Content-Type": "text/plain"}, 400),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}', ACCEPT | {"MCP-Protocol-Version": "x"}, 400),
    ],
)
def test_protocol_error_becomes_problem_details(
    tmp_path: Path, body: bytes, headers: dict[str, str], status: int
) -> None:
    async def scenario() -> None:
        async with house(tmp_path) as h:
            ada = await h.person()
            sent = {"Content-Type": "application/json"} | headers
            answer = await ada.call("POST", "/mcp", content=body, headers=sent)
            assert answer.headers["content-type"] == "application/problem+json", answer.text
            assert answer.status_code == status, answer.text
            assert answer.json()["error"] is True and answer.json()["detail"]

    run(scenario)
