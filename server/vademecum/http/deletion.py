"""Deleting sessions and projects, forgetting everything, and taking all of one's data along."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from typing import IO, Literal

import msgspec
from litestar import delete, get, post
from litestar.datastructures import State
from litestar.params import FromPath, FromQuery, JSONBody
from litestar.response import Stream

from vademecum.errors import BadRequest, NotFound
from vademecum.http.answers import Deleted
from vademecum.http.asked import Req
from vademecum.http.problems import problems
from vademecum.model.said import FORGET_EVERYTHING
from vademecum.services import delete as deleting
from vademecum.services import rows
from vademecum.services.belongings import belongings
from vademecum.services.export import export
from vademecum.services.forget import Receipt, forget_everything, forget_project
from vademecum.services.parts import Parts


class Confirmation(msgspec.Struct):
    confirm: str = ""  # the refusal of a body without it says what to send


@delete(
    "/v1/sessions/{session_id:str}",
    status_code=200,
    operation_id="deleteSession",
    tags=["sessions"],
    summary="Delete a session",
    responses=problems(NotFound),
)
async def delete_session_route(request: Req, state: State, session_id: FromPath[str]) -> Deleted:
    """Its turns and summaries go; its documents stay in the pool. Entities stay, and so do relationships, which belong
    to the entities."""
    parts: Parts = state.parts
    async with parts.users.open(request.user.id) as store:
        await store.write(lambda draft: rows.kill(draft, "sessions", session_id))
    return Deleted(1)


@delete(
    "/v1/projects/{project_id:str}",
    status_code=200,
    operation_id="deleteProject",
    tags=["sessions"],
    summary="Delete a project",
    responses=problems(NotFound),
)
async def delete_project_route(
    request: Req,
    state: State,
    project_id: FromPath[str],
    sessions: FromQuery[Literal["keep", "delete"]] = "keep",
    forget: FromQuery[Literal["soon", "now"]] = "soon",
) -> Deleted | Receipt:
    """Its memories, entities, summaries and observations go; its sessions return to the pool, or go too with
    `?sessions=delete`. The disk is rid of them soon after; with `?forget=now` the answer comes when it is, and is the
    receipt."""
    parts: Parts = state.parts
    async with parts.users.open(request.user.id) as store:
        rows.check_live(store, "projects", project_id)
    await parts.spool.take_up_soon(request.user.email)  # what was done by now goes with the rest,
    await parts.spool.drop(request.user, project_id)  # also if there was no room for it
    if forget == "now":
        where = parts.settings.data, parts.users, parts.eraser, request.user.id
        spooled = parts.spool.folders(request.user.email)
        return await forget_project(*where, project_id, spooled, with_sessions=sessions == "delete")
    async with parts.users.open(request.user.id) as store:
        await store.write(
            lambda draft: deleting.delete_project(draft, project_id, with_sessions=sessions == "delete")
        )
    return Deleted(1)


@post(
    "/v1/forget",
    status_code=200,
    operation_id="forgetEverything",
    tags=["account"],
    summary="Forget everything",
)
async def forget_route(request: Req, data: JSONBody[Confirmation], state: State) -> Receipt:
    """Erase every row of every collection, here and on all devices. The body is `{"confirm": "forget everything"}`.
    Answers when it is done and checked."""
    if data.confirm != FORGET_EVERYTHING:
        raise BadRequest(
            f'To forget everything, send {{"confirm": "{FORGET_EVERYTHING}"}}. Nothing was changed.'
        )
    parts: Parts = state.parts
    where = parts.settings.data, parts.users, parts.eraser, request.user.id
    async with parts.spool.cleared(request.user.email) as spooled:
        receipt = await forget_everything(*where, spooled)
    return receipt


@get(
    "/v1/export",
    media_type="application/zip",
    opt={"rate": "write"},
    operation_id="export",
    tags=["account"],
    summary="Take everything along",
)
async def export_route(request: Req, state: State) -> Stream:
    """A ZIP of all of one's data in open formats."""
    return await _exported(request, state.parts, None)


@get(
    "/v1/projects/{project_id:str}/export",
    media_type="application/zip",
    opt={"rate": "write"},
    operation_id="exportProject",
    tags=["sessions"],
    summary="Take a project along",
    responses=problems(NotFound),
)
async def export_project_route(request: Req, state: State, project_id: FromPath[str]) -> Stream:
    """A ZIP as `export` makes it, of this project alone: its sessions with their turns, what is remembered in it, and
    what agents did there."""
    return await _exported(request, state.parts, project_id)


async def _exported(request: Req, parts: Parts, project_id: str | None) -> Stream:
    account = {"userId": request.user.id, "email": request.user.email, "tier": request.user.tier}
    async with parts.users.open(request.user.id) as store:
        only = None
        spooled = parts.spool.folders(request.user.email) if project_id is None else None
        if project_id is not None:
            rows.check_live(store, "projects", project_id)
            only = belongings(store, project_id, with_sessions=True)
        # Without a name from the start: however this ends, nothing of it is left in the folder.
        file = tempfile.TemporaryFile(dir=store.folder)  # noqa: SIM115 - closed when the answer is over
        try:
            await export(store, account, parts.registry, file, only, spooled)
        except BaseException:
            file.close()
            raise
    headers = {"Content-Disposition": 'attachment; filename="vademecum-export.zip"'}
    return Stream(_pieces(file), media_type="application/zip", headers=headers)


async def _pieces(file: IO[bytes]) -> AsyncIterator[bytes]:
    with file:
        file.seek(0)
        while piece := await asyncio.to_thread(file.read, 2**18):
            yield piece


ROUTES = [delete_session_route, delete_project_route, forget_route, export_route, export_project_route]
