"""Which changes of a commit cause which jobs. Applied inside the commit, so a job is there when its row is, whichever way
the row came: a turn that is over is to be extracted, once for each text; a row that dies takes its job along. What a
model has answered and is not stored yet goes when a person deletes anything of that kind: it may say the same.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from vademecum.model import jobs
from vademecum.model.draft import WAITING, Change, Draft

OVER = frozenset({"done", "stopped"})
EXTRACTED = ("memories/", "entities/", "relationships/", "facts/")


class _Turn(msgspec.Struct, rename="camel"):
    status: str = ""
    user_message: str = ""
    ai_response: str = ""


_turn = msgspec.json.Decoder(_Turn)


def follow(draft: Draft, *, extracts: bool) -> None:
    """Give the draft the jobs that its changes cause. `extracts`: whether there is a model to extract with; without one
    no jobs pile up, and those about a text that is no more go."""
    for key in _dead(draft.changes.values()):
        draft.jobs[jobs.id_of(key)] = None
    made = [jobs.new(key, seq, text, draft.now) for key, seq, text in _over(draft)]
    # A row that was not here before has no job to look for: most turns come so, and their writer waits.
    known = draft.known_jobs([job.id for job in made if draft.changes[job.subject].before is not None])
    for job in made:
        earlier = known.get(job.id)
        if extracts and (earlier is None or earlier.text != job.text):
            draft.jobs[job.id] = job
        elif earlier is not None and earlier.text != job.text:
            draft.jobs[job.id] = None


def may_cause(changes: Iterable[Change]) -> bool:
    """Is somebody to look whether there is something to do?"""
    return any(_turn_of(change) is not None for change in changes)


def unsays(changes: Iterable[Change]) -> bool:
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


def _over(draft: Draft) -> list[tuple[str, int, str]]:
    """(key, seq, digest of its text) of the turns that are over and say something."""
    found: list[tuple[str, int, str]] = []
    for change in draft.changes.values():
        turn = _turn_of(change)
        if (
            change.head is not None
            and turn is not None
            and (turn.user_message.strip() or turn.ai_response.strip())
        ):
            found.append((change.key, change.head.seq, jobs.digest(turn.user_message, turn.ai_response)))
    return found


def _turn_of(change: Change) -> _Turn | None:
    """The turn that a change has brought, if it is over."""
    head = change.head
    if not change.key.startswith("episodes/") or head is None or head.deleted or head.seq == WAITING:
        return None
    turn = _turn.decode(change.body)
    return turn if turn.status in OVER else None
