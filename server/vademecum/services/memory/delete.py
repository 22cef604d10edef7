"""Deletes of more than one row: all documents, a project. Each is a kill and its cascade, in one transaction."""

from __future__ import annotations

from vademecum.model.sync import cascade
from vademecum.model.sync.transaction import Draft
from vademecum.services.sync import write_row


def delete_all_documents(draft: Draft) -> int:
    """Every document and its vectors; facts stay, marked. Returns the number of documents."""
    keys = [key for key in draft.keys("documents") if draft.life(key) == "live"]
    cascade.kill(draft, *keys)
    return len(keys)


def delete_project(draft: Draft, project_id: str, *, with_sessions: bool) -> int:
    """A project and what belongs to it. Its sessions return to the shared pool, or go too."""
    key = write_row.require_live_key(draft, "projects", project_id)
    sessions = [k for k in draft.dependents(key) if k.startswith("sessions/")] if with_sessions else []
    return len(cascade.kill(draft, *sessions, key))
