"""Format the results as tables and JSON. A ratio is ours ÷ peer, the median over all pairs of consecutive visits."""

from __future__ import annotations

import platform
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from measure import median
from visit import Plan, Visit

LESS_IS_BETTER = ("p50 ms", "p99 ms", "RSS MB")
TABLE = ("docs/s", "docs/CPU-s", *LESS_IS_BETTER)


@dataclass(frozen=True)
class Goal:
    peer: str
    measure: str
    at_least: float | None = None
    at_most: float | None = None


RXDB_SERVERS = ("rxdb-server", "rxdb-server-shared", "rxdb-server-accounts")


def goals(users: int) -> list[Goal]:
    """Return the goals. Each configuration of rxdb-server has its own goals."""
    who = ("1 user", f"{users} users")
    return [
        *(Goal("express-pouchdb", f"push, {one}: docs/s", at_least=2) for one in who),
        *(Goal(peer, f"push, {users} users: docs/s", at_least=0.7) for peer in RXDB_SERVERS),
        *(
            Goal(peer, f"pull {limit}, {one}: docs/s", at_least=1)
            for peer in RXDB_SERVERS
            for limit in (100, 1000)
            for one in who
        ),
        *(Goal(peer, "live: p99 ms", at_most=1.5) for peer in RXDB_SERVERS),
    ]


@dataclass
class Book:
    """All figures and failures of all visits."""

    baseline: str
    durability: dict[str, str] = field(default_factory=dict)
    figures: dict[str, dict[str, list[float]]] = field(default_factory=lambda: defaultdict(dict))
    ratios: dict[str, dict[str, list[float]]] = field(default_factory=lambda: defaultdict(dict))
    failures: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def add(self, name: str, visit: Visit) -> None:
        for measure, value in flat(visit):
            self.figures[name].setdefault(measure, []).append(value)
        for workload, result in visit.items():
            for why, count in result.failures.items():
                self.failures[name][f"{workload}: {why}"] += count

    def add_pair(self, ours: Visit, peer: str, theirs: Visit) -> None:
        """Add a pair of visits. Compute ratios only for workloads without failures on either side."""
        base = dict(flat(ours, sound=True))
        for measure, value in flat(theirs, sound=True):
            if measure in base and value:
                self.ratios[peer].setdefault(measure, []).append(base[measure] / value)

    @property
    def failed(self) -> int:
        return sum(sum(counter.values()) for counter in self.failures.values())


def flat(visit: Visit, sound: bool = False) -> Iterable[tuple[str, float]]:
    for workload, result in visit.items():
        if workload.startswith("warm-up") or (sound and result.failures):
            continue
        for figure, value in result.figures.items():
            yield f"{workload}: {figure}", value


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}" if value < 10 else f"{value:.1f}"


def markdown(book: Book) -> str:
    """Return a Markdown table with a row per measure. For each peer, it has the median and the median ratio."""
    peers = [name for name in book.figures if name != book.baseline]
    heads = [book.baseline, *(column for peer in peers for column in (peer, f"{book.baseline} ÷ {peer}"))]
    lines = [f"| median | {' | '.join(heads)} |", "|---|" + "---:|" * len(heads)]
    kept = [f"{book.durability[book.baseline]}"]
    kept += [cell for peer in peers for cell in (book.durability[peer], "")]
    lines.append(f"| *kept on* | {' | '.join(kept)} |")
    names = [name for name in _measures(book) if name.rpartition(": ")[2] in TABLE]
    for name in names:
        cells = [_number(median(book.figures[book.baseline].get(name, [])))]
        for peer in peers:
            cells.append(_number(median(book.figures[peer].get(name, []))))
            ratio = median(book.ratios[peer].get(name, []))
            cells.append("–" if ratio is None else f"**{ratio:.2f}×**")
        less = " (less is better)" if name.rpartition(": ")[2] in LESS_IS_BETTER else ""
        lines.append(f"| {name}{less} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _measures(book: Book) -> list[str]:
    return list(dict.fromkeys(measure for figures in book.figures.values() for measure in figures))


def verdicts(book: Book, users: int) -> list[str]:
    """Return the verdicts on the goals for which this run has figures."""
    lines = []
    for goal in goals(users):
        ratio = median(book.ratios.get(goal.peer, {}).get(goal.measure, []))
        if ratio is None or book.baseline != "ours":
            continue
        if goal.at_least is not None:
            met, wanted = ratio >= goal.at_least, f"≥ {goal.at_least:g}×"
        else:
            met, wanted = ratio <= (goal.at_most or 0), f"≤ {goal.at_most:g}×"
        lines.append(f"- {'met' if met else 'MISSED'}: {goal.measure}, {wanted} {goal.peer}: {ratio:.2f}×")
    return lines


def failures(book: Book) -> list[str]:
    return [
        f"- FAILED {name}: {why} ({count}×)"
        for name, counter in book.failures.items()
        for why, count in counter.most_common()
    ]


def as_json(book: Book, plan: Plan, rounds: int) -> dict[str, Any]:
    return {
        "machine": {"system": platform.platform(), "python": platform.python_version()},
        "plan": {**asdict(plan), "rounds": rounds},
        "baseline": book.baseline,
        "durability": book.durability,
        "figures": {name: dict(figures) for name, figures in book.figures.items()},
        "ratios": {name: dict(ratios) for name, ratios in book.ratios.items()},
        "failures": {name: dict(counter) for name, counter in book.failures.items()},
    }
