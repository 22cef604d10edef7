"""Check whether the folders of claims still exist on this machine.

A folder may lie on a disk that does not answer, and a transaction that waited for it would delay all writes of its user.
So folders are checked before the transaction, in a thread of their own, and for a bounded time.
"""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from vademecum.engines.workspace import machine
from vademecum.model.schema.collections import Json
from vademecum.model.secrets import HIDDEN

CHECK_S = 1.0  # for all folders of one transaction
ELSEWHERE = ""  # a machine: not this one, or not this one alone


class RootPlace(NamedTuple):
    root: str
    machine: str


class View(NamedTuple):
    """What the caller may learn about this machine.

    `is_here`: the caller is a command of this machine. `gone`: folders that were checked and do not exist.
    """

    is_here: bool
    gone: frozenset[RootPlace] = frozenset()

    def standing(self, claims: Sequence[Json]) -> list[Json]:
        """Return the claims whose folders may still exist."""
        return [claim for claim in claims if place_of(claim) not in self.gone]


HERE = View(is_here=True)
AFAR = View(is_here=False)
_checker = ThreadPoolExecutor(
    1, "folder-check"
)  # not asyncio's: a check that hangs must not delay other work
_checks: set[Future[frozenset[RootPlace]]] = set()


def place_of(claim: Json) -> RootPlace:
    return RootPlace(claim["root"], claim.get("machine", ELSEWHERE))


async def find_gone(places: Collection[RootPlace]) -> frozenset[RootPlace]:
    """Return the folders that do not exist. Without an answer in time, return none: a claim never moves in doubt."""
    check = _checker.submit(_gone_of, places)
    _checks.add(check)
    check.add_done_callback(_checks.discard)
    try:
        return await asyncio.wait_for(asyncio.wrap_future(check), CHECK_S)
    except TimeoutError:
        return frozenset()


def is_checking() -> bool:
    """Return whether a check has not returned yet."""
    return bool(_checks)


def _gone_of(places: Collection[RootPlace]) -> frozenset[RootPlace]:
    here = machine(str(Path.home()))
    return frozenset(place for place in places if is_gone(place, here))


def is_gone(place: RootPlace, here: str) -> bool:
    """Return whether only this machine (`here`) has seen the folder and it does not exist; False in doubt."""
    if place.machine != here or HIDDEN in place.root:
        return False
    try:
        return not stat.S_ISDIR(Path(place.root).expanduser().stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, RuntimeError, ValueError):
        return False
