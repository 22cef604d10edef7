"""Run one searcher in one process. Read commands as lines of JSON, and print a line of JSON for each.

Commands: {"do": "build"} and {"do": "hot" | "cold" | "evicted" | "words", "documents": [...], "most": n, "seconds": s}.
The response to the second form has, for each question, the time in ms and the rows found.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from searchers.base import Searcher
from searchers.data import K, Library

WARM_UP = 3
QUESTIONS_MIN = 3  # number of questions after which the time limit applies


def searcher(name: str, folder: Path, library: Library) -> Searcher:
    ours = name in ("numpy", "ours", "LanceDB")
    module = importlib.import_module("searchers.here" if ours else "searchers.peers")
    classes = {one.name: one for one in vars(module).values() if getattr(one, "name", None) == name}
    found: Searcher = classes[name](folder, library)
    return found


def build(one: Searcher) -> dict[str, Any]:
    start = time.perf_counter()
    one.build()
    seconds = time.perf_counter() - start
    size = sum(path.stat().st_size for path in one.folder.rglob("*") if path.is_file())
    return {"build s": seconds, "disk MB": size / 1e6}


def visit(one: Searcher, order: dict[str, Any]) -> dict[str, Any]:
    """Open the searcher, warm it up, and measure the questions of one command.

    evicted: the library is evicted from memory before each question. cold: the searcher is reopened for each question,
    and the time includes opening. All files are in the page cache.
    """
    kind, documents = order["do"], order["documents"]
    ask: Callable[..., list[int]] = one.words if kind == "words" else one.near
    questions: Any = one.library.asked if kind == "words" else one.library.questions
    one.open()
    for question in questions[:WARM_UP]:
        ask(question, documents, K)
    if kind == "cold":
        ask = _opening(one)
    before = {"evicted": one.evict, "cold": lambda: _closed(one)}.get(kind, lambda: True)
    asks = [partial(ask, question, documents, K) for question in questions[: order["most"]]]
    times, found = _times(before, asks, order["seconds"])
    one.close()
    return {"ms": times, "rows": found}


def _closed(one: Searcher) -> bool:
    one.close()
    gc.collect()
    return True


def _opening(one: Searcher) -> Callable[..., list[int]]:
    def ask(vector: Any, documents: Sequence[int], k: int) -> list[int]:
        one.open()
        return one.near(vector, documents, k)

    return ask


def _times(
    before: Callable[[], bool], asks: Sequence[Callable[[], list[int]]], seconds: float
) -> tuple[list[float], list[list[int]]]:
    times: list[float] = []
    found: list[list[int]] = []
    until = time.perf_counter() + seconds
    for ask in asks:
        if len(times) >= QUESTIONS_MIN and time.perf_counter() > until:
            break
        before()
        start = time.perf_counter()
        found.append(ask())
        times.append((time.perf_counter() - start) * 1000)
    return times, found


def main() -> None:
    name, library, folder = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    # Send what libraries print to stderr, and the responses to a duplicate of the original stdout.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    folder.mkdir(parents=True)
    one = searcher(name, folder, Library.load(library))
    for line in sys.stdin:
        order = json.loads(line)
        answer = build(one) if order["do"] == "build" else visit(one, order)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
