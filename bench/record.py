"""Measure `vademecum record` as agents run it: several processes in parallel, each writing an event to the spool.

    python bench/record.py [--events 10000] [--at-a-time 8] [--kills 2]

With `--kills N`, a server ingests the events at the same time and competes with the measured processes for the cores.
It is killed (SIGKILL) and restarted N times. At the end, each event must have been counted exactly once.

For comparison, every tenth process is a Python process that does nothing. The time above its time is the cost of our
command. The figures hold for this machine and run only.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

import httpx

from measure import percentile
from vademecum.services.accounts import local_auth

PROGRAM = str(Path(sys.executable).with_name("vademecum"))
COMMAND = [PROGRAM, "record"]
OWNER = "owner@localhost"
DONE_S = 600.0
FLOOR = [sys.executable, "-c", "pass"]
FLOOR_EVERY = 10


def event(number: int, cwd: Path) -> bytes:
    """Return a typical event of an agent. The remainder of `number` selects a command, an edit, a read or a search."""
    given = [
        ("Bash", {"command": f"python -m pytest -q tests/test_{number}.py && git status"}),
        ("Edit", {"file_path": f"{cwd}/src/{number}.py", "old_string": "token = 1", "new_string": "key: int = 2"}),
        ("Read", {"file_path": f"{cwd}/README.md", "offset": number, "limit": 50}),
        ("Grep", {"pattern": f"def part_{number}", "path": "src"}),
    ]  # fmt: skip
    tool, values = given[number % len(given)]
    whole = {"hook_event_name": "PostToolUse", "session_id": "bench", "cwd": str(cwd), "tool_name": tool}
    return json.dumps({**whole, "tool_input": values, "tool_response": {"stdout": "x" * 2000}}).encode()


def timed(command: list[str], stdin: bytes) -> float:
    """Run a process, check that it succeeds without output, and return its duration in milliseconds."""
    began = time.perf_counter()
    done = subprocess.run(command, input=stdin, capture_output=True, check=True)
    assert done.stdout + done.stderr == b"", done.stderr
    return (time.perf_counter() - began) * 1000


def row(name: str, times: list[float]) -> str:
    p50, p95, p99 = (percentile(sorted(times), share) for share in (0.50, 0.95, 0.99))
    return f"{name:24} {len(times):7} {p50:8.1f} {p95:8.1f} {p99:8.1f} {max(times):8.1f}"


class Server:
    """A server that is killed and restarted `kills` times while events arrive. With 0 kills it is never started."""

    def __init__(self, data: Path, events: int, kills: int) -> None:
        self._data = data
        self._moments = [events * (n + 1) // (kills + 1) for n in range(kills)]
        self._turn = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self.half_way: list[int] = []  # number of files in the spool at the time of each kill

    @contextmanager
    def running(self) -> Iterator[Server]:
        if self._moments:
            self._start()
        try:
            yield self
        finally:
            if self._process is not None:
                self._process.kill()
                self._process.wait()

    def _start(self) -> local_auth.ServerInfo:
        words = [PROGRAM, "serve", "--port", "0", "--data", str(self._data)]
        self._process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return self._door()

    def _door(self) -> local_auth.ServerInfo:
        assert self._process is not None
        while (door := local_auth.read(self._data)) is None or door.pid != self._process.pid:
            assert self._process.poll() is None, "the server ended"
            time.sleep(0.01)
        return door

    def passed(self, number: int) -> None:
        """Kill and restart the server if a kill is due before event `number`.

        During the restart, other threads continue to record events.
        """
        if number not in self._moments or self._process is None:
            return
        with self._turn:
            self._process.kill()
            self._process.wait()
            self.half_way.append(spooled(self._data))
            self._start()

    def counted(self) -> int:
        """Wait until the spool is empty. Return the number of events that the server has counted."""
        end = time.monotonic() + DONE_S
        while spooled(self._data):
            assert time.monotonic() < end, "events wait"
            time.sleep(0.1)
        door = self._door()
        headers = {"Authorization": f"Local {door.secret}", "X-Vademecum-User": OWNER}
        with httpx.Client(base_url=door.url, headers=headers, timeout=120) as client:
            found, cursor = 0, ""
            while True:
                asked = {"project": "*", "limit": 1000, "cursor": cursor}
                answer = client.get("/v1/observations", params=asked).raise_for_status().json()
                found += sum(row["count"] for row in answer["observations"])
                cursor = answer["next"]
                if cursor is None:
                    return found


def spooled(data: Path) -> int:
    return sum(1 for _ in (data / "spool").rglob("*.json"))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--at-a-time", type=int, default=8)
    parser.add_argument("--kills", type=int, default=0)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data, cwd = Path(folder) / "data", Path(folder) / "engine"
        data.mkdir(mode=0o700)
        cwd.mkdir()
        command = [*COMMAND, "--data", str(data)]
        runs = chosen.events * FLOOR_EVERY // (FLOOR_EVERY - 1)
        server = Server(data, runs, chosen.kills)

        def run(number: int) -> tuple[bool, float]:
            server.passed(number)
            floor = number % FLOOR_EVERY == FLOOR_EVERY - 1
            return floor, timed(FLOOR if floor else command, event(number, cwd))

        with server.running(), ThreadPoolExecutor(chosen.at_a_time) as pool:
            done = list(pool.map(run, range(runs)))
            told, waiting = sum(not floor for floor, _ in done), spooled(data)
            counted = server.counted() if chosen.kills else waiting
    print(
        f"{'ms, ' + str(chosen.at_a_time) + ' at a time':24} {'runs':>7} {'p50':>8} {'p95':>8} {'p99':>8} {'most':>8}"
    )
    print(row("vademecum record", [ms for floor, ms in done if not floor]))
    print(row("python -c pass", [ms for floor, ms in done if floor]))
    if chosen.kills:
        print(f"killed {len(server.half_way)} times, with {server.half_way} events in the spool")
    where = "counted by the server" if chosen.kills else "in the spool"
    print(f"{counted} of {told} events {where}; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    assert counted == told


if __name__ == "__main__":
    main()
