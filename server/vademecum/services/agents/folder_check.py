"""Check whether the folders of claims still exist on this machine.

A folder may be on a disk that does not respond, and a transaction that waited for it would delay all writes of its
user. So folders are checked before the transaction, in a separate thread and with a time limit.
"""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from vademecum.engines.workspace import compute_machine_id
from vademecum.model.schema.collections import Json
from vademecum.model.secrets import HIDDEN

CHECK_S = 1.0  # the time limit for checking all folders of one transaction
UNKNOWN_MACHINE = ""  # no machine was reported, or several machines reported the folder


class FolderLocation(NamedTuple):
    root: str
    machine: str


class FolderAccess(NamedTuple):
    """The facts about folders of this machine that a caller may see.

    `is_local`: the caller is a command on this machine. `missing`: the checked folders that do not exist.
    """

    is_local: bool
    missing: frozenset[FolderLocation] = frozenset()

    def keep_existing(self, claims: Sequence[Json]) -> list[Json]:
        """Return the claims whose folders may still exist."""
        return [claim for claim in claims if location_of(claim) not in self.missing]


LOCAL = FolderAccess(is_local=True)
REMOTE = FolderAccess(is_local=False)
# Not a thread of asyncio, because a check that hangs must not delay other work.
_executor = ThreadPoolExecutor(1, "folder-check")
_running_checks: set[Future[frozenset[FolderLocation]]] = set()


def location_of(claim: Json) -> FolderLocation:
    return FolderLocation(claim["root"], claim.get("machine", UNKNOWN_MACHINE))


async def find_missing(locations: Collection[FolderLocation]) -> frozenset[FolderLocation]:
    """Return the folders that do not exist. After a timeout, return none of them, so that no claim moves by mistake."""
    check = _executor.submit(_find_missing, locations)
    _running_checks.add(check)
    check.add_done_callback(_running_checks.discard)
    try:
        return await asyncio.wait_for(asyncio.wrap_future(check), CHECK_S)
    except TimeoutError:
        return frozenset()


def is_checking() -> bool:
    """Return whether a check is still running."""
    return bool(_running_checks)


def _find_missing(locations: Collection[FolderLocation]) -> frozenset[FolderLocation]:
    this_machine = compute_machine_id(str(Path.home()))
    return frozenset(location for location in locations if is_missing(location, this_machine))


def is_missing(location: FolderLocation, this_machine: str) -> bool:
    """Return whether only this machine has reported the folder and the folder is missing. If unsure, return False."""
    if location.machine != this_machine or HIDDEN in location.root:
        return False
    try:
        return not stat.S_ISDIR(Path(location.root).expanduser().stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, RuntimeError, ValueError):
        return False
