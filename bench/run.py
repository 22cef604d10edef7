"""Measure the sync of our server and of its peers in one run, and print ratios.

Every server is started empty, driven by the same client over its own protocol, and stopped. Our server is measured
directly before or after each peer, and ratios are computed within such a pair only, so that other load on the machine
affects both. Absolute figures hold for this machine and run only; compare the ratios. A missed goal does not change the
exit status, which is 1 only after failures (an error, or a lost or changed row).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import report
from client import Broken
from measure import on_memory_disk
from targets import TARGETS, Target, Unavailable
from visit import QUICK, Plan, Visit, run_visit

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = """\
examples:
  bench/run.py                               all peers, 5 rounds
  bench/run.py --quick --rounds 1            check that everything runs (the figures are not reliable)
  bench/run.py --targets ours,rxdb-server    one peer
  bench/run.py --targets rxdb-server,express-pouchdb   two peers without Vademecum
  VADEMECUM_BEFORE_COMMAND=../old/.venv/bin/vademecum bench/run.py --targets ours,before
                                             an earlier version, installed in another folder
  bench/folders.py --help                    compare 10,000 user folders with 300, and measure memory

rxdb-server is measured in three configurations: a collection for each user without accounts (the fastest one; RxDB
allows 16 collections), one collection for all users without accounts (as its documentation shows), and one
collection with accounts (as a server for several people needs). Goals are judged against each configuration, and
against express-pouchdb with its default options.

The first run installs the peers into bench/.peers/ with npm.
VADEMECUM_COMMAND replaces .venv/bin/vademecum.
"""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5, help="visits to each peer (default 5)")
    parser.add_argument(
        "--targets",
        default=",".join(TARGETS),
        help=f"servers; the first is compared with each of the following (default {','.join(TARGETS)})",
    )
    parser.add_argument(
        "--users", type=int, default=8, help="users who push and pull concurrently (default 8)"
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    parser.add_argument(
        "--out", type=Path, default=ROOT / "bench" / "results.json", help="the figures as JSON"
    )
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path(tempfile.gettempdir()),
        help="folder for the data of the servers, on a real disk",
    )
    parser.add_argument("--install", action="store_true", help="only install the peers")
    chosen = parser.parse_args()
    unknown = set(chosen.targets.split(",")) - set(TARGETS)
    if unknown:
        parser.error(f"unknown target {', '.join(sorted(unknown))}; there are {', '.join(TARGETS)}")
    if chosen.rounds < 1 or not 1 <= chosen.users <= 12:
        parser.error("--rounds must be 1 or more, --users 1 to 12 (rxdb opens at most 16 collections)")
    return chosen


def available(names: list[str]) -> list[Target]:
    """Return the targets that can run on this machine. Print to stderr why a target cannot."""
    found = []
    for name in names:
        target = TARGETS[name](ROOT)
        try:
            target.install()
            found.append(target)
        except Unavailable as why:
            print(f"left out: {name}: {why}", file=sys.stderr)
    return found


def note(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def visited(book: report.Book, target: Target, plan: Plan, folder: Path) -> Visit | None:
    start = time.monotonic()
    try:
        visit = run_visit(target, plan, folder)
    except (Unavailable, Broken, OSError) as why:
        book.failures[target.name][f"visit: {why}"] += 1
        note(f"  {target.name}: {why}")
        return None
    book.add(target.name, visit)
    failed = sum(sum(result.failures.values()) for result in visit.values())
    note(f"  {target.name}: {time.monotonic() - start:.0f} s" + (f", {failed} FAILURES" if failed else ""))
    return visit


def measure(targets: list[Target], plan: Plan, rounds: int, folder: Path) -> report.Book:
    """Visit our server and each peer in pairs, for several rounds. In every second round, the peer is visited first."""
    first, *peers = targets
    book = report.Book(first.name, {target.name: target.durability for target in targets})
    for number in range(rounds):
        note(f"round {number + 1} of {rounds}")
        if not peers:
            visited(book, first, plan, folder)
        for peer in peers:
            pair = (first, peer) if number % 2 == 0 else (peer, first)
            visits = {target.name: visited(book, target, plan, folder) for target in pair}
            ours, theirs = visits[first.name], visits[peer.name]
            if ours is not None and theirs is not None:
                book.add_pair(ours, peer.name, theirs)
    return book


def main() -> int:
    chosen = arguments()
    if on_memory_disk(chosen.folder):
        print(
            f"{chosen.folder} is in memory, where fsync costs nothing. Choose a disk with --folder.",
            file=sys.stderr,
        )
        return 2
    targets = available(chosen.targets.split(","))
    if chosen.install or not targets:
        return 0 if targets else 1
    plan = replace(QUICK if chosen.quick else Plan(), users=chosen.users)
    book = measure(targets, plan, chosen.rounds, chosen.folder)
    chosen.out.write_text(json.dumps(report.as_json(book, plan, chosen.rounds), indent=1) + "\n")
    print(report.markdown(book))
    print(
        f"\nMedians of {chosen.rounds} rounds on {os.cpu_count()} cores that the client shares; rows of 1 KB in "
        f"batches of {plan.size}, vector blocks of 45 KB in batches of {plan.vector_size}; docs/CPU-s: rows per "
        f"second of the server's own processor time."
    )
    for line in (*report.verdicts(book, plan.users), *report.failures(book)):
        print(line)
    return 1 if book.failed else 0


if __name__ == "__main__":
    sys.exit(main())
