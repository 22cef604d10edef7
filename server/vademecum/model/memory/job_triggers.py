"""Which rows cause which jobs. A turn that is over is to be extracted, once for each text, whichever way it came.

Its commit writes no job, for its writer waits: like every reader of the one sequence, extraction knows how far it has
looked (`Transaction.extracted_up_to_seq`), and a turn above that is a job that waits, from its own commit on and whatever dies after.
`take_up` writes them down. What a commit does write is what goes: a row that dies, or a turn whose text is another,
takes its job along; and that one was imported, which comes with what was made of it: its text counts as worked on. What a
model has answered and is not stored yet goes when a person deletes anything of that kind: it may say the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from vademecum.model.chat.answers import enters_prompts
from vademecum.model.memory import jobs
from vademecum.model.sync.transaction import WAITING, Change, Transaction

OVER = frozenset({"done", "stopped"})
TURNS = "episodes"
EXTRACTED = ("memories/", "entities/", "relationships/", "facts/")


class _Turn(msgspec.Struct, rename="camel"):
    status: str = ""
    user_message: str = ""
    ai_response: str = ""
    model: str = ""

    @property
    def text(self) -> str:
        """A digest of what it says."""
        return jobs.digest(self.user_message, self.ai_response)


_turn = msgspec.json.Decoder(_Turn)


def cancel_stale_jobs(tx: Transaction) -> None:
    """Take out the jobs that the transaction's changes leave without a subject."""
    for key in _dead(tx.changes.values()):
        tx.jobs[jobs.id_of(key)] = None
    # A row that was not here before has no job to look for: most turns come so.
    edited = {jobs.id_of(c.key): turn for c in tx.changes.values() if c.before and (turn := _over(c))}
    for job_id, job in tx.find_jobs(edited).items():
        if job.text != edited[job_id].text:
            tx.jobs[job_id] = None


def mark_imported_done(tx: Transaction, imported: Iterable[str]) -> None:
    """Of these rows, new here, those that would cause a job have had theirs elsewhere. One that waits for its session, too:
    it is looked at when it comes in."""
    for key in imported:
        head = tx.head(key) if key.startswith(f"{TURNS}/") else None
        if head is None or head.deleted or (turn := _said(tx.body(key))) is None:
            continue
        job = jobs.create_done(key, head.seq, turn.text)
        tx.jobs[job.id] = job


def take_up(tx: Transaction, turns: Sequence[tuple[int, str]]) -> None:
    """Write the jobs that these rows cause, (seq, key) in order: the next that nobody has looked at."""
    if tx.extracted_up_to_seq is None or not turns:
        return
    new = [(seq, key) for seq, key in turns if seq > tx.extracted_up_to_seq and tx.row_state(key) == "live"]
    tx.prefetch(key for _, key in new)
    made = [jobs.create(key, seq, turn.text, tx.now) for seq, key in new if (turn := _said(tx.body(key)))]
    known = tx.find_jobs([job.id for job in made])
    tx.jobs.update((job.id, job) for job in made if job.id not in known or known[job.id].text != job.text)
    tx.extracted_up_to_seq = max(tx.extracted_up_to_seq, turns[-1][0])


def may_cause_jobs(changes: Iterable[Change]) -> bool:
    """Is somebody to look whether there is something to do?"""
    return any(_over(change) is not None for change in changes)


def invalidates_answers(changes: Iterable[Change]) -> bool:
    """Has something died that a model's answer may be about?"""
    return any(
        change.key.startswith(EXTRACTED) and (change.head is None or change.head.deleted)
        for change in changes
    )


def _dead(changes: Iterable[Change]) -> list[str]:
    return [
        c.key
        for c in changes
        if (c.head is None or c.head.deleted) and c.key.partition("/")[0] in jobs.KIND_OF
    ]


def _over(change: Change) -> _Turn | None:
    """The turn that a change has brought, if it is over and says something."""
    head = change.head
    if not change.key.startswith(f"{TURNS}/") or head is None or head.deleted or head.seq == WAITING:
        return None
    return _said(change.body)


def _said(body: bytes) -> _Turn | None:
    turn = _turn.decode(body)
    says = turn.user_message.strip() or turn.ai_response.strip()
    is_told = enters_prompts(turn.model, turn.ai_response)
    return turn if turn.status in OVER and says and is_told else None
