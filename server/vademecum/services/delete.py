"""Delete: a document, all documents, a session, a project. Each is a kill and its cascade, in one transaction."""

from __future__ import annotations

from vademecum.errors import NotFound
from vademecum.model import cascade
from vademecum.model.draft import Draft


def delete_one(draft: Draft, collection: str, row_id: str, noun: str) -> int:
    """Kill one row. Returns how many rows went with it, itself included. Raises NotFound."""
    key = f"{collection}/{row_id}"
    if draft.life(key) != "live":
        raise NotFound(f"There is no such {noun}.")
    return len(cascade.kill(draft, key))


def delete_all_documents(draft: Draft) -> int:
    """Every document and its vectors; facts stay, marked. Returns the number of documents."""
    keys = [key for key in draft.keys("documents") if draft.life(key) == "live"]
    cascade.kill(draft, *keys)
    return len(keys)


def delete_project(draft: Draft, project_id: str, *, with_sessions: bool) -> int:
    """A project and what belongs to it. Its sessions return to the shared pool, or go too."""
    key = f"projects/{project_id}"
    if draft.life(key) != "live":
        raise NotFound("There is no such project.")
    sessions = [k for k in draft.dependents(key) if k.startswith("sessions/")] if with_sessions else []
    return len(cascade.kill(draft, *sessions, key))
