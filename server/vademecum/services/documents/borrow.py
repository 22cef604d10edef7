"""Borrow and return: documents belong to users, sessions borrow them."""

from __future__ import annotations

import msgspec

from vademecum.errors import Conflict, no_such
from vademecum.model.schema.collections import Json
from vademecum.model.sync.transaction import Draft
from vademecum.services.documents.documents import check_session_id
from vademecum.services.sync.write_row import require_live_row


def check_session(draft: Draft, session_id: str) -> None:
    """A session may be unknown here (its row may still be on its way), but not a deleted one."""
    check_session_id(session_id)
    if draft.life(f"sessions/{session_id}") == "dead":
        raise no_such("sessions")


def borrow(draft: Draft, document_id: str, session_id: str) -> Json:
    """Make the document visible in the session; a repeat changes nothing. Raise Conflict if it has no room for more.

    Borrowing is no use: only an answer that cites the document counts as one."""
    row = require_live_row(draft, "documents", document_id)
    check_session(draft, session_id)
    if session_id in row["activeSessions"]:
        return row
    borrowed = {
        **row,
        "activeSessions": [*row["activeSessions"], session_id],
        "updatedAt": max(draft.now, row["updatedAt"]),
    }
    try:
        draft.collections["documents"].fit(borrowed)
    except msgspec.ValidationError as error:
        raise Conflict(
            "This document is borrowed by as many sessions as it can be. Nothing was changed: return it from a session "
            "that no longer needs it, and try again."
        ) from error
    return _stored(draft, borrowed)


def return_document(draft: Draft, document_id: str, session_id: str) -> Json:
    """Take the document out of the session; it stays in the pool."""
    row = require_live_row(draft, "documents", document_id)
    if session_id not in row["activeSessions"]:
        return row
    kept = [s for s in row["activeSessions"] if s != session_id]
    return _stored(draft, {**row, "activeSessions": kept, "updatedAt": max(draft.now, row["updatedAt"])})


def _stored(draft: Draft, row: Json) -> Json:
    draft.put(f"documents/{row['id']}", row, msgspec.json.encode(row))
    return row
