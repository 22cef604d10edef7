"""A whole server in its own thread, for tests that send one request at a time without an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from server.in_process_server import serve


class ThreadedServer:
    """A server that accepts requests once the constructor returns. `close` stops the server and its thread."""

    def __init__(self, data: Path, **settings: Any) -> None:
        self.loop = asyncio.new_event_loop()
        self.ready = threading.Event()
        self.done = asyncio.Event()
        self.thread = threading.Thread(
            target=self.loop.run_until_complete, args=(self._run_server(data, settings),)
        )
        self.thread.start()
        assert self.ready.wait(30)

    async def _run_server(self, data: Path, settings: dict[str, Any]) -> None:
        async with serve(data, **settings) as self.harness:
            self.ready.set()
            await self.done.wait()

    def ask(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(60)

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.done.set)
        self.thread.join()
        self.loop.close()
