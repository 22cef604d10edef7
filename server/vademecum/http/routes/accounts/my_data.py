"""Delete or export all data of an account."""

from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec
from litestar import get, post
from litestar.params import JSONBody
from litestar.response import Stream

from vademecum.errors import BadRequest
from vademecum.http.parameters import Req
from vademecum.model.schema.json_values import FORGET_EVERYTHING
from vademecum.services.data.export import Export
from vademecum.services.data.forget import Receipt, forget_everything
from vademecum.services.memory.project_contents import list_project_keys
from vademecum.services.sync import row_operations


class Confirmation(msgspec.Struct):
    confirm: str = ""  # optional, so that the error message can say what to send


@post(
    "/v1/forget",
    status_code=200,
    operation_id="forgetEverything",
    tags=["account"],
    summary="Delete all data",
)
async def forget_route(request: Req, data: JSONBody[Confirmation]) -> Receipt:
    """Delete all rows of the account from all devices and erase them from the server's disk. The body is
    `{"confirm": "forget everything"}`. The server responds after it has verified the erasure."""
    if data.confirm != FORGET_EVERYTHING:
        raise BadRequest(
            f'To delete all data, send {{"confirm": "{FORGET_EVERYTHING}"}}. Nothing was changed.'
        )
    services = request.services
    async with services.spool.erasing_account(request.user.email) as folders:
        receipt = await forget_everything(
            services.settings.data, services.users, services.eraser, services.hub, request.user.id, folders
        )
    return receipt


@get(
    "/v1/export",
    media_type="application/zip",
    opt={"rate": "write"},
    operation_id="export",
    tags=["account"],
    summary="Export all data",
)
async def export_route(request: Req) -> Stream:
    """Return a ZIP archive of all data of the account in open formats."""
    return await export_stream(request, None)


async def export_stream(request: Req, project_id: str | None) -> Stream:
    """Stream the export of one project, or of the whole account if `project_id` is None."""
    account = {"userId": request.user.id, "email": request.user.email, "tier": request.user.tier}
    only: Collection[str] | None = None
    spooled: Sequence[Path] | None = None
    async with request.open_store() as store:
        if project_id is None:
            spooled = request.services.spool.account_folders(request.user.email)
        else:
            row_operations.check_live(store, "projects", project_id)
            only = list_project_keys(store, project_id, with_sessions=True)
    export = Export(
        request.services.users, request.user.id, account, request.services.registry, only, spooled
    )
    headers = {"Content-Disposition": 'attachment; filename="vademecum-export.zip"'}
    return Stream(export.stream(), media_type="application/zip", headers=headers)


ROUTES = [forget_route, export_route]
