"""Visit a server: start it without rows, warm it up, run every workload and stop it. All visits are identical."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import workloads
from measure import cpu_seconds, rss_mb
from rows import Maker, Row
from targets import Target
from workloads import Batches, Result

Visit = dict[str, Result]
IDLE = 0.03  # a server that uses fewer CPU seconds per second counts as idle
REST_S = 60  # if the server is not idle after this time, measure it anyway


@dataclass(frozen=True)
class Plan:
    """The amount of work in one visit. `alone`, `together`, `vectors` and `warm` are numbers of batches per user."""

    users: int = 8
    alone: int = 300  # batches of the user who pushes alone
    together: int = 60  # batches of each user who pushes concurrently
    vectors: int = 40  # batches of vector blocks
    events: int = 400
    warm: int = 40
    size: int = 50
    vector_size: int = 10


QUICK = Plan(alone=40, together=10, vectors=5, events=60, warm=5)


@dataclass
class Load:
    """The rows of one visit. They are generated for each visit and are always the same."""

    makers: list[Maker]
    alone: dict[int, Batches]
    together: dict[int, Batches]
    warm: dict[int, Batches]
    vectors: dict[int, Batches]
    events: list[list[Row]]
    busy_events: list[list[Row]]


def make_load(plan: Plan) -> Load:
    """Generate the load: user 0 pushes alone, the next users concurrently, and the last user warms up the server."""
    makers = [Maker(user) for user in range(plan.users + 2)]
    last = plan.users + 1
    return Load(
        makers,
        {0: makers[0].episodes(plan.alone, plan.size)},
        {user: makers[user].episodes(plan.together, plan.size) for user in range(1, plan.users + 1)},
        {last: makers[last].episodes(plan.warm, plan.size)},
        {0: makers[0].blocks(plan.vectors, plan.vector_size)},
        makers[last].episodes(plan.events + workloads.WARM_EVENTS, 1),
        makers[last].episodes(plan.events + workloads.WARM_EVENTS, 1),
    )


async def rest(target: Target) -> None:
    """Wait until the server is idle, because it may still do work for earlier requests, such as indexing rows."""
    before = cpu_seconds(target.roots())
    for _ in range(REST_S):
        await asyncio.sleep(1)
        now = cpu_seconds(target.roots())
        if now - before < IDLE:
            return
        before = now


async def _measure(target: Target, plan: Plan, load: Load) -> Visit:
    many = f"{plan.users} users"
    visit: Visit = {}
    blocks = sum(len(batch) for batch in load.vectors[0])
    await target.prepare(load.makers, blocks)
    visit["warm-up push"] = await workloads.push(target, "episodes", load.warm)
    if target.pulls:
        visit["warm-up pull"] = await workloads.pull(target, "episodes", 100, load.warm)
    visit["push, 1 user"] = await workloads.push(target, "episodes", load.alone)
    visit[f"push, {many}"] = await workloads.push(target, "episodes", load.together)
    for limit in (100, 1000) if target.pulls else ():
        visit[f"pull {limit}, 1 user"] = await workloads.pull(target, "episodes", limit, load.alone)
        visit[f"pull {limit}, {many}"] = await workloads.pull(target, "episodes", limit, load.together)
    visit["live, busy"] = await workloads.live(target, plan.users + 1, load.busy_events)
    await rest(target)
    visit["live"] = await workloads.live(target, plan.users + 1, load.events)
    await rest(target)
    visit["push vectors"] = await workloads.push(target, "vectorEmbeddings", load.vectors)
    if target.pulls:
        visit["pull vectors"] = await workloads.pull(target, "vectorEmbeddings", 100, load.vectors)
    visit["memory"] = Result(figures={"RSS MB": rss_mb(target.roots())})
    return visit


def run_visit(target: Target, plan: Plan, folder: Path) -> Visit:
    """Run one visit. Raise Unavailable if the server does not start or cannot be prepared."""
    load = make_load(plan)
    place = Path(tempfile.mkdtemp(prefix=f"vademecum-bench-{target.name}-", dir=folder))
    try:
        target.start(place, plan.users + 2)
        with asyncio.Runner(loop_factory=_loop()) as runner:
            return runner.run(_measure(target, plan, load))
    finally:
        target.stop()
        shutil.rmtree(place, ignore_errors=True)


def _loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return uvloop's event loop factory if it is installed, because a faster client leaves more CPU to the server."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
