"""Measure the memory of conversations: the cost of storing a turn, search in a long memory, and a comparison with mem0.

    python bench/memory.py writes [--rounds N]       background jobs on versus off
    python bench/memory.py search [--rows N]         versus plain LanceDB: the same vectors, the same filter
    python bench/memory.py mem0 --data DIR           versus mem0: the same statements, embedder and endpoint

The two values of a ratio are measured directly after each other, in alternating order. DIR contains `sets.py`, which
bench/recall_locomo.py describes. Absolute figures hold for this machine and run only; compare the ratios.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("writes", "search", "mem0"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=40, help="of writing at each pace, a visit")
    parser.add_argument("--rows", type=int, default=50_000, help="turns that are searched")
    parser.add_argument("--data", type=Path, help="where the statements are")
    chosen = parser.parse_args()
    if chosen.what == "mem0" and chosen.data is None:
        parser.error("mem0 needs --data")
    return chosen


def main() -> None:
    chosen = arguments()
    if chosen.what == "writes":
        from memories import writes

        print(writes.table(*writes.measure(chosen.rounds, chosen.seconds)))
    elif chosen.what == "search":
        from memories import search

        print(search.table(search.measure(chosen.rows, chosen.rounds)))
    else:
        from memories import beside_mem0

        print(beside_mem0.table(beside_mem0.measure(chosen.data)))
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
