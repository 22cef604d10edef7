"""A user's folder that was put back by hand, from a copy: its `seq` and its epoch are those of then, and no restore said so.

Who synced since asks for what comes after a `seq` that is not reached yet. Such a client would be told that there is
nothing, would miss all rows up to there, and keep to itself what it had sent meanwhile.
"""

from __future__ import annotations

from vademecum.services.parts import Parts


async def heed(parts: Parts, user_id: str, lwt: int, epoch: str) -> None:
    """If a checkpoint is ahead of the records, these are older than it: they take a new epoch, as after a restore.
    Whoever only asks for the epoch's name gives none, and any `lwt`."""
    async with parts.users.open(user_id) as store:
        if epoch != store.epoch or lwt <= store.seq:
            return
        parts.hub.close_user(user_id)  # a stream would go on, and its reader never learn of the new epoch
        await store.begin_anew(epoch)
        parts.hub.close_user(user_id)
    for job in parts.backstage.jobs.values():  # the indexes may be of later rows
        job.ask(user_id)
