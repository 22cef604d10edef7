"""Roots: whether the folder of a claim is still there. It may lie on a disk that does not answer, and a transaction that
waited for it would hold up all that its user writes: who needs to know looks first, and writes then.
"""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Lock, Thread
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from vademecum.engines.duckdb.userstore import UserStore
from vademecum.engines.workplace import machine
from vademecum.model.collections import Json
from vademecum.model.draft import Draft
from vademecum.model.secrets import HIDDEN

LOOK_S = 1.0  # for all roots that are looked at together
ELSEWHERE = ""  # a machine: not this one, or not this one alone
T = TypeVar("T")


class RootPlace(NamedTuple):
    root: str
    machine: str


class Unlooked(Exception):
    """Nobody has looked yet whether these are there."""

    def __init__(self, places: Iterable[RootPlace]) -> None:
        super().__init__("look, and try again")
        self.places = list(places)


class View(NamedTuple):
    """What who asks may learn of this machine. `is_here`: is what they say of their machine believed? `gone`: of the places
    that were looked at, whether they are there no more."""

    is_here: bool
    gone: Mapping[RootPlace, bool] = MappingProxyType({})

    def standing(self, claims: Sequence[Json]) -> list[Json]:
        """Those whose roots are there, for all that is known here. Raises Unlooked."""
        if not self.is_here:
            return list(claims)
        places = [RootPlace(claim["root"], claim.get("machine", ELSEWHERE)) for claim in claims]
        unlooked = [place for place in places if place not in self.gone]
        if unlooked:
            raise Unlooked(unlooked)
        return [claim for claim, place in zip(claims, places, strict=True) if not self.gone[place]]


HERE = View(is_here=True)
AFAR = View(is_here=False)


async def write(store: UserStore, view: View, work: Callable[[Draft, View], T]) -> T:
    """As `UserStore.write`, for work to which it may matter whether a root is still there."""
    while True:
        try:
            return await store.write(partial(_given, work, view))
        except Unlooked as unlooked:
            view = view._replace(gone={**view.gone, **await look(unlooked.places)})


def _given(work: Callable[[Draft, View], T], view: View, draft: Draft) -> T:
    return work(draft, view)


class _Looker:
    """One thread that looks at places, and at which it is."""

    def __init__(self, places: Sequence[RootPlace]) -> None:
        self.gone = dict.fromkeys(places, False)
        self._at: RootPlace | None = None
        self._left = False

    def look(self) -> None:
        here = machine(str(Path.home()))
        for place in self.gone:
            with _turn:
                if self._left:
                    return
                self._at = place
            try:
                self.gone[place] = is_gone(place, here)
            finally:
                with _turn:
                    self._at = None
                    _hanging.discard(place)

    def leave(self) -> dict[RootPlace, bool]:
        """What is known by now; nobody waits for the rest."""
        with _turn:
            self._left = True
            if self._at is not None:
                _hanging.add(self._at)
            return dict(self.gone)


_turn = Lock()
_hanging: set[RootPlace] = set()  # at each of them a thread still looks


async def look(places: Sequence[RootPlace]) -> dict[RootPlace, bool]:
    """Whether each is gone. What does not answer in time is not: a claim never moves in doubt. Nor is it asked again
    until it has answered: each time would be another thread that hangs, and another wait."""
    with _turn:
        looker = _Looker([place for place in places if place not in _hanging])
    in_doubt = dict.fromkeys(places, False)
    if not looker.gone:
        return in_doubt
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def each() -> None:
        looker.look()
        with suppress(RuntimeError):  # the server has stopped meanwhile
            loop.call_soon_threadsafe(done.set)

    # Not one of the pool: it may hang for as long as the disk does, and nothing else shall, nor the end of the server.
    Thread(target=each, name="look for roots", daemon=True).start()
    with suppress(TimeoutError):
        await asyncio.wait_for(done.wait(), LOOK_S)
    return in_doubt | looker.leave()


def is_gone(place: RootPlace, here: str) -> bool:
    """Was it on this machine alone, and is it there no more? Not if it cannot be looked at."""
    if place.machine != here or HIDDEN in place.root:
        return False
    try:
        return not stat.S_ISDIR(Path(place.root).expanduser().stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, RuntimeError, ValueError):
        return False
