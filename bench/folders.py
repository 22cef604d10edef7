"""Compare a server with 10,000 user folders and one with 300, and measure the memory for 256 active users.

The two data folders differ only in the number of user folders. They are measured alternately, each time with a new
server process. In each round, the same users pull a first page (which attaches their database files), push batches and
pull a page again, one request after another. The cost of a request is its median time and the server's CPU time. A
ratio is the cost with many folders divided by the cost with few, within one round. The result is the median ratio of
all rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from client import Answer, Broken, Connection
from make_users import BATCH, SEED_BATCHES, make_users
from measure import cpu_seconds, median, on_memory_disk, percentile, rss_mb
from rows import Maker, Row
from targets.base import Unavailable
from targets.ours import Ours

ROOT = Path(__file__).resolve().parent.parent
PAGE = 100
ROUND_BATCHES = 2
COST_GOAL = 1.2
MEMORY_GOAL_MB = 400


@dataclass
class Site:
    """A data folder with the tokens of its users. `figures` maps each measure to one value per round."""

    data: Path
    count: int
    tokens: list[str]
    makers: list[Maker]
    sent: dict[int, set[str]]
    figures: dict[str, list[float]] = field(default_factory=dict)


def make_site(folder: Path, count: int, active: int, ours: Ours) -> Site:
    started = time.monotonic()
    data = folder / f"data-{count}"
    data.mkdir()
    tokens = make_users(data, count, active, ours)
    makers, sent = [Maker(user) for user in range(active)], {}
    for maker in makers:
        seeded = maker.episodes(SEED_BATCHES, BATCH)
        sent[maker.user] = {row["id"] for batch in seeded for row in batch}
    print(f"{count} folders made in {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    return Site(data, count, tokens, makers, sent)


async def _each(
    name: str, site: Site, ours: Ours, connections: Sequence[Connection], requests: Sequence[bytes]
) -> list[Answer]:
    """Send the requests one after another, each over its user's connection. Record percentiles and CPU time."""
    waits, answers = [], []
    cpu = cpu_seconds(ours.roots())
    for number, raw in enumerate(requests):
        start = time.perf_counter()
        answers.append(await connections[number % len(connections)].send(raw))
        waits.append((time.perf_counter() - start) * 1000)
    cpu = cpu_seconds(ours.roots()) - cpu
    for figure, value in (
        ("p50 ms", percentile(waits, 0.5)),
        ("p99 ms", percentile(waits, 0.99)),
        ("CPU ms", cpu * 1000 / len(requests)),
    ):
        site.figures.setdefault(f"{name}: {figure}", []).append(value)
    return answers


async def _round(site: Site, ours: Ours, users: int, failures: Counter[str]) -> None:
    makers = site.makers[:users]
    batches = [(maker, maker.episodes(1, BATCH)[0]) for _ in range(ROUND_BATCHES) for maker in makers]
    pushes = [ours.push(maker.user, "episodes", batch) for maker, batch in batches]
    pages = [ours.pull(maker.user, "episodes", PAGE, None) or b"" for maker in makers]
    connections = [await Connection.open(ours.port) for _ in makers]
    first = await _each("first page", site, ours, connections, pages)
    pushed = await _each(f"push of {BATCH}", site, ours, connections, pushes)
    again = await _each("page", site, ours, connections, pages)
    for connection in connections:
        connection.close()
    for answer, (maker, batch) in zip(pushed, batches, strict=True):
        site.sent[maker.user] |= {row["id"] for row in batch}
        for fault in ours.push_faults(answer, len(batch)):
            failures[f"push: {fault}"] += 1
    for answer in (*first, *again):
        if not answer.ok or len(ours.rows(answer)) != PAGE:
            failures[f"page: {answer.status} {answer.body[:100]!r}"] += 1
    for maker in makers:
        missing = site.sent[maker.user] - {row["id"] for row in await _all_rows(ours, maker.user)}
        failures["rows acknowledged but not there"] += len(missing)


async def _all_rows(ours: Ours, user: int) -> list[Row]:
    connection = await Connection.open(ours.port)
    found: list[Row] = []
    raw = ours.pull(user, "episodes", 1000, None)
    while raw is not None:
        answer = await connection.send(raw)
        if not answer.ok:
            break
        found += ours.rows(answer)
        raw = ours.pull(user, "episodes", 1000, answer)
    connection.close()
    return found


async def _attach_all(site: Site, ours: Ours, failures: Counter[str]) -> None:
    """Push and pull as every active user, so that the server attaches the database files of all of them."""
    connection = await Connection.open(ours.port)
    for maker in site.makers:
        batch = maker.episodes(1, BATCH)[0]
        answer = await connection.send(ours.push(maker.user, "episodes", batch))
        for fault in ours.push_faults(answer, len(batch)):
            failures[f"push: {fault}"] += 1
        site.sent[maker.user] |= {row["id"] for row in batch}
        await connection.send(ours.pull(maker.user, "episodes", PAGE, None) or b"")
    connection.close()


def visit(site: Site, ours: Ours, users: int, failures: Counter[str], *, attach: bool = False) -> None:
    """Start the server on this data folder, run one round (or attach all users if `attach`), and stop the server."""
    ours.tokens = site.tokens
    with tempfile.TemporaryDirectory(prefix="vademecum-bench-folders-") as place:
        start = time.perf_counter()
        ours.serve(site.data, Path(place))
        site.figures.setdefault("start: s", []).append(time.perf_counter() - start)
        try:
            if attach:
                site.figures.setdefault("memory: RSS MB at start", []).append(rss_mb(ours.roots()))
                asyncio.run(_attach_all(site, ours, failures))
                site.figures.setdefault("memory: RSS MB attached", []).append(rss_mb(ours.roots()))
            else:
                asyncio.run(_round(site, ours, users, failures))
        except Broken as error:
            failures[f"{site.count} folders: {error}"] += 1
        finally:
            ours.stop()


def ratios(few: Site, many: Site) -> dict[str, float]:
    """Map each measure to its median ratio: the value with many folders divided by the value with few."""
    found = {}
    for name, values in few.figures.items():
        pairs = zip(values, many.figures.get(name, []), strict=False)
        ratio = median([other / value for value, other in pairs if value])
        if ratio is not None:
            found[name] = ratio
    return found


def report(few: Site, many: Site) -> list[str]:
    """Return the lines of the table, followed by a line for each goal that says whether it is met."""
    by_name = ratios(few, many)
    lines = [f"| median | {few.count} folders | {many.count} folders | ratio |", "|---|---:|---:|---:|"]
    for name, values in few.figures.items():
        cells = [f"{median(figures) or 0:.2f}" for figures in (values, many.figures.get(name, []))]
        shown = f"**{by_name[name]:.2f}×**" if name in by_name else "–"
        lines.append(f"| {name} | {' | '.join(cells)} | {shown} |")
    lines.append("")
    for name, ratio in by_name.items():
        if name.endswith(("p50 ms", "CPU ms")):
            lines.append(f"- {_met(ratio <= COST_GOAL)}: {name}, ≤ {COST_GOAL}×: {ratio:.2f}×")
    memory = median(few.figures.get("memory: RSS MB attached", []))
    if memory is not None:
        attached = f"{len(few.tokens)} users attached"
        lines.append(f"- {_met(memory < MEMORY_GOAL_MB)}: {attached}, < {MEMORY_GOAL_MB} MB: {memory:.0f} MB")
    return lines


def _met(met: bool) -> str:
    return "met" if met else "MISSED"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--few", type=int, default=300, help="folders of the small site (default 300)")
    parser.add_argument("--many", type=int, default=10_000, help="folders of the large site (default 10000)")
    parser.add_argument("--active", type=int, default=256, help="users with a token (default 256)")
    parser.add_argument("--users", type=int, default=64, help="users that are measured (default 64)")
    parser.add_argument("--rounds", type=int, default=5, help="visits to each site (default 5)")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="a real disk")
    chosen = parser.parse_args()
    if not 1 <= chosen.users <= chosen.active <= chosen.few <= chosen.many:
        parser.error("it must hold that users ≤ active ≤ few ≤ many")
    if on_memory_disk(chosen.folder):
        parser.error(f"{chosen.folder} is memory: fsync costs nothing there")
    return chosen


def main() -> int:
    chosen = arguments()
    ours, failures = Ours(ROOT), Counter[str]()
    try:
        ours.install()
        with tempfile.TemporaryDirectory(prefix="vademecum-bench-sites-", dir=chosen.folder) as place:
            few, many = (make_site(Path(place), n, chosen.active, ours) for n in (chosen.few, chosen.many))
            for number in range(chosen.rounds):
                for site in (few, many) if number % 2 == 0 else (many, few):
                    visit(site, ours, chosen.users, failures)
            for site in (few, many):
                visit(site, ours, chosen.users, failures, attach=True)
    except (Unavailable, Broken, OSError) as why:
        print(f"not measured: {why}", file=sys.stderr)
        return 1
    print("\n".join(report(few, many)))
    for fault, count in (+failures).items():
        print(f"- FAILED {fault} ({count}×)")
    return 1 if +failures else 0


if __name__ == "__main__":
    sys.exit(main())
