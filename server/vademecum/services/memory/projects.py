"""Projects: named, isolated groups of sessions."""

from __future__ import annotations

from vademecum.engines.duckdb.user_store import UserStore
from vademecum.errors import BadRequest
from vademecum.model.schema.collections import Json
from vademecum.model.schema.derived_ids import normal_name
from vademecum.model.sync.quotas import Limits
from vademecum.model.sync.transaction import Draft
from vademecum.services.sync import write_row
from vademecum.services.sync.batches import children, live_keys
from vademecum.services.sync.pagination import Page, Window, newest


def create(draft: Draft, fields: Json, limits: Limits) -> Json:
    """Raises BadRequest for a name that is none."""
    _check_name(fields)
    return write_row.add(draft, "projects", fields, limits)


def change(draft: Draft, project_id: str, fields: Json, limits: Limits) -> Json:
    """Raises NotFound, and BadRequest for a name that is none."""
    _check_name(fields)
    return write_row.change(draft, "projects", project_id, fields, limits)


def _check_name(fields: Json) -> None:
    if "name" in fields and not normal_name(fields["name"]):
        raise BadRequest("A project needs a name. Nothing was changed.")


async def listed(store: UserStore, asked: Window) -> Page:
    return await newest(store, await live_keys(store, "projects"), asked)


async def sessions(store: UserStore, project_id: str, asked: Window) -> Page:
    """The sessions that are in the project now. Raises NotFound."""
    write_row.check_live(store, "projects", project_id)
    return await newest(store, children(store, f"projects/{project_id}", "sessions"), asked)
