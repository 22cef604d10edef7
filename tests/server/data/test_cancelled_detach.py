"""Cancelling a task while it detaches or rewrites a file does not block access to that file."""

import asyncio
import threading
from contextlib import AsyncExitStack

import pytest

from property.rows import fact
from property.sync_wire import send
from server.data.test_segments import delay_statements, queue_tasks
from server.in_process_server import run, serve


async def run_event_loop():
    """Run the event loop often enough that all tasks that can continue have done so."""
    for _ in range(100):
        await asyncio.sleep(0)


async def create_accounts(h):
    """Create Ada, and Bob, whose file is attached but not in use."""
    ada, bob = await h.person(), await h.person()
    await send(bob, "facts", (fact("f"), None))
    return ada, bob


async def cut_off(task):
    task.cancel()
    await run_event_loop()


def test_job_cancelled_during_detach_releases_the_file(tmp_path):
    async def scenario():
        async with serve(tmp_path, attached_max=1) as h, AsyncExitStack() as holds:
            ada, bob = await create_accounts(h)
            await holds.enter_async_context(h.services.users.open(ada.id))
            with delay_statements(h):
                [leaving] = await queue_tasks(h, holds.aclose())
                await cut_off(leaving)
            assert set(await bob.live("facts")) == {"f"}
            with pytest.raises(asyncio.CancelledError):
                await leaving

    run(scenario)


def test_rewrite_cancelled_during_detach_releases_the_file(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            _, bob = await create_accounts(h)
            with delay_statements(h):
                [rewriting] = await queue_tasks(h, h.services.users.rewrite(bob.id))
                await cut_off(rewriting)
            assert set(await bob.live("facts")) == {"f"}

    run(scenario)


def test_cancelled_rewrite_blocks_access_until_it_finishes(tmp_path, monkeypatch):
    async def scenario():
        async with serve(tmp_path) as h:
            _, bob = await create_accounts(h)
            begun, gate = threading.Event(), threading.Event()
            copy = h.services.instance.copy_database

            def held(source, target):
                begun.set()
                gate.wait()
                copy(source, target)

            monkeypatch.setattr(h.services.instance, "copy_database", held)
            rewriting = asyncio.create_task(h.services.users.rewrite(bob.id))
            await asyncio.to_thread(begun.wait)
            for _ in range(2):
                await cut_off(rewriting)
            over = rewriting.done()
            gate.set()
            assert not over
            assert set(await bob.live("facts")) == {"f"}

    run(scenario)
