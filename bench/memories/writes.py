"""Measure the latency of storing a turn, with all background jobs on and with all of them off.

In each visit, a new server is started and warmed up, and one person writes to it over one connection at three paces:
one turn per second (more than people write), three, and ten (a program that imports its history). The pauses vary by
±50 %, because people are not regular and the jobs have delays of whole seconds. All visits have the same random pauses.
Visits with and without jobs alternate. The percentiles cover the turns of all visits together, because the p99 of a
single visit may reflect one slow disk access.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import msgspec

from client import Connection, request
from measure import percentile
from memories.house import endpoint, with_jobs, without_jobs
from memories.scripted import ASKED
from rows import Maker
from targets.ours import Ours

WARM = 5
SETTLE_S = 4.0  # pause after warming up, shorter than the keep-alive timeout of the server
PACES = {"one a second": 1.0, "3 a second": 1 / 3, "10 a second": 0.1}  # mean seconds between two turns
TURNS_MIN = 30  # minimum number of turns per visit and pace


@dataclass
class Times:
    """The latencies in milliseconds. `visits` maps each pace to the latencies of each visit."""

    visits: dict[str, list[list[float]]] = field(default_factory=lambda: {pace: [] for pace in PACES})


def turns(maker: Maker, count: int) -> list[bytes]:
    """Return the request bodies of `count` turns of about 1 KB. Each turn contains a statement to remember."""
    found = []
    for number in range(count):
        row = maker.episode()
        said = f"{row['userMessage']}\n{ASKED}Statement {number}: {row['aiResponse'][:60]}"
        body = {"sessionId": maker.session_id, "userMessage": said, "aiResponse": row["aiResponse"]}
        found.append(msgspec.json.encode(body))
    return found


async def visit(ours: Ours, seconds: float) -> dict[str, list[float]]:
    maker = Maker(0)
    await ours.prepare_sessions([maker])
    found = {}
    for pace, pause in PACES.items():
        count = WARM + max(TURNS_MIN, round(seconds / pause))
        asked = [request("POST", "/v1/episodes", ours.headers(0), body) for body in turns(maker, count)]
        connection = await Connection.open(ours.port)
        await _written(connection, asked[:WARM], [0.02] * WARM)
        await asyncio.sleep(SETTLE_S)
        chance = random.Random(0)
        pauses = [pause * chance.uniform(0.5, 1.5) for _ in asked[WARM:]]
        found[pace] = await _written(connection, asked[WARM:], pauses)
        connection.close()
    return found


async def _written(connection: Connection, asked: Sequence[bytes], pauses: Sequence[float]) -> list[float]:
    """Send each request when it is due, or once the previous response has arrived. Return latencies in ms."""
    times: list[float] = []
    due = time.perf_counter()
    for raw, pause in zip(asked, pauses, strict=True):
        start = time.perf_counter()
        answer = await connection.send(raw)
        times.append((time.perf_counter() - start) * 1000)
        assert answer.status == 201, answer.body
        due += pause
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
    return times


def measure(rounds: int, seconds: float) -> tuple[Times, Times]:
    on, off = Times(), Times()
    with endpoint() as address:
        servers = [(with_jobs(address), on), (without_jobs(), off)]
        for number in range(rounds):
            for ours, times in servers[:: (-1) ** number]:
                folder = Path(tempfile.mkdtemp(prefix="vademecum-bench-writes-"))
                try:
                    ours.start(folder, 1)
                    for pace, some in asyncio.run(visit(ours, seconds)).items():
                        times.visits[pace].append(some)
                finally:
                    ours.stop()
                    shutil.rmtree(folder, ignore_errors=True)
    return on, off


def table(on: Times, off: Times) -> str:
    lines = ["| a turn is kept, ms | jobs on | jobs off | on ÷ off |", "|---|---:|---:|---:|"]
    for pace in PACES:
        for share in (0.5, 0.9, 0.95, 0.99):
            mine, theirs = (percentile(list(chain(*times.visits[pace])), share) for times in (on, off))
            lines.append(
                f"| {pace}, p{share * 100:.0f} | {mine:.2f} | {theirs:.2f} | **{mine / theirs:.2f}×** |"
            )
        slowest = [[round(percentile(some, 0.99), 1) for some in times.visits[pace]] for times in (on, off)]
        lines.append(f"| {pace}, p99 of each visit | {slowest[0]} | {slowest[1]} | |")
    return "\n".join(lines)
