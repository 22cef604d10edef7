"""All of one's data: forgotten, and taken along."""

from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec
from litestar import get, post
from litestar.datastructures import State
from litestar.params import JSONBody
from litestar.response import Stream

from vademecum.errors import BadRequest
from vademecum.http.parameters import Req
from vademecum.model.schema.json_values import FORGET_EVERYTHING
from vademecum.services.data.export import Export
from vademecum.services.data.forget import Receipt, forget_everything
from vademecum.services.memory.project_contents import list_project_keys
from vademecum.services.runtime.container import Services
from vademecum.services.sync import write_row


class Confirmation(msgspec.Struct):
    confirm: str = ""  # the refusal of a body without it says what to send


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
    services: Services = state.services
    house = services.settings.data, services.users, services.eraser, services.hub
    async with services.spool.erasing_account(request.user.email) as spooled:
        receipt = await forget_everything(*house, request.user.id, spooled)
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
    return await export_stream(request, state.services, None)


async def export_stream(request: Req, services: Services, project_id: str | None) -> Stream:
    """Of one project, or of all and of none."""
    account = {"userId": request.user.id, "email": request.user.email, "tier": request.user.tier}
    only: Collection[str] | None = None
    spooled: Sequence[Path] | None = None
    async with services.users.open(request.user.id) as store:
        if project_id is None:
            spooled = services.spool.account_folders(request.user.email)
        else:
            write_row.check_live(store, "projects", project_id)
            only = list_project_keys(store, project_id, with_sessions=True)
    found = Export(services.users, request.user.id, account, services.registry, only, spooled)
    headers = {"Content-Disposition": 'attachment; filename="vademecum-export.zip"'}
    return Stream(found.stream(), media_type="application/zip", headers=headers)


ROUTES = [forget_route, export_route]
