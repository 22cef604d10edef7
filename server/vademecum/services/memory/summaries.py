"""Read and write summaries of sessions, and overviews of projects. An overview is a summary without a session id."""

from __future__ import annotations

from vademecum.errors import BadRequest
from vademecum.model.memory.scope import InProject, MemoryPartition, MemoryScope
from vademecum.model.records.store_interface import UserStore
from vademecum.model.schema.collections import Json
from vademecum.model.sync.quotas import Limits
from vademecum.model.sync.transaction import Transaction
from vademecum.services.memory.scope import find_session_home, locate_row
from vademecum.services.sync import row_operations
from vademecum.services.sync.batches import list_live_children
from vademecum.services.sync.pagination import Page, PageRequest, list_newest


def create(tx: Transaction, fields: Json, limits: Limits) -> Json:
    """Store a summary. Raises NotFound for a missing session or project, BadRequest for a session of another project."""
    _check_content(fields)
    session_id, project_id = fields.get("sessionId"), fields.get("projectId")
    if session_id is None and project_id is None:
        raise BadRequest("A summary belongs to a session or a project. Nothing was stored. Name one of them.")
    if session_id is not None and project_id is not None:
        _check_within(tx, session_id, InProject(project_id))
    return row_operations.add(tx, "summaries", fields, limits)


def _check_within(tx: Transaction, session_id: str, home: InProject) -> None:
    if find_session_home(tx.head, session_id) != home:
        raise BadRequest(
            "The session is not in this project. Nothing was stored. Name only the session: its summary belongs to the "
            "project of the session."
        )


def change(tx: Transaction, scope: MemoryScope, summary_id: str, fields: Json, limits: Limits) -> Json:
    """Set fields of a summary. Raises NotFound for a missing summary or one outside the scope."""
    _check_content(fields)
    row_operations.check_within(tx, scope, "summaries", summary_id)
    return row_operations.change(tx, "summaries", summary_id, fields, limits)


def _check_content(fields: Json) -> None:
    if not fields["content"].strip():
        raise BadRequest("`content` is empty. Nothing was changed.")


async def list_by_session(
    store: UserStore, session_id: str, page_request: PageRequest
) -> tuple[MemoryPartition, Page]:
    """Return the project or pool of the session, and a page of its summaries. Raises NotFound for a missing session."""
    session = f"sessions/{session_id}"
    home = find_session_home(store.row_index.rows.get, session_id)
    return home, await list_newest(store, list_live_children(store, session, "summaries"), page_request)


async def list_by_project(store: UserStore, project_id: str, page_request: PageRequest) -> Page:
    """Return a page of the project's overviews and of its current sessions' summaries.

    Raises NotFound for a missing project.
    """
    row_operations.check_live(store, "projects", project_id)
    project = f"projects/{project_id}"
    parents = [project, *list_live_children(store, project, "sessions")]
    keys = {key for name in parents for key in list_live_children(store, name, "summaries")}
    in_project = [key for key in keys if _project_of(store, key) == project_id]
    return await list_newest(store, in_project, page_request)


def _project_of(store: UserStore, key: str) -> str | None:
    location = locate_row(key, store.row_index.rows.get)
    return location.project_id if location is not None else None


async def read_overview(store: UserStore, project_id: str) -> bytes | None:
    """Return the project's newest overview, or None. Raises NotFound for a missing project."""
    row_operations.check_live(store, "projects", project_id)
    project = f"projects/{project_id}"
    keys = [
        key
        for key in list_live_children(store, project, "summaries")
        if store.row_index.rows[key].parents == (project,)
    ]
    page = await list_newest(store, keys, PageRequest(1))
    return page.rows[0] if page.rows else None
