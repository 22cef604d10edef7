"""Work that somebody waits for, and that ends when they go away: a closed page keeps no place in a queue."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from litestar import Request
from litestar.types import Receive

from vademecum.errors import BadRequest

T = TypeVar("T")


async def while_connected(request: Request[Any, Any, Any], work: Coroutine[Any, Any, T]) -> T:
    """The outcome of `work`, which is cancelled when the client closes the connection. For after the body was read."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_wait_for_disconnect(request.receive))
    try:
        await asyncio.wait([working, leaving], return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise BadRequest(
                "The connection was closed before the answer."
            )  # said to the log: nobody hears it
        return working.result()
    finally:
        for task in (working, leaving):
            task.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
