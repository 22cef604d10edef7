"""Delete all documents, or a project, with their dependents in one transaction."""

from __future__ import annotations

from vademecum.model.sync import cascade
from vademecum.model.sync.transaction import Transaction
from vademecum.services.sync import write_row


def delete_all_documents(tx: Transaction) -> int:
    """Delete every document with its blocks and return their number. Facts stay, with `sourceRemoved` set."""
    keys = [key for key in tx.keys("documents") if tx.row_state(key) == "live"]
    cascade.delete_with_dependents(tx, *keys)
    return len(keys)


def delete_project(tx: Transaction, project_id: str, *, with_sessions: bool) -> int:
    """Delete a project with its dependents. Its sessions return to the pool, or are deleted too."""
    key = write_row.require_live_key(tx, "projects", project_id)
    sessions = [k for k in tx.dependents(key) if k.startswith("sessions/")] if with_sessions else []
    return len(cascade.delete_with_dependents(tx, *sessions, key))
