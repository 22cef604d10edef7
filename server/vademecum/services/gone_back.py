"""Begin a new epoch after a whole data folder was put back from a copy, ledger and high-water marks included.

Nothing on the disk tells. A device that synced since holds a signed checkpoint that the records cannot have given out: it
would miss all rows up to there, and keep to itself what it had sent.
"""

from __future__ import annotations

from vademecum.services.parts import Parts


async def begin_epoch(parts: Parts, user_id: str, rolled_back: tuple[str, int] | None = None) -> None:
    """Begin a new epoch of an account, by hand or because of the epoch and `lwt` of a checkpoint (`rolled_back`)."""
    async with parts.users.open(user_id) as store:
        parts.backstage.on_new_epoch(user_id)
        await store.begin_epoch(rolled_back)
    parts.backstage.on_new_epoch(user_id)
