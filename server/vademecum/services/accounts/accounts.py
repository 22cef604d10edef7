"""Create, list and change accounts."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from vademecum.errors import BadRequest, Broken, Conflict, NotFound
from vademecum.model.accounts.emails import check_email
from vademecum.model.records.accounts import Account
from vademecum.model.records.store_interface import AccountStore, UserStores
from vademecum.model.schema.constants import OWNER
from vademecum.model.sync.quotas import Limits, Tier, Usage
from vademecum.services.accounts.deleted_accounts import was_deleted
from vademecum.services.accounts.sign_in import SignIn, hash_password
from vademecum.services.accounts.tokens import TokenService
from vademecum.services.agents.spool import Spool
from vademecum.services.models.model_change import ModelChange, Progress
from vademecum.services.runtime.ids import new_id
from vademecum.settings import Settings


class Profile(msgspec.Struct, rename="camel"):
    """An account as its user or an administrator sees it.

    `prompt_score_share`: the server's setting, for the app's preview of prompts. `problem`: the reason why its file
    cannot be opened, in which case `usage` is null. `reembedding`: the progress of a model change.
    """

    user_id: str
    email: str
    tier: Tier
    admin: bool
    limits: Limits
    prompt_score_share: float
    usage: Usage | None
    problem: str | None = None
    reembedding: Progress | None = None


class AccountService:
    def __init__(
        self,
        settings: Settings,
        accounts: AccountStore,
        users: UserStores,
        tokens: TokenService,
        sign_in: SignIn,
        spool: Spool,
        model_change: ModelChange,
        clock: Callable[[], str],
    ) -> None:
        self._settings = settings
        self._accounts = accounts
        self._users = users
        self._tokens = tokens
        self._sign_in = sign_in
        self._spool = spool
        self._model_change = model_change
        self._clock = clock

    async def ensure_owner(self) -> str | None:
        """Make sure that there is an administrator: create the owner account, or make it an administrator.

        Return the path of a sign-in link if the owner has neither a password nor a signed-in browser, else None.
        """
        owner = self._accounts.by_email(OWNER)
        if not any(account.admin for account in self._accounts.accounts.values()):
            if owner is None:
                owner = await self.create(OWNER, "JIGGA", admin=True)
            else:
                owner = await self.change_admin(owner, admin=True)
        if owner is None or owner.password is not None:
            return None
        tokens = self._accounts.tokens_of(owner.id)
        if any(token.kind == "cookie" and self._tokens.is_valid(token) for token in tokens):
            return None
        return await self._sign_in.create_link(owner)

    async def create(
        self, email: str, tier: Tier, *, admin: bool = False, password: str | None = None
    ) -> Account:
        """Create an account.

        Raises BadRequest for an invalid email or password, Conflict for an email in use, and Broken if agent events
        wait for this email while the list of deleted accounts is unreadable.
        """
        try:
            email = check_email(email)
        except ValueError as error:
            raise BadRequest(f"{error} Nothing was changed.") from error
        password_hash = await hash_password(password) if password is not None else None
        has_spool = self._accounts.by_email(email) is None and self._spool.account_folders(email)
        if has_spool and was_deleted(self._settings.data, email):
            await self._spool.delete_account_events(email)  # the events belong to a deleted account
        account = Account(new_id(), email, tier, admin, password_hash, self._clock())
        await self._accounts.add_account(account)
        return account

    def get(self, account_id: str) -> Account:
        """Return an account. Raises NotFound for an unknown id."""
        account = self._accounts.accounts.get(account_id)
        if account is None:
            raise NotFound("There is no such account.")
        return account

    def list_accounts(self, email: str | None) -> list[Account]:
        """Return all accounts, or the one with this email."""
        if email is None:
            return list(self._accounts.accounts.values())
        account = self._accounts.by_email(email)
        return [account] if account is not None else []

    def limits(self, account: Account) -> Limits:
        return self._settings.tiers[account.tier]

    async def profile(self, account: Account) -> Profile:
        usage: Usage | None = None
        problem: str | None = None
        progress: Progress | None = None
        try:
            usage = await self._usage(account)
            progress = await self._model_change.progress(account.id)
        except Broken as error:  # one damaged account must not hide the others from an administrator
            problem = error.message
        limits, share = self.limits(account), self._settings.prompt_score_share
        return Profile(
            account.id, account.email, account.tier, account.admin, limits, share, usage, problem, progress
        )

    async def _usage(self, account: Account) -> Usage:
        """Return the usage without creating a file for an account that never synced.

        Raises Broken if the usage cannot be read.
        """
        if self._users.is_new(account.id):
            return Usage(documents=0, bytes=0)
        async with self._users.open(account.id) as store:
            return store.usage

    async def change_tier(self, account: Account, tier: Tier) -> Account:
        return await self._accounts.change_account(
            account.id, lambda a: msgspec.structs.replace(a, tier=tier)
        )

    async def change_admin(self, account: Account, *, admin: bool) -> Account:
        """Grant or revoke the administrator role. Raises Conflict if no administrator would remain."""

        def change(current: Account) -> Account:
            if not admin:
                check_administrator_remains(self._accounts, removed=current)
            return msgspec.structs.replace(current, admin=admin)

        return await self._accounts.change_account(account.id, change)

    async def reset_password(self, account: Account) -> str:
        """Remove the password, sign out every browser, and return the path of a sign-in link."""
        return await self._sign_in.create_link(await self._sign_in.set_password_hash(account.id, None))


def check_administrator_remains(accounts: AccountStore, removed: Account) -> None:
    """Raise Conflict if the other accounts would have no administrator without `removed`.

    The last account may be deleted, because the next start creates a new owner.
    """
    others = [account for account in accounts.accounts.values() if account.id != removed.id]
    if removed.admin and others and not any(account.admin for account in others):
        raise Conflict(
            f"{removed.email} is the only administrator, and there are other accounts. Nothing was changed. Make another "
            "account an administrator first (`vademecum user admin EMAIL`), or remove the others."
        )
