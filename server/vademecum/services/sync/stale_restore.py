"""Begin a new epoch after a whole data folder was put back from a copy, ledger included.

The high-water marks of acknowledged changes lie in that folder, too, so nothing on the disk tells. A device that synced
since holds a signed checkpoint that the records cannot have given out: it would miss all rows up to there, and keep to
itself what it had sent.
"""

from __future__ import annotations

import msgspec

from vademecum.engines.duckdb.account_store import Account
from vademecum.errors import VademecumError
from vademecum.services.runtime.container import Parts


class NotBegun(msgspec.Struct):
    """An account whose records cannot be opened."""

    email: str
    problem: str


class EpochsBegun(msgspec.Struct):
    accounts: int
    failed: list[NotBegun]


async def start_new_epoch(parts: Parts, user_id: str, rolled_back: tuple[str, int] | None = None) -> None:
    """Begin a new epoch of an account, by hand or because of the epoch and `lwt` of a checkpoint (`rolled_back`)."""
    async with parts.users.open(user_id) as store:
        parts.backstage.on_new_epoch(user_id)
        await store.begin_epoch(rolled_back)
    parts.users.unsigned_ahead.pop(user_id, None)
    parts.backstage.on_new_epoch(user_id)


async def start_new_epochs(parts: Parts, accounts: list[Account]) -> EpochsBegun:
    """Begin a new epoch of each account by hand. One that cannot be opened does not stop the others."""
    failed = []
    for account in accounts:
        try:
            await start_new_epoch(parts, account.id)
        except VademecumError as error:
            failed.append(NotBegun(account.email, error.message))
    return EpochsBegun(len(accounts) - len(failed), failed)
