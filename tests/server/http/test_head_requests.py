"""HEAD works wherever GET does, with the same headers and no body."""

import asyncio

import pytest

from property.rows import session
from server.http.route_requests import TABLE
from server.in_process_server import run, serve

# Paths of streams, whose GET response does not end by itself.
STREAMS = ("/v1/sync/facts/0/pullStream", "/v1/sync/stream")
PLAIN = (
    "/health",
    "/",
    "/v1/me",
    "/v1/documents",
    "/v1/sync/facts/0/pull?lwt=0&id=&limit=100",
    "/v1/documents/nope",
    "/v1/export",
    "/schema/openapi.json",
    "/metrics",
)


@pytest.mark.parametrize("path", PLAIN)
def test_head_request_returns_headers_of_get_without_a_body(tmp_path, path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            await ada.add("sessions", session("s1"))
            got, head = await ada.call("GET", path), await ada.call("HEAD", path)
            assert head.status_code == got.status_code and head.content == b""
            for name in ("content-type", "content-length", "etag"):
                if path != "/v1/export":
                    assert head.headers.get(name) == got.headers.get(name), name

    run(scenario)


@pytest.mark.parametrize("path", STREAMS)
def test_head_request_for_a_stream_ends_immediately(tmp_path, path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            answer = await asyncio.wait_for(ada.call("HEAD", path), 30)
            assert answer.status_code == 200 and answer.headers["content-type"].startswith(
                "text/event-stream"
            )
            assert h.services.hub.count() == 0

    run(scenario)


def test_every_get_route_accepts_head(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            for route in TABLE:
                method, path = route.split(" ", 1)
                if method == "GET":
                    concrete = path.replace("{version}", "0").replace("{name}", "facts")
                    answer = await asyncio.wait_for(ada.call("HEAD", concrete), 30)
                    assert answer.status_code != 405 and answer.content == b"", route
            assert (await ada.call("HEAD", "/v1/forget")).status_code == 405

    run(scenario)


def test_head_request_ignores_a_range_header(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            answer = await ada.call("HEAD", "/schema/openapi.json", headers={"Range": "bytes=0-1"})
            assert answer.status_code == 200

    run(scenario)
