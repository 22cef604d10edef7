"""Measures `vademecum record` as an agent runs it: real processes, several at a time, every event in the spool.

    python bench/record.py [--events 10000] [--at-a-time 8]

The floor is a Python that does nothing, started in the same way in turn with the command: what is above it is ours.
Figures stand for this machine and this run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from measure import percentile

COMMAND = [str(Path(sys.executable).with_name("vademecum")), "record"]
FLOOR = [sys.executable, "-c", "pass"]
FLOOR_EVERY = 10


def event(number: int, cwd: Path) -> bytes:
    """What agents do most: commands, edits, reads and searches, in turn."""
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
    """Milliseconds from the start to the end of a process that ends well and says nothing."""
    began = time.perf_counter()
    done = subprocess.run(command, input=stdin, capture_output=True, check=True)
    assert done.stdout + done.stderr == b"", done.stderr
    return (time.perf_counter() - began) * 1000


def row(name: str, times: list[float]) -> str:
    p50, p95, p99 = (percentile(sorted(times), share) for share in (0.50, 0.95, 0.99))
    return f"{name:24} {len(times):7} {p50:8.1f} {p95:8.1f} {p99:8.1f} {max(times):8.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--at-a-time", type=int, default=8)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data, cwd = Path(folder) / "data", Path(folder) / "engine"
        data.mkdir()
        cwd.mkdir()
        command = [*COMMAND, "--data", str(data)]

        def run(number: int) -> tuple[bool, float]:
            floor = number % FLOOR_EVERY == FLOOR_EVERY - 1
            return floor, timed(FLOOR if floor else command, event(number, cwd))

        with ThreadPoolExecutor(chosen.at_a_time) as pool:
            done = list(pool.map(run, range(chosen.events * FLOOR_EVERY // (FLOOR_EVERY - 1))))
        spooled = sum(1 for _ in data.rglob("*.json"))
    print(
        f"{'ms, ' + str(chosen.at_a_time) + ' at a time':24} {'runs':>7} {'p50':>8} {'p95':>8} {'p99':>8} {'most':>8}"
    )
    print(row("vademecum record", [ms for floor, ms in done if not floor]))
    print(row("python -c pass", [ms for floor, ms in done if floor]))
    print(f"{spooled} events in the spool; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
