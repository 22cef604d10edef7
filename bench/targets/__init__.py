"""The servers that are measured. Rule: each is driven through its own public wire, set up in its favour."""

from __future__ import annotations

from targets.base import Target, Unavailable
from targets.kinto import Kinto
from targets.ours import Ours
from targets.pouch import Pouch, PouchMinimum
from targets.rxdb import RxdbServer, RxdbServerAccounts, RxdbServerShared

_ALL: tuple[type[Target], ...] = (
    Ours,
    RxdbServer,
    RxdbServerShared,
    RxdbServerAccounts,
    Pouch,
    PouchMinimum,
    Kinto,
)
TARGETS = {target.name: target for target in _ALL}

__all__ = ["TARGETS", "Target", "Unavailable"]
