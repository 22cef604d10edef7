"""Delete all rows of a collection, or a project, with their dependents in one transaction."""

from __future__ import annotations

from vademecum.model.sync import cascade
from vademecum.model.sync.transaction import Transaction
from vademecum.services.sync import row_operations


def delete_all(tx: Transaction, collection: str) -> int:
    """Delete all rows of a collection, waiting rows included, with their dependents.

    Return the number of rows of the collection.
    """
    keys = list(tx.keys(collection))
    cascade.delete_with_dependents(tx, *keys)
    return len(keys)


def delete_project(tx: Transaction, project_id: str, *, with_sessions: bool) -> int:
    """Delete a project with its dependents. Its sessions return to the pool or, `with_sessions`, are deleted, too."""
    key = row_operations.require_live_key(tx, "projects", project_id)
    sessions = [k for k in tx.dependents(key) if k.startswith("sessions/")] if with_sessions else []
    return len(cascade.delete_with_dependents(tx, *sessions, key))
