"""Create, change and list projects, which are named, isolated groups of sessions."""

from __future__ import annotations

from vademecum.errors import BadRequest
from vademecum.model.records.store_interface import UserStore
from vademecum.model.schema.collections import Json
from vademecum.model.schema.derived_ids import normalize_name
from vademecum.model.sync.quotas import Limits
from vademecum.model.sync.transaction import Transaction
from vademecum.services.sync import row_operations
from vademecum.services.sync.batches import list_live_children, list_live_keys
from vademecum.services.sync.pagination import Page, PageRequest, list_newest


def create(tx: Transaction, fields: Json, limits: Limits) -> Json:
    """Create a project. Raises BadRequest for a blank name."""
    _check_name(fields)
    return row_operations.add(tx, "projects", {**fields, "documentIds": []}, limits)


def change(tx: Transaction, project_id: str, fields: Json, limits: Limits) -> Json:
    """Set fields of a project. Raises NotFound for a missing project, and BadRequest for a blank name."""
    _check_name(fields)
    return row_operations.change(tx, "projects", project_id, fields, limits)


def _check_name(fields: Json) -> None:
    if "name" in fields and not normalize_name(fields["name"]):
        raise BadRequest("A project needs a name. Nothing was changed.")


async def list_projects(store: UserStore, page_request: PageRequest) -> Page:
    return await list_newest(store, await list_live_keys(store, "projects"), page_request)


async def list_sessions(store: UserStore, project_id: str, page_request: PageRequest) -> Page:
    """Return a page of the sessions currently in the project. Raises NotFound for a missing project."""
    row_operations.check_live(store, "projects", project_id)
    return await list_newest(
        store, list_live_children(store, f"projects/{project_id}", "sessions"), page_request
    )
