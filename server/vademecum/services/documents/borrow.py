"""Let sessions borrow and return documents. Documents belong to users and not to sessions."""

from __future__ import annotations

import msgspec

from vademecum.errors import Conflict, no_such
from vademecum.model.schema.collections import Json
from vademecum.model.sync.transaction import Transaction
from vademecum.services.documents.documents import check_session_id
from vademecum.services.sync.row_operations import require_live_row


def check_session(tx: Transaction, session_id: str) -> None:
    """Raise NotFound for a deleted session. An unknown session passes, because its row may not have arrived yet."""
    check_session_id(session_id)
    if tx.row_state(f"sessions/{session_id}") == "deleted":
        raise no_such("sessions")


def borrow(tx: Transaction, document_id: str, session_id: str) -> Json:
    """Let the session search the document, and return its row. Repeating the call changes nothing.

    Borrowing does not count as access to the document, but an answer that cites it does. Raises Conflict if the maximum
    number of sessions have borrowed the document.
    """
    row = require_live_row(tx, "documents", document_id)
    check_session(tx, session_id)
    if session_id in row["activeSessions"]:
        return row
    borrowed = {
        **row,
        "activeSessions": [*row["activeSessions"], session_id],
        "updatedAt": max(tx.now, row["updatedAt"]),
    }
    try:
        tx.collections["documents"].validate(borrowed)
    except msgspec.ValidationError as error:
        raise Conflict(
            "The maximum number of sessions borrow this document. Nothing was changed. Return it from a session that "
            "no longer needs it, and try again."
        ) from error
    return _stored(tx, borrowed)


def return_document(tx: Transaction, document_id: str, session_id: str) -> Json:
    """Remove the document from the session, and return its row. The document itself is kept."""
    row = require_live_row(tx, "documents", document_id)
    if session_id not in row["activeSessions"]:
        return row
    other_sessions = [s for s in row["activeSessions"] if s != session_id]
    return _stored(tx, {**row, "activeSessions": other_sessions, "updatedAt": max(tx.now, row["updatedAt"])})


def _stored(tx: Transaction, row: Json) -> Json:
    tx.put(f"documents/{row['id']}", row, msgspec.json.encode(row))
    return row
