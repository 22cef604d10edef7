"""Routes for commands on the server's own machine: backup and restore name paths, so nobody else may call them."""

from pathlib import Path

import msgspec
from litestar import post
from litestar.params import JSONBody

from vademecum.errors import Forbidden
from vademecum.http.asked import Req
from vademecum.http.auth import LOCAL_ADMIN
from vademecum.services.backup import BackupManifest, Restored, backup, restore
from vademecum.services.parts import Parts


class BackupFolder(msgspec.Struct):
    path: str


def _parts(request: Req) -> Parts:
    if request.user is not LOCAL_ADMIN:
        raise Forbidden("This is for commands on the server's own machine.")
    parts: Parts = request.app.state.parts
    return parts


@post("/v1/local/backup", include_in_schema=False, status_code=200)
async def backup_route(request: Req, data: JSONBody[BackupFolder]) -> BackupManifest:
    return await backup(_parts(request), Path(data.path))


@post("/v1/local/restore", include_in_schema=False, status_code=200)
async def restore_route(request: Req, data: JSONBody[BackupFolder]) -> Restored:
    return await restore(_parts(request), Path(data.path))


ROUTES = [backup_route, restore_route]
