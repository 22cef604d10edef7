"""The servers to measure. Each is driven over its own public protocol and configured in its favor."""

from __future__ import annotations

from targets.base import Target, Unavailable
from targets.ours import Before, Ours
from targets.pouch import Pouch
from targets.rxdb import RxdbServer, RxdbServerAccounts, RxdbServerShared

_ALL: tuple[type[Target], ...] = (
    Ours,
    RxdbServer,
    RxdbServerShared,
    RxdbServerAccounts,
    Pouch,
    Before,
)
TARGETS = {target.name: target for target in _ALL}

__all__ = ["TARGETS", "Target", "Unavailable"]
