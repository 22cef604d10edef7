"""Users get slots in turn, and one user never occupies more slots than the bound."""

import asyncio
import threading
from contextlib import AsyncExitStack
from functools import wraps

import pytest

from vademecum.fair_queue import (
    REST_MAX_S,
    SERVER,
    Activity,
    FairExecutor,
    FairQueue,
    FairSlots,
    current_user,
)
from vademecum.services.runtime.concurrency_limits import endpoint_slots


def on_loop(test):
    """Run an async test on an event loop of its own."""

    @wraps(test)
    def run(*args, **kwargs):
        asyncio.run(test(*args, **kwargs))

    return run


def taken(queue, most=100):
    found = []
    while len(found) < most and (pair := queue.take()) is not None:
        found.append(pair)
    return found


def test_queue_serves_users_in_turn():
    queue = FairQueue(100)
    for item in range(4):
        queue.put("busy", item)
    queue.put("a", 0)
    queue.put("b", 0)
    assert taken(queue) == [("busy", 0), ("a", 0), ("b", 0), ("busy", 1), ("busy", 2), ("busy", 3)]


def test_one_user_gets_no_more_slots_than_the_bound():
    queue = FairQueue(4, 2)
    for item in range(5):
        queue.put("busy", item)
    assert taken(queue) == [("busy", 0), ("busy", 1)]
    queue.put("a", 0)
    assert taken(queue) == [("a", 0)]
    queue.release("busy")
    assert taken(queue) == [("busy", 2)]
    assert (queue.running("busy"), queue.waiting("busy"), len(queue)) == (2, 2, 2)


def test_number_of_slots_limits_all_users_together():
    queue = FairQueue(2, 2)
    for user in "abc":
        queue.put(user, 0)
    assert taken(queue) == [("a", 0), ("b", 0)]
    queue.release("a")
    assert taken(queue) == [("c", 0)]


def test_server_work_has_no_per_user_bound():
    queue = FairQueue(3, 1)
    for item in range(4):
        queue.put(SERVER, item)
    assert taken(queue) == [(SERVER, 0), (SERVER, 1), (SERVER, 2)]


def test_discarded_items_are_not_taken():
    queue = FairQueue(3)
    for item in range(3):
        queue.put("a", item)
    assert queue.discard("a", lambda item: item != 1) == 2
    assert queue.discard("b", lambda item: True) == 0
    assert taken(queue) == [("a", 1)]


def test_waiting_users_come_before_a_user_whose_item_ended():
    queue = FairQueue(1)
    queue.put("busy", 0)
    assert taken(queue) == [("busy", 0)]
    for user in ("busy", "busy", "a"):
        queue.put(user, 1)
    order = []
    for user in ("busy", "a", "busy"):
        queue.release(user)
        order += taken(queue)
        queue.put("later", 2)  # users who arrive later never starve those who wait
    assert [user for user, _ in order] == ["a", "busy", "later"]


def test_discarding_an_item_keeps_the_users_turn():
    queue = FairQueue(3)
    for user, item in (("a", 0), ("b", 0), ("a", 1)):
        queue.put(user, item)
    queue.discard("a", lambda item: item == 0)
    assert taken(queue) == [("a", 1), ("b", 0)]


@pytest.mark.parametrize(("parallel", "granted"), [(1, 1), (4, 2)])
@on_loop
async def test_one_account_holds_at_most_half_of_several_endpoint_slots(parallel, granted):
    slots = endpoint_slots(parallel)
    async with AsyncExitStack() as stack:
        for _ in range(granted):
            await stack.enter_async_context(slots.hold("a"))
        waiting = asyncio.create_task(stack.enter_async_context(slots.hold("a")))
        await asyncio.sleep(0)
        assert slots.waiting("a") == 1
        waiting.cancel()


def test_long_work_rests_only_while_other_users_are_active(monkeypatch):
    now = 1000.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    activity = Activity()
    activity.note("busy")
    assert activity.rest_s("busy", 1) == 0
    activity.note("a")
    activity.note("busy")
    activity.note("busy")
    assert activity.rest_s("busy", 1) == REST_MAX_S
    assert activity.rest_s("busy", 0.03) == pytest.approx(0.09)
    assert activity.rest_s("busy", 0.01) == activity.rest_s(SERVER, 1) == 0
    now += 10
    assert activity.rest_s("busy", 1) == 0


async def in_thread(executor, user, work):
    current_user.set(user)
    return await asyncio.get_running_loop().run_in_executor(executor, work)


@on_loop
async def test_executor_runs_work_of_another_user_beside_a_busy_user():
    gate, order = threading.Event(), []
    executor = FairExecutor(2, 1, "test")
    try:
        busy = [asyncio.create_task(in_thread(executor, "busy", gate.wait)) for _ in range(10)]
        await asyncio.sleep(0)
        other = [
            asyncio.create_task(in_thread(executor, "other", lambda n=n: order.append(n))) for n in (1, 2)
        ]
        await asyncio.gather(*other)  # would never return if the busy user had both threads
        assert order == [1, 2]
    finally:
        gate.set()
        await asyncio.gather(*busy)
        executor.shutdown()


@on_loop
async def test_executor_reports_errors_and_continues():
    executor = FairExecutor(1, 1, "test")

    def fail():
        raise ValueError("no")

    try:
        with pytest.raises(ValueError, match="no"):
            await in_thread(executor, "a", fail)
        assert await in_thread(executor, "a", lambda: 1) == 1
    finally:
        executor.shutdown()


@on_loop
async def test_executor_skips_cancelled_work():
    gate, ran = threading.Event(), []
    executor = FairExecutor(1, 1, "test")
    try:
        first = asyncio.create_task(in_thread(executor, "a", gate.wait))
        second = asyncio.create_task(in_thread(executor, "a", lambda: ran.append(2)))
        third = asyncio.create_task(in_thread(executor, "a", lambda: ran.append(3)))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(first, third)
        assert ran == [3]
    finally:
        executor.shutdown()


async def held(slots, user, order, gate):
    async with slots.hold(user):
        order.append(user)
        await gate.wait()


@on_loop
async def test_slots_are_granted_to_users_in_turn():
    slots, order, gate = FairSlots(1), [], asyncio.Event()
    gate.set()
    async with slots.hold("busy"):
        tasks = [asyncio.create_task(held(slots, user, order, gate)) for user in ("busy", "busy", "a")]
        await asyncio.sleep(0)
        assert slots.waiting("busy") == 2
    await asyncio.gather(*tasks)
    assert order == ["a", "busy", "busy"]


@pytest.mark.parametrize("granted", [False, True])
@on_loop
async def test_cancelled_wait_leaves_no_slot_occupied(granted):
    slots, order, gate = FairSlots(1), [], asyncio.Event()
    gate.set()
    async with slots.hold("a"):
        waiting = asyncio.create_task(held(slots, "b", order, gate))
        await asyncio.sleep(0)
        if not granted:
            waiting.cancel()
    waiting.cancel()  # cancels after the slot was granted, or a second time
    await asyncio.gather(waiting, return_exceptions=True)
    await asyncio.wait_for(held(slots, "c", order, gate), 5)
    assert order == ["c"]
