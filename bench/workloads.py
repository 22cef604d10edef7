"""The workloads that are measured on a server.

While the clock runs, the client only sends and receives bytes. It checks all responses after the clock stops. A figure
is valid only without failures: the server must confirm each push, and each pulled row must be equal to the sent row.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from client import Answer, Broken, Connection, Stream
from measure import cpu_seconds, percentile
from rows import Row
from targets.base import Collection, Target

LIMIT_S = 300.0  # time after which a workload is stopped and counts as failed
PULL_S = 1.0  # time for which each user repeats pulling all rows
EVENT_S = 10.0
PAUSE_S = 0.004  # pause before the next live event, so that the server is idle when it arrives
WARM_EVENTS = 20

Batches = Sequence[Sequence[Row]]


@dataclass
class Result:
    """The result of one workload in one round. `docs` is the number of rows that were transferred."""

    docs: int = 0
    bytes: int = 0
    seconds: float = 0.0
    cpu: float = 0.0
    client_cpu: float = 0.0
    figures: dict[str, float] = field(default_factory=dict)
    failures: Counter[str] = field(default_factory=Counter)

    def fail(self, why: str, count: int = 1) -> None:
        self.failures[why[:200]] += count

    def finish(self) -> Result:
        """Compute the rates if any rows were transferred."""
        if self.docs and self.seconds:
            self.figures["docs/s"] = self.docs / self.seconds
            self.figures["MB/s"] = self.bytes / 1e6 / self.seconds
            self.figures["docs/CPU-s"] = self.docs / self.cpu if self.cpu else 0.0
            self.figures["client share"] = self.client_cpu / self.seconds
        return self


async def _clocked(result: Result, target: Target, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    cpu, own, start = cpu_seconds(target.roots()), time.process_time(), time.perf_counter()
    try:
        async with asyncio.timeout(LIMIT_S):
            await work()
    except TimeoutError:
        result.fail(f"not done after {LIMIT_S:.0f} s")
    result.seconds = time.perf_counter() - start
    result.client_cpu = time.process_time() - own
    result.cpu = cpu_seconds(target.roots()) - cpu


async def push(target: Target, collection: Collection, batches: Mapping[int, Batches]) -> Result:
    """Measure pushes. All users push concurrently, each with one batch after another over one connection."""
    result = Result()
    queues = {u: [target.push(u, collection, batch) for batch in many] for u, many in batches.items()}
    answers: dict[int, list[Answer]] = {user: [] for user in batches}
    connections = {user: await Connection.open(target.port) for user in batches}

    async def one(user: int) -> None:
        try:
            for raw in queues[user]:
                answers[user].append(await connections[user].send(raw))
        except Broken as error:
            result.fail(str(error))

    async def work() -> None:
        await asyncio.gather(*(one(user) for user in batches))

    await _clocked(result, target, work)
    for user, many in batches.items():
        connections[user].close()
        if len(answers[user]) < len(many):
            result.fail("a push without an answer", len(many) - len(answers[user]))
        for batch, raw, answer in zip(many, queues[user], answers[user], strict=False):
            faults = target.push_faults(answer, len(batch))
            for fault in faults:
                result.fail(fault)
            if not faults:
                result.docs += len(batch)
                result.bytes += len(raw)
    return result.finish()


async def pull(target: Target, collection: Collection, limit: int, sent: Mapping[int, Batches]) -> Result:
    """Measure pulls. Each user repeatedly pulls all rows, for at least `PULL_S`, and all users pull concurrently."""
    result = Result()
    passes: dict[int, list[list[Answer]]] = {user: [] for user in sent}
    connections = {user: await Connection.open(target.port) for user in sent}

    async def one(user: int) -> None:
        until = time.perf_counter() + PULL_S
        try:
            while not passes[user] or time.perf_counter() < until:
                pages: list[Answer] = []
                raw = target.pull(user, collection, limit, None)
                while raw is not None:
                    answer = await connections[user].send(raw)
                    pages.append(answer)
                    raw = target.pull(user, collection, limit, answer) if answer.ok else None
                passes[user].append(pages)
        except (Broken, msgspec.DecodeError) as error:
            result.fail(str(error))

    async def work() -> None:
        await asyncio.gather(*(one(user) for user in sent))

    await _clocked(result, target, work)
    for user, many in sent.items():
        connections[user].close()
        wanted = {row["id"]: row for batch in many for row in batch}
        for pages in passes[user]:
            result.docs += _judge(result, target, pages, wanted)
            result.bytes += sum(len(page.body) for page in pages)
    return result.finish()


def _judge(result: Result, target: Target, pages: list[Answer], wanted: dict[str, Row]) -> int:
    """Record each difference of the pulled pages from the sent rows as a failure. Return the number of rows."""
    found: list[Row] = []
    for page in pages:
        try:
            if not page.ok:
                raise ValueError(f"{page.status} {page.body[:200]!r}")
            found.extend(target.rows(page))
        except (ValueError, KeyError, msgspec.DecodeError) as error:
            result.fail(f"pull: {error}")
    wrong = sum(wanted.get(row["id"]) != row for row in found)
    missing = len(wanted.keys() - {row["id"] for row in found})
    for count, why in (
        (missing, "rows sent but not pulled back"),
        (wrong, "rows pulled back that are not what was sent"),
        (len(found) - len({row["id"] for row in found}), "rows pulled twice in one pass"),
    ):
        if count:
            result.fail(why, count)
    return len(found)


async def live(target: Target, user: int, batches: Batches) -> Result:
    """Measure the delay until a subscriber receives a pushed row. One writer pushes one row at a time."""
    result = Result()
    raws = [(str(batch[0]["id"]).encode(), target.push(user, "episodes", batch)) for batch in batches]
    writer = await Connection.open(target.port)
    subscriber = await Stream.open(target.port)
    assert isinstance(subscriber, Stream)
    subscriber.start(target.stream(user))
    # Wait for a fixed time and not for the headers, because some servers send them with the first event.
    await asyncio.sleep(0.5)
    if subscriber.opened.done() and not subscriber.opened.exception() and subscriber.opened.result() != 200:
        result.fail(f"stream answered {subscriber.opened.result()}")
    waits: list[float] = []
    answers: list[Answer] = []

    async def one(needle: bytes, raw: bytes) -> None:
        arrival = subscriber.expect(needle)
        start = time.perf_counter()
        answers.append(await writer.send(raw))
        waits.append(await asyncio.wait_for(arrival, EVENT_S) - start)

    async def work() -> None:
        for needle, raw in raws:
            try:
                await one(needle, raw)
            except (Broken, TimeoutError) as error:
                result.fail(f"event not delivered: {error!r}")
                return
            await asyncio.sleep(PAUSE_S)

    await _clocked(result, target, work)
    writer.close()
    subscriber.close()
    for answer in answers:
        for fault in target.push_faults(answer, 1):
            result.fail(fault)
    measured = [wait * 1000 for wait in waits[WARM_EVENTS:]]
    if measured:
        result.figures = {"p50 ms": percentile(measured, 0.5), "p99 ms": percentile(measured, 0.99)}
    return result
