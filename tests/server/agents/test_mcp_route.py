"""The route `/mcp`: it accepts only POST, reports errors as problem responses, and recovers from a failed start."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from cli.command_runner import Home
from server.in_process_server import Harness, Person, check_problem, run, run_for_one, serve
from vademecum.http.routes.agents import mcp

ACCEPT = {"Accept": "application/json, text/event-stream"}
LIST_TOOLS = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
VERSIONS = ["", "2025-06-18", "2026-07-28"]
WAIT_S = 30.0


async def list_tools(person: Person) -> httpx.Response:
    request = person.call("POST", "/mcp", json=LIST_TOOLS, headers=ACCEPT)
    return await asyncio.wait_for(request, WAIT_S)


def check_method_refused(answer: httpx.Response) -> None:
    assert (answer.status_code, answer.headers.get("allow")) == (405, "POST"), answer.headers


@pytest.mark.parametrize("version", VERSIONS)
def test_mcp_route_rejects_all_methods_except_post(tmp_path: Path, version: str) -> None:
    headers = ACCEPT | ({"MCP-Protocol-Version": version} if version else {})

    async def scenario(h: Harness, ada: Person) -> None:
        for method in ("GET", "HEAD", "DELETE", "PUT", "PATCH", "OPTIONS"):
            answer = await asyncio.wait_for(ada.call(method, "/mcp", headers=headers), WAIT_S)
            check_method_refused(answer)
            if method != "HEAD":
                check_problem(answer, 405, "METHOD_NOT_ALLOWED")
        assert (await list_tools(ada)).json()["result"]["tools"]

    run_for_one(tmp_path, scenario)


def test_get_request_to_mcp_route_does_not_delay_server_stop(tmp_path: Path) -> None:
    home = Home(tmp_path / "data")
    home.add("ada@example.org")
    token = home.token("ada@example.org")
    with home.serve() as server, server.client(token) as client:
        client.post("/mcp", json=LIST_TOOLS, headers=ACCEPT).raise_for_status()
        with client.stream("GET", "/mcp", headers=ACCEPT) as stream:
            check_method_refused(stream)
            code, seconds = server.end()
    assert code == 0 and seconds < 5, "an open stream must not delay the stop"


@asynccontextmanager
async def failing():
    raise OSError(24, "Too many open files")
    yield


@pytest.mark.parametrize("where", ["opening", "running"])
def test_failed_start_of_mcp_is_reported_and_retried_by_next_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    real_open = mcp._open

    def fail_once(app):
        monkeypatch.setattr(mcp, "_open", real_open)
        if where == "opening":
            raise OSError(24, "Too many open files")
        manager = real_open(app)
        manager.run = failing
        return manager

    async def scenario() -> None:
        async with serve(tmp_path) as h:
            ada = await h.person()
            monkeypatch.setattr(mcp, "_open", fail_once)
            answers = await asyncio.gather(*(list_tools(ada) for _ in range(3)))
            for answer in answers:
                check_problem(answer, 503, "BUSY")
                assert answer.headers["retry-after"] == "5"
            assert (await list_tools(ada)).json()["result"]["tools"]
            start = time.monotonic()
        assert time.monotonic() - start < 5

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
def test_mcp_protocol_error_becomes_problem_response(
    tmp_path: Path, body: bytes, headers: dict[str, str], status: int
) -> None:
    async def scenario(h: Harness, ada: Person) -> None:
        sent = {"Content-Type": "application/json"} | headers
        answer = await ada.call("POST", "/mcp", content=body, headers=sent)
        assert answer.headers["content-type"] == "application/problem+json", answer.text
        assert answer.status_code == status, answer.text
        assert answer.json()["error"] is True and answer.json()["detail"]

    run_for_one(tmp_path, scenario)
