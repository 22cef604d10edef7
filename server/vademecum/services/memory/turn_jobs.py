"""Create extraction jobs for new turns. `model/memory/job_triggers` decides which turns need a job."""

from __future__ import annotations

from functools import partial

import structlog

from vademecum.model.memory import job_triggers
from vademecum.model.records.store_interface import Entry, UserStore
from vademecum.model.sync.transaction import Transaction

BATCH_TURNS = 256
_log = structlog.get_logger("vademecum.work")


async def set_extraction(store: UserStore, *, extracts: bool) -> None:
    """Set whether new turns cause extraction jobs. Existing jobs do not change.

    An error of the write is only logged, because it must not make the user's rows inaccessible.
    """
    if extracts == (store.jobs.extracted_up_to_seq is not None):
        return

    def set_start(tx: Transaction) -> None:
        tx.jobs.extracted_up_to_seq = tx.seq if extracts else None

    try:
        await create_jobs_for_new_turns(store)
        await store.write(set_start)
    except Exception as error:
        _log.error("the start of extraction could not be stored", exc_info=error)
        if extracts:  # set the start in memory; it is stored with the jobs of the next turns
            store.jobs.extracted_up_to_seq = store.seq


async def create_jobs_for_new_turns(store: UserStore) -> None:
    """Create the jobs of all turns that arrived since the last call."""
    while turns := list_new_turns(store):
        await store.write(partial(job_triggers.create_turn_jobs, turns=turns))


def list_new_turns(store: UserStore) -> list[Entry]:
    """Return the next turns that have no jobs yet, in the order of `seq`, or [] while extraction is off for the account."""
    start = store.jobs.extracted_up_to_seq
    return [] if start is None else store.entries_after(job_triggers.TURNS, start, BATCH_TURNS)
