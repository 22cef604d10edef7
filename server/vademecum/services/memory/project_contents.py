"""Find the rows that belong to a project, from the row index."""

from __future__ import annotations

from vademecum.model.memory.scope import PROJECTS, SESSIONS
from vademecum.model.records.store_interface import UserStore


def list_project_keys(store: UserStore, project_id: str, *, with_sessions: bool) -> set[str]:
    """Return the keys of the project and its dependents, optionally with its sessions and their dependents."""
    heads = store.row_index
    project = PROJECTS + project_id
    named = heads.dependents.get(project, ())
    found = {project, *(key for key in named if with_sessions and key.startswith(SESSIONS))}
    new = set(found)
    while new:
        living = ((parent, key) for parent in new for key in heads.dependents.get(parent, ()))
        new = {key for parent, key in living if parent in heads.rows[key].parents} - found
        found |= new
    return found
