"""Measures memory: what keeping a turn costs with all jobs on, search over a long memory, and mem0 beside it.

    python bench/memory.py writes [--rounds N]       jobs on against jobs off
    python bench/memory.py search [--rows N]         against plain LanceDB: the same vectors, the same filter
    python bench/memory.py mem0 --data DIR           add and search, the same statements, embedder and endpoint

Both sides of a ratio are measured one right after the other, in turn. DIR holds `sets.py` (bench/recall_locomo.py says
what it is). Figures stand for this machine and this run; the ratios are what to read.
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
