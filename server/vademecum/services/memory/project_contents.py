"""Find the rows that belong to a project, from the row index."""

from __future__ import annotations

from vademecum.model.memory.scope import PROJECTS, SESSIONS
from vademecum.model.records.store_interface import UserStore


def list_project_keys(store: UserStore, project_id: str, *, with_sessions: bool) -> set[str]:
    """Return the keys of the project and its dependents, optionally with its sessions and their dependents."""
    row_index = store.row_index
    project = PROJECTS + project_id
    dependents = row_index.dependents.get(project, ())
    keys = {project, *(key for key in dependents if with_sessions and key.startswith(SESSIONS))}
    new = set(keys)
    while new:
        children_of_new = ((parent, key) for parent in new for key in row_index.dependents.get(parent, ()))
        new = {key for parent, key in children_of_new if parent in row_index.rows[key].parents} - keys
        keys |= new
    return keys
