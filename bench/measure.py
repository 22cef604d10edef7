"""Measure the CPU time and memory of a server's process tree from /proc, and compute statistics of measurements."""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path

PROC = Path("/proc")
TICKS = os.sysconf("SC_CLK_TCK")
MB = 2**20


def _fields(pid: int) -> list[str]:
    """Return the fields of /proc/<pid>/stat after the command name, which may contain spaces."""
    return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()


def tree(roots: Iterable[int]) -> list[int]:
    """Return the ids of the processes `roots` and of all their live descendants."""
    children: dict[int, list[int]] = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            try:
                parent = int(_fields(int(entry.name))[1])
            except (FileNotFoundError, ProcessLookupError):
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found, queue = [], list(roots)
    while queue:
        pid = queue.pop()
        found.append(pid)
        queue.extend(children.get(pid, []))
    return found


def cpu_seconds(roots: Iterable[int]) -> float:
    """Return the CPU time of the process trees in seconds. It includes the time of child processes that have ended."""
    ticks = 0
    for pid in tree(roots):
        try:
            ticks += sum(int(field) for field in _fields(pid)[11:15])
        except (FileNotFoundError, ProcessLookupError):
            continue
    return ticks / TICKS


def _status(pid: int) -> dict[str, int]:
    """Map the names of those fields of /proc/<pid>/status that are given in kB to their values in bytes."""
    found = {}
    for line in (PROC / str(pid) / "status").read_text().splitlines():
        name, _, value = line.partition(":")
        if value.endswith(" kB"):
            found[name] = int(value[:-3]) * 1024
    return found


def rss_mb(roots: Iterable[int]) -> float:
    """Return the resident memory of the process trees in MB. Memory that they share is counted once."""
    own, shared = 0, 0
    for pid in tree(roots):
        try:
            status = _status(pid)
        except (FileNotFoundError, ProcessLookupError):
            continue
        own += status.get("RssAnon", 0) + status.get("RssFile", 0)
        shared = max(shared, status.get("RssShmem", 0))
    return (own + shared) / MB


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that is greater than or equal to at least the fraction `share` of all values."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def on_memory_disk(folder: Path) -> bool:
    """Return whether the folder is on a memory file system, where fsync costs nothing and servers look too fast."""
    best, kind = "", ""
    for line in (PROC / "mounts").read_text().splitlines():
        _, place, found = line.split()[:3]
        if str(folder.resolve()).startswith(place) and len(place) > len(best):
            best, kind = place, found
    return kind in ("tmpfs", "ramfs")
