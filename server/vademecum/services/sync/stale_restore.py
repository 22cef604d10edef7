"""Start a new epoch after the whole data folder, erasure ledger included, was restored from a copy.

The data folder also contains the high-water marks of acknowledged changes, so the server cannot detect the restore from
its disk. A device that synced after the copy was made has a signed checkpoint ahead of the records. Without a new epoch
the device would skip all rows up to that checkpoint and never push its own rows again.
"""

from __future__ import annotations

from functools import partial

import msgspec

from vademecum.errors import VademecumError
from vademecum.model.records.accounts import Account
from vademecum.model.records.store_interface import UserStores
from vademecum.model.sync.transaction import SEQ_JUMP, Transaction
from vademecum.services.runtime.background_jobs import BackgroundJobs
from vademecum.services.runtime.ids import new_epoch


class NotBegun(msgspec.Struct):
    """An account whose records cannot be opened."""

    email: str
    problem: str


class EpochsBegun(msgspec.Struct):
    """The number of accounts with a new epoch, and the accounts that failed."""

    accounts: int
    failed: list[NotBegun]


async def start_new_epoch(
    users: UserStores,
    background_jobs: BackgroundJobs,
    user_id: str,
    rolled_back: tuple[str, int] | None = None,
) -> None:
    """Start a new epoch of an account, and schedule its background jobs.

    `rolled_back`: the epoch and `lwt` of a checkpoint that proved a rollback, or None if a command requested the epoch.
    """
    async with users.open(user_id) as store:
        background_jobs.on_new_epoch(user_id)
        await store.write(partial(begin_epoch, rolled_back=rolled_back))
    users.unsigned_ahead.pop(user_id, None)
    background_jobs.on_new_epoch(user_id)


def begin_epoch(tx: Transaction, rolled_back: tuple[str, int] | None = None) -> None:
    """Begin a new epoch whose `seq` starts above all assigned ones, so that devices sync from zero and push their rows.

    `rolled_back`: the epoch and `lwt` of a checkpoint that proved a rollback. If the checkpoint no longer proves a
    rollback, do nothing.
    """
    epoch, lwt = rolled_back or (tx.meta.epoch, 0)
    if tx.meta.epoch == epoch and (rolled_back is None or tx.meta.was_never_assigned(lwt, tx.seq)):
        tx.begin_epoch(new_epoch(), max(tx.seq, lwt) + SEQ_JUMP)


async def start_new_epochs(
    users: UserStores, background_jobs: BackgroundJobs, accounts: list[Account]
) -> EpochsBegun:
    """Start a new epoch of each account. An account that cannot be opened does not stop the others."""
    failed = []
    for account in accounts:
        try:
            await start_new_epoch(users, background_jobs, account.id)
        except VademecumError as error:
            failed.append(NotBegun(account.email, error.message))
    return EpochsBegun(len(accounts) - len(failed), failed)
