"""Measure vector search over one user's chunks, compare it with other embedded search libraries, and print ratios.

Each searcher is a separate process with the same library: the chunks of 100 documents, of which 10 or 90 are active.
All searchers get the same questions one after another and return the 10 best rows. Their results are compared with
exact search in float64. Our index is measured directly before or after each peer, and ratios are computed within such a
pair only.

hot: the searcher is open and has answered questions before. cold: the searcher is reopened for each question, and the
time includes opening; the files are in the page cache. evicted: our index is open, but another user's rows have evicted
it from the cache; it is compared with cold peers. words: hot keyword search with three words instead of a vector.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from measure import median, percentile
from searchers import data
from targets.install import python_peer

ROOT = Path(__file__).resolve().parent.parent
HERE = ("ours", "numpy", "LanceDB")
PEERS = ("sqlite-vec", "sqlite-vec, plain table", "Chroma", "qdrant-client", "SQLite FTS5")
NAMES = (*HERE, *PEERS)
# Qdrant's local mode writes each point separately, and warns that it is not meant for more than 20,000 points.
MOST_ROWS = {"qdrant-client": 20_000}
ACTIVE = (10, 90)
# Maps each kind of measurement of our index to the kind of the peer's measurement with which it is compared.
KINDS = {"hot": "hot", "evicted": "cold", "cold": "cold", "words": "words"}
WORDS = ("LanceDB", "SQLite FTS5")
QUESTIONS = 100
COLD_QUESTIONS = 10
SECONDS = 1.0  # time limit of a visit, after which a slow searcher gets no more questions
# Disable telemetry. Limit numpy to one thread, as in the server, so that brute force shows the limit of one core.
ENVIRONMENT = {
    "ANONYMIZED_TELEMETRY": "False",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "OTEL_SDK_DISABLED": "true",
    "OPENBLAS_NUM_THREADS": "1",
    "LANCE_LOG": "error",
}

Measure = tuple[str, int]  # the kind, and the number of active documents


@dataclass
class Worker:
    """The process of a searcher and its measurements."""

    name: str
    process: subprocess.Popen[str]
    built: dict[str, float] = field(default_factory=dict)
    times: dict[Measure, list[float]] = field(default_factory=lambda: defaultdict(list))
    recalls: dict[Measure, list[float]] = field(default_factory=lambda: defaultdict(list))
    ratios: dict[Measure, list[float]] = field(default_factory=lambda: defaultdict(list))

    def order(self, **order: Any) -> Any:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"{self.name} ended: {self.process.wait()}")
        return json.loads(answer)


def note(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def start(name: str, library: Path, folder: Path, peer_python: Path) -> Worker:
    python = sys.executable if name in HERE else str(peer_python)
    paths = os.pathsep.join(str(ROOT / part) for part in ("bench", "server"))
    process = subprocess.Popen(
        [python, "-m", "searchers.worker", name, str(library), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **ENVIRONMENT, "PYTHONPATH": paths},
    )
    return Worker(name, process)


def visit(worker: Worker, kind: str, active: int, truth: data.Truth) -> float:
    """Send the questions of one measurement to a searcher. Return the median time in milliseconds."""
    most = QUESTIONS if kind in ("hot", "words") else COLD_QUESTIONS
    answer = worker.order(do=kind, documents=data.scope(active, active), most=most, seconds=SECONDS)
    times, rows = answer["ms"], answer["rows"]
    worker.times[kind, active] += times
    if kind != "words":
        worker.recalls[kind, active].append(truth.recall(rows))
    return percentile(times, 0.5)


def kinds(peer: str) -> dict[str, str]:
    """Map the kinds of measurements of our index to those of this peer, without kinds that the peer does not have."""
    return {
        kind: theirs
        for kind, theirs in KINDS.items()
        if (peer in WORDS if kind == "words" else peer != "SQLite FTS5")
    }


def one_round(workers: Sequence[Worker], number: int, truths: dict[int, data.Truth]) -> None:
    ours, *peers = workers
    for active, truth in truths.items():
        for peer in peers:
            for kind, theirs in kinds(peer.name).items():
                pair = [(ours, kind), (peer, theirs)]
                medians = {one.name: visit(one, its, active, truth) for one, its in pair[:: (-1) ** number]}
                peer.ratios[kind, active].append(medians[ours.name] / medians[peer.name])


def measure(names: Sequence[str], rows: int, rounds: int, folder: Path, peer_python: Path) -> list[Worker]:
    library = data.make(rows, QUESTIONS, seed=rows)
    library.save(folder)
    truths = {active: data.Truth.of(library, data.scope(active, active)) for active in ACTIVE}
    workers = [
        start(name, folder, folder / f"searcher-{number}", peer_python) for number, name in enumerate(names)
    ]
    try:
        for worker in workers:
            worker.built = worker.order(do="build")
            note(f"  {worker.name}: built in {worker.built['build s']:.1f} s")
        for number in range(rounds):
            one_round(workers, number, truths)
            note(f"  round {number + 1} of {rounds}")
    finally:
        for worker in workers:
            worker.process.communicate()
    return workers


def markdown(workers: Sequence[Worker], rows: int) -> str:
    """Return a Markdown table with a row per searcher: p50 / p99 in ms, and the ratio ours ÷ searcher."""
    measures = [(kind, active) for kind in KINDS for active in ACTIVE]
    heads = [f"{kind}, {active} of {data.DOCUMENTS}" for kind, active in measures]
    lines = [
        f"| {rows:,} chunks | {' | '.join(heads)} | recall | build s | disk MB |",
        "|---|" + "---:|" * (len(heads) + 3),
    ]
    for worker in workers:
        cells = [_cell(worker, one) for one in measures]
        recall = min((min(some) for some in worker.recalls.values()), default=None)
        built = [f"{worker.built['build s']:.1f}", f"{worker.built['disk MB']:.0f}"]
        lines.append(
            f"| {worker.name} | {' | '.join([*cells, '–' if recall is None else f'{recall:.3f}', *built])} |"
        )
    return "\n".join(lines)


def _cell(worker: Worker, measure: Measure) -> str:
    kind, active = measure
    times = worker.times.get((kind if worker.name == "ours" else KINDS[kind], active), [])
    if not times:
        return "–"
    shown = f"{percentile(times, 0.5):.2f} / {percentile(times, 0.99):.2f}"
    ratio = median(worker.ratios.get(measure, []))
    return shown if ratio is None else f"{shown} (**{ratio:.2f}×**)"


def as_json(worker: Worker) -> dict[str, Any]:
    return {
        "name": worker.name,
        **worker.built,
        **{
            f"{kind}, {active} active": {
                "ms": times,
                "recall": worker.recalls.get((kind, active), []),
            }
            for (kind, active), times in worker.times.items()
        },
        "ours ÷ this": {f"{kind}, {active} active": some for (kind, active), some in worker.ratios.items()},
    }


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", default="5000,50000", help="sizes of the library (default 5000,50000)")
    parser.add_argument("--names", default=";".join(NAMES), help=f"default {';'.join(NAMES)}")
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir()), help="where the data goes"
    )
    parser.add_argument(
        "--out", type=Path, default=ROOT / "bench" / "results.json", help="the figures as JSON"
    )
    chosen = parser.parse_args()
    names = chosen.names.split(";")
    if names[0] != "ours" or not set(names) <= set(NAMES) or chosen.rounds < 1:
        parser.error(f"--names: ours, then any of {', '.join(NAMES[1:])}; --rounds: 1 or more")
    return chosen


def main() -> None:
    chosen = arguments()
    python = python_peer(ROOT, "search.lock")
    results = {}
    for rows in map(int, chosen.rows.split(",")):
        note(f"{rows} chunks")
        with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
            names = [name for name in chosen.names.split(";") if rows <= MOST_ROWS.get(name, rows)]
            workers = measure(names, rows, chosen.rounds, Path(folder), python)
        results[rows] = [as_json(worker) for worker in workers]
        print(markdown(workers, rows), end="\n\n", flush=True)
    chosen.out.write_text(json.dumps(results, indent=1) + "\n")
    print(
        f"p50 / p99 in ms a question, top {data.K}, {chosen.rounds} rounds on {os.cpu_count()} cores; in brackets "
        f"ours ÷ this, the median of the rounds' ratios of medians."
    )


if __name__ == "__main__":
    main()
