"""Decide which changed rows start or cancel which jobs.

A finished turn starts one extraction for each version of its text. To keep commits short, the commit of a turn does not
write the job. A turn whose `seq` is above `JobChanges.extracted_up_to_seq` counts as a pending job from its own commit
on, even after a crash, and `create_turn_jobs` writes the job later. Each commit makes only these changes to jobs:
- It deletes the jobs of deleted rows and of turns with a new text.
- It stores a completed job for each imported turn, because the import contains the rows extracted from the turn.
- If it deletes extracted rows, it discards the pending answers of all jobs (`jobs.with_answer`), because they may
  repeat the deleted rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from vademecum.model.chat.answers import enters_prompts
from vademecum.model.memory import jobs
from vademecum.model.sync.transaction import WAITING, Change, Transaction

FINISHED = frozenset({"done", "stopped"})
TURNS = "episodes"
EXTRACTED = ("memories/", "entities/", "relationships/", "facts/")


class _Turn(msgspec.Struct, rename="camel"):
    status: str = ""
    user_message: str = ""
    ai_response: str = ""
    model: str = ""

    @property
    def text(self) -> str:
        """Return a digest of the question and the answer."""
        return jobs.digest(self.user_message, self.ai_response)


_turn = msgspec.json.Decoder(_Turn)


def cancel_stale_jobs(tx: Transaction) -> None:
    """Delete the jobs of deleted rows and of turns whose text changed."""
    for key in _deleted_subjects(tx.changes.values()):
        tx.jobs.delete(jobs.id_of(key))
    # Skip new turns, which have no job yet. Most turns are new.
    edited = {
        jobs.id_of(c.key): turn for c in tx.changes.values() if c.before and (turn := _finished_turn(c))
    }
    for job_id, job in tx.jobs.find(edited).items():
        if job.text != edited[job_id].text:
            tx.jobs.delete(job_id)


def discard_unstored_answers(tx: Transaction) -> None:
    """Discard the pending answers of all jobs if extracted rows were deleted. The jobs then ask the model again."""
    if invalidates_answers(tx.changes.values()):
        tx.jobs.put(*(jobs.with_answer(job, "") for job in tx.jobs.open() if job.found))


def update_jobs(tx: Transaction) -> None:
    """Change the jobs as the changed rows require. The engine calls this before each commit."""
    cancel_stale_jobs(tx)
    discard_unstored_answers(tx)


def mark_imported_done(tx: Transaction, imported: Iterable[str]) -> None:
    """Store a completed job for each finished turn among the `imported` keys, even if the turn waits for its session.

    Otherwise the arrival of the session would start the extraction of a waiting turn.
    """
    for key in imported:
        head = tx.head(key) if key.startswith(f"{TURNS}/") else None
        if head is None or head.deleted or (turn := _parse_finished_turn(tx.body(key))) is None:
            continue
        tx.jobs.put(jobs.create_done(key, head.seq, turn.text))


def create_turn_jobs(tx: Transaction, turns: Sequence[tuple[int, str]]) -> None:
    """Write the jobs of turns after `extracted_up_to_seq`. `turns`: (seq, key) in ascending order."""
    if tx.jobs.extracted_up_to_seq is None or not turns:
        return
    new = [
        (seq, key) for seq, key in turns if seq > tx.jobs.extracted_up_to_seq and tx.row_state(key) == "live"
    ]
    tx.prefetch(key for _, key in new)
    created = [
        jobs.create(key, seq, turn.text, tx.now)
        for seq, key in new
        if (turn := _parse_finished_turn(tx.body(key)))
    ]
    known = tx.jobs.find([job.id for job in created])
    tx.jobs.put(*(job for job in created if job.id not in known or known[job.id].text != job.text))
    tx.jobs.extracted_up_to_seq = max(tx.jobs.extracted_up_to_seq, turns[-1][0])


def may_cause_jobs(changes: Iterable[Change]) -> bool:
    """Return whether a change may start a job, so that the worker must check."""
    return any(_finished_turn(change) is not None for change in changes)


def invalidates_answers(changes: Iterable[Change]) -> bool:
    """Return whether a change deletes extracted rows, which a pending answer may repeat."""
    return any(change.removes_row and change.key.startswith(EXTRACTED) for change in changes)


def _deleted_subjects(changes: Iterable[Change]) -> list[str]:
    return [c.key for c in changes if c.removes_row and c.key.partition("/")[0] in jobs.KIND_OF]


def _finished_turn(change: Change) -> _Turn | None:
    """Return the turn that a change stores, if it is finished and has text."""
    head = change.head
    if not change.key.startswith(f"{TURNS}/") or head is None or head.deleted or head.seq == WAITING:
        return None
    return _parse_finished_turn(change.body)


def _parse_finished_turn(body: bytes) -> _Turn | None:
    turn = _turn.decode(body)
    has_text = turn.user_message.strip() or turn.ai_response.strip()
    is_shown = enters_prompts(turn.model, turn.ai_response)
    return turn if turn.status in FINISHED and has_text and is_shown else None
