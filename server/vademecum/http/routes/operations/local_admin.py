"""Define routes that only commands on the server's machine may call, because some of them take paths on it."""

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
from vademecum.services.models.active_model import OPEN_TIMEOUT_S
from vademecum.services.models.library_language import is_mostly_foreign
from vademecum.services.runtime.composition import Services
from vademecum.services.sync.stale_restore import EpochsBegun, start_new_epochs


class BackupFolder(msgspec.Struct):
    path: str


class AccountFilter(msgspec.Struct):
    """Selects the account with this `email`, or all accounts if it is null."""

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
    """The result of a verification. `problem` names the damaged file and the remedy, or is null."""

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
    """Restore one account from a backup.

    This is a separate route, because an older server would ignore an `email` in `/v1/local/restore` and restore
    everything.
    """
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
    """Return the shared addresses (of proxies and of this machine) that have exceeded the budget of a single address."""
    return sorted(_require_local_command(request).rate_limiter.crowded)


@get("/v1/local/ahead", include_in_schema=False)
async def ahead_route(request: Req) -> dict[str, int]:
    """Map emails to the number of pulls with an unsigned checkpoint ahead of the account's records.

    Only pulls since the start of the server are counted.
    """
    services = _require_local_command(request)
    return {services.accounts.name_of(one): count for one, count in services.users.unsigned_ahead.items()}


@get("/v1/local/foreign", include_in_schema=False)
async def foreign_route(request: Req) -> list[str]:
    """Return the emails of the accounts whose documents are mostly in languages that the model does not know."""
    services = _require_local_command(request)
    embedder = await services.inference.get(OPEN_TIMEOUT_S)
    if embedder is None:
        return []
    accounts = services.account_service.list_accounts(None)
    readable = [one for one in accounts if services.users.fences.reason(one.id) is None]
    return [one.email for one in readable if await is_mostly_foreign(services.users, one.id, embedder)]


@post("/v1/local/verify", include_in_schema=False, status_code=200)
async def verify_route(request: Req, data: JSONBody[AccountId]) -> Verified:
    """Verify the files of an account. Other requests of the account wait until the verification ends."""
    services = _require_local_command(request)
    return Verified(await services.backup.verify_account(services.account_service.get(data.user_id).id))


@post("/v1/local/administrator", include_in_schema=False, status_code=200)
async def administrator_route(request: Req, data: JSONBody[Administrator]) -> Profile:
    """Make an account an administrator, or revoke that role.

    Only local commands can do this, so that a stolen session of an administrator cannot create another administrator.
    """
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
    foreign_route,
    administrator_route,
]
