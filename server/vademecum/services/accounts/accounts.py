"""Accounts: made, listed, changed and removed by an administrator; left for good by their owner."""

from __future__ import annotations

from functools import partial

import msgspec
import structlog

from vademecum.errors import BadRequest, Broken, Conflict, NotFound
from vademecum.model.accounts.emails import check_email
from vademecum.model.records.accounts import Account
from vademecum.model.records.paths import user_folder
from vademecum.model.schema.constants import OWNER
from vademecum.model.sync.quotas import Limits, Tier, Usage
from vademecum.services.accounts import sign_in
from vademecum.services.accounts.deleted_accounts import has_left, look, note_left, read_left
from vademecum.services.accounts.tokens import is_valid
from vademecum.services.models.model_change import Progress
from vademecum.services.runtime.container import Services
from vademecum.services.runtime.ids import new_id
from vademecum.services.runtime.job_queue import JobQueue

_log = structlog.get_logger("vademecum.accounts")


class Profile(msgspec.Struct, rename="camel"):
    """An account as its owner or an administrator sees it. `problem`: why its file cannot be opened; then no `usage`.
    `reembedding`: how many blocks another model has embedded, while the server changes its model."""

    user_id: str
    email: str
    tier: Tier
    admin: bool
    limits: Limits
    usage: Usage | None
    problem: str | None = None
    reembedding: Progress | None = None


async def ensure_owner(services: Services) -> str | None:
    """Where nobody administers, as in a new data folder: make the local owner. Returns the path of a sign-in link while
    the owner has no other way in (no password, no browser signed in), else None."""
    owner = services.accounts.by_email(OWNER)
    if not any(account.admin for account in services.accounts.accounts.values()):
        if owner is None:
            owner = await create(services, OWNER, "JIGGA", admin=True)
        else:
            owner = await change_admin(services, owner, admin=True)
    if owner is None or owner.password is not None:
        return None
    signed_in = any(
        t.kind == "cookie" and is_valid(services, t) for t in services.accounts.tokens_of(owner.id)
    )
    return None if signed_in else await sign_in.new_link(services, owner)


async def create(
    services: Services, email: str, tier: Tier, *, admin: bool = False, password: str | None = None
) -> Account:
    """Raises BadRequest, Conflict, and Broken when nobody knows whose the events are that wait for this address."""
    try:
        email = check_email(email)
    except ValueError as error:
        raise BadRequest(f"{error} Nothing was changed.") from error
    hashed = await sign_in.hashed(password) if password is not None else None
    waits = services.accounts.by_email(email) is None and services.spool.account_folders(email)
    if waits and has_left(services.settings.data, email):
        await services.spool.delete_account_events(email)  # events that were recorded for a former account
    account = Account(new_id(), email, tier, admin, hashed, services.clock())
    await services.accounts.add_account(account)
    return account


def by_id(services: Services, account_id: str) -> Account:
    """Raises NotFound."""
    account = services.accounts.accounts.get(account_id)
    if account is None:
        raise NotFound("There is no such account.")
    return account


def listed(services: Services, email: str | None) -> list[Account]:
    """All accounts, or the one with this email if there is one."""
    if email is None:
        return list(services.accounts.accounts.values())
    account = services.accounts.by_email(email)
    return [account] if account is not None else []


async def profile(services: Services, account: Account) -> Profile:
    usage: Usage | None = None
    problem: str | None = None
    progress: Progress | None = None
    try:
        usage = await _usage(services, account)
        progress = await services.model_change.progress(account.id)
    except Broken as error:  # of one user: an administrator must see it, and the others
        problem = error.message
    limits = services.limits(account)
    return Profile(account.id, account.email, account.tier, account.admin, limits, usage, problem, progress)


async def _usage(services: Services, account: Account) -> Usage:
    """Return the usage, without creating records for an account that has none. Raises Broken."""
    if services.users.is_new(account.id):
        return Usage(documents=0, bytes=0)
    async with services.users.open(account.id) as store:
        return store.usage


async def change_tier(services: Services, account: Account, tier: Tier) -> Account:
    return await services.accounts.change_account(account.id, lambda a: msgspec.structs.replace(a, tier=tier))


async def change_admin(services: Services, account: Account, *, admin: bool) -> Account:
    """Raises Conflict when nobody would be left to administer."""

    def change(before: Account) -> Account:
        if not admin:
            _check_administered(services, before)
        return msgspec.structs.replace(before, admin=admin)

    return await services.accounts.change_account(account.id, change)


def _check_administered(services: Services, leaving: Account) -> None:
    """Somebody else administers, or nobody else is here: then the next start makes a new owner. Raises Conflict."""
    others = [account for account in services.accounts.accounts.values() if account.id != leaving.id]
    if leaving.admin and others and not any(account.admin for account in others):
        raise Conflict(
            f"{leaving.email} is the only administrator, and other accounts are here. Nothing was changed. Make another "
            "one an administrator first (`vademecum user admin EMAIL`), or remove the others."
        )


async def reset_password(services: Services, account: Account) -> str:
    """Take the password away, sign out every browser, and return the path of a sign-in link."""
    cleared = await sign_in.set_password(services, account.id, None)
    return await sign_in.new_link(services, cleared)


async def remove(services: Services, account: Account) -> None:
    """Erase an account and all that it has: secrets, records, index, ledger; streams are closed.

    What is under way for it ends first, and nothing begins any more: a device that is writing cannot bring the
    folder back. Raises NotFound when somebody else has removed it, Conflict when nobody would be left to administer, and
    Broken when events of agents are left, alone of all that there was.
    """
    await services.accounts.block(account.id, lambda leaving: _note_leaving(services, leaving))
    leaving = _leaving(services)
    leaving.schedule(account.id)  # its marker, should a kill come now
    await services.accounts.remove_account(account.id)
    services.hub.close_user(account.id)
    async with services.spool.erasing_account(account.email):  # before the address can be somebody else's
        await leaving.run_and_wait(account.id)


def _note_leaving(services: Services, leaving: Account) -> None:
    _check_administered(services, leaving)
    try:
        note_left(services.settings.data, leaving.id, leaving.email)
    except OSError as error:
        raise Broken(
            f"That {leaving.email} leaves cannot be written down ({error.strerror}). Nothing was changed. "
            "Have `vademecum doctor` look at the data folder."
        ) from error


def _leaving(services: Services) -> JobQueue:
    assert services.background_jobs.leaving is not None, "finish_leaving comes first"
    return services.background_jobs.leaving


async def _erase_left(services: Services, account_id: str) -> None:
    """Erase what remains of an account that has left: its folder, and its row and email in the accounts file."""
    if account_id not in read_left(services.settings.data):
        return  # a marker alone erases nobody
    if account_id in services.accounts.accounts:  # a kill came before the row was deleted
        await services.accounts.remove_account(account_id)
    try:
        await _erase(services, account_id)
    finally:
        await services.accounts.rewrite()


async def _erase(services: Services, account_id: str) -> None:
    services.background_jobs.cancel_all(account_id)
    await services.model_change.forget(account_id)
    await services.indexes.remove(account_id)
    await services.recall.indexes.remove(account_id)
    await services.users.remove(account_id)
    services.background_jobs.cancel_all(account_id)  # the last commits have asked for more


async def finish_leaving(services: Services) -> None:
    """At the start, before the spool is taken up: a stop may have cut a removal off half-way. What cannot be erased now
    does not prevent the start: it is tried again, and the doctor names it."""
    job = services.background_jobs.add_leaving(
        partial(_erase_left, services), services.settings.erase_delay_s
    )
    left = look(services.settings.data)
    if left.unsure:
        _log.error("it is not known who has left", why=left.unsure)
    erased = [account_id for account_id in left.digests if await _is_erased(services, account_id)]
    # A stop between the deletion of a row and its erasure has left an email in the accounts file.
    if left.digests and await _is_rewritten(services):
        for account_id in erased:
            job.cancel(account_id)
    job.start()
    for account_id in left.digests.keys() - set(erased):
        job.schedule(account_id)
    await services.spool.delete_events_of_deleted_accounts()


async def _is_erased(services: Services, account_id: str) -> bool:
    try:
        await _finish(services, account_id)
    except Exception as error:
        _log.error("an account that has left is not erased yet", account=account_id, exc_info=error)
        return False
    return True


async def _is_rewritten(services: Services) -> bool:
    try:
        await services.accounts.rewrite()
    except Exception as error:
        _log.error("the accounts file is not rewritten", exc_info=error)
        return False
    return True


async def _finish(services: Services, account_id: str) -> None:
    known = account_id in services.accounts.accounts
    if known:
        await services.accounts.remove_account(account_id)
    if known or user_folder(services.settings.data, account_id).exists():
        await _erase(services, account_id)
