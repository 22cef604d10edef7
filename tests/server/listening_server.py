"""A whole server on a real socket, and clients that read its streams."""

import asyncio
import json
from contextlib import asynccontextmanager

import httpx
import uvicorn

from server.in_process_server import run, serve
from wait_until import soon


@asynccontextmanager
async def listen_on_port(app):
    """Serve the app with uvicorn on a free port. Yield its URL."""
    config = uvicorn.Config(app, port=0, lifespan="off", log_config=None, timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        await task


class StreamClient:
    """Read a stream in a task. `events` has the decoded events, and `text` all lines as received."""

    def __init__(self, answer):
        self.answer = answer
        self.text = ""
        self.events = []
        self.ended = asyncio.Event()
        self.task = asyncio.create_task(self._listen())

    async def _listen(self):
        try:
            async for line in self.answer.aiter_lines():
                self.text += line + "\n"
                if line.startswith("data: "):
                    self.events.append(json.loads(line[6:]))
        except httpx.HTTPError:
            pass
        self.ended.set()

    def rows(self, collection=None):
        return [
            row
            for e in self.events
            if e.get("collection", collection) == collection
            for row in e["documents"]
        ]

    async def wait_until(self, condition):
        await soon(condition)


@asynccontextmanager
async def listen(url, person, path):
    headers = {"Authorization": person.client.headers["Authorization"]}
    async with (
        httpx.AsyncClient(base_url=url, headers=headers, timeout=30) as client,
        client.stream("GET", path) as answer,
    ):
        assert answer.status_code == 200, await answer.aread()
        assert answer.headers["content-type"].startswith("text/event-stream")
        stream = StreamClient(answer)
        try:
            yield stream
        finally:
            stream.task.cancel()


def run_over_network(tmp_path, scenario, **settings):
    async def whole():
        async with serve(tmp_path, **settings) as h, listen_on_port(h.app) as url:
            await scenario(h, url, await h.person())

    run(whole)
