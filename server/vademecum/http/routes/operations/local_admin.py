"""Routes for commands on the server's machine. Backup and restore name paths, so no one else may call them."""

from pathlib import Path

import msgspec
from litestar import get, post
from litestar.params import JSONBody

from vademecum.errors import Forbidden
from vademecum.http.auth import LOCAL_ADMIN
from vademecum.http.parameters import Req
from vademecum.services.accounts.accounts import Profile
from vademecum.services.data.backup import BackupManifest
from vademecum.services.data.erase import erase_due
from vademecum.services.data.restore import Restored
from vademecum.services.runtime.composition import Services
from vademecum.services.sync.stale_restore import EpochsBegun, start_new_epochs


class BackupFolder(msgspec.Struct):
    path: str


class AccountFilter(msgspec.Struct):
    """`email`: null for all accounts."""

    email: str | None = None


class OneAccount(msgspec.Struct):
    path: str
    email: str


class Administrator(msgspec.Struct, rename="camel"):
    user_id: str
    admin: bool


class AccountId(msgspec.Struct, rename="camel"):
    user_id: str


class Verified(msgspec.Struct):
    """`problem`: the damaged file and the remedy, or null."""

    problem: str | None


class Erased(msgspec.Struct):
    accounts: int


def _require_local_command(request: Req) -> Services:
    if request.user is not LOCAL_ADMIN:
        raise Forbidden("Only commands on the server's own machine can do this. Nothing was changed.")
    return request.services


@post("/v1/local/backup", include_in_schema=False, status_code=200)
async def backup_route(request: Req, data: JSONBody[BackupFolder]) -> BackupManifest:
    return await _require_local_command(request).backup.create(Path(data.path))


@post("/v1/local/restore", include_in_schema=False, status_code=200)
async def restore_route(request: Req, data: JSONBody[BackupFolder]) -> Restored:
    return await _require_local_command(request).restore.restore_all(Path(data.path))


@post("/v1/local/restore-one", include_in_schema=False, status_code=200)
async def restore_one_route(request: Req, data: JSONBody[OneAccount]) -> Restored:
    """A separate route, because an older server would ignore the email and restore everything."""
    return await _require_local_command(request).restore.restore_account(Path(data.path), data.email)


@post("/v1/local/erase", include_in_schema=False, status_code=200)
async def erase_route(request: Req, data: JSONBody[AccountFilter]) -> Erased:
    services = _require_local_command(request)
    emails = {account.id: account.email for account in services.account_service.list_accounts(data.email)}
    return Erased(await erase_due(services.settings.data, services.background_jobs.jobs["erase"], emails))


@post("/v1/local/epoch", include_in_schema=False, status_code=200)
async def epoch_route(request: Req, data: JSONBody[AccountFilter]) -> EpochsBegun:
    services = _require_local_command(request)
    accounts = services.account_service.list_accounts(data.email)
    return await start_new_epochs(services.users, services.background_jobs, accounts)


@get("/v1/local/crowded", include_in_schema=False)
async def crowded_route(request: Req) -> list[str]:
    """Return the addresses of this machine and of proxies that have used more than the budget of one address."""
    return sorted(_require_local_command(request).rate_limiter.crowded)


@get("/v1/local/ahead", include_in_schema=False)
async def ahead_route(request: Req) -> dict[str, int]:
    """Pulls, by account, whose unsigned checkpoint was ahead of the records since the start."""
    services = _require_local_command(request)
    return {services.accounts.name_of(one): count for one, count in services.users.unsigned_ahead.items()}


@post("/v1/local/verify", include_in_schema=False, status_code=200)
async def verify_route(request: Req, data: JSONBody[AccountId]) -> Verified:
    """Other requests of the account wait meanwhile."""
    services = _require_local_command(request)
    return Verified(await services.backup.verify_account(services.account_service.get(data.user_id).id))


@post("/v1/local/administrator", include_in_schema=False, status_code=200)
async def administrator_route(request: Req, data: JSONBody[Administrator]) -> Profile:
    """Only for local commands, so that a stolen session of an administrator cannot create another."""
    service = _require_local_command(request).account_service
    return await service.profile(await service.change_admin(service.get(data.user_id), admin=data.admin))


ROUTES = [
    backup_route,
    restore_route,
    restore_one_route,
    erase_route,
    verify_route,
    epoch_route,
    crowded_route,
    ahead_route,
    administrator_route,
]
