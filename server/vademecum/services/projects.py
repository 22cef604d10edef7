"""Projects: named, isolated groups of sessions."""

from __future__ import annotations

from vademecum.engines.duckdb.userstore import UserStore
from vademecum.errors import BadRequest
from vademecum.model.collections import Json
from vademecum.model.draft import Draft
from vademecum.model.limits import Limits
from vademecum.model.names import normal_name
from vademecum.services import rows
from vademecum.services.pages import Page, Window, newest
from vademecum.services.portions import children, live_keys


def create(draft: Draft, fields: Json, limits: Limits) -> Json:
    """Raises BadRequest for a name that is none."""
    _check_name(fields)
    return rows.add(draft, "projects", fields, limits)


def change(draft: Draft, project_id: str, fields: Json, limits: Limits) -> Json:
    """Raises NotFound, and BadRequest for a name that is none."""
    _check_name(fields)
    return rows.change(draft, "projects", project_id, fields, limits)


def _check_name(fields: Json) -> None:
    if "name" in fields and not normal_name(fields["name"]):
        raise BadRequest("A project needs a name. Nothing was changed.")


async def listed(store: UserStore, asked: Window) -> Page:
    return await newest(store, await live_keys(store, "projects"), asked)


async def sessions(store: UserStore, project_id: str, asked: Window) -> Page:
    """The sessions that are in the project now. Raises NotFound."""
    rows.check_live(store, "projects", project_id)
    return await newest(store, children(store, f"projects/{project_id}", "sessions"), asked)
