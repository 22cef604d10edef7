"""Sign in with a password or a one-time link, and sign out. A signed-in browser has a session cookie.

Passwords are hashed with argon2id, which is slow on purpose. A wrong password takes the same time as an unknown email.
"""

from __future__ import annotations

import asyncio
import base64
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeVar

import msgspec
import structlog
from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError
from argon2.low_level import ARGON2_VERSION

from vademecum.errors import BadRequest, Busy, Forbidden, SignedOut
from vademecum.fair_queue import SERVER, FairExecutor, current_user
from vademecum.model.accounts import passwords
from vademecum.model.records.accounts import Account, AccountCheck, Token, email_key
from vademecum.model.records.store_interface import AccountStore
from vademecum.model.schema.timestamps import DAY_S, later
from vademecum.services.accounts.rate_limiter import FAILURES_FREE, RateLimiter
from vademecum.services.accounts.tokens import TokenService, digest
from vademecum.services.sync.stream import Hub

LINK_MINUTES = 15
COOKIE_S = 90 * DAY_S
DEVICE_S = 365 * DAY_S
DEVICES_MAX = 20  # the maximum number of known browsers of an account
DEVICE_FAILURES_MAX = 10  # the number of wrong passwords after which a known browser becomes unknown
ACCOUNT_FAILURES_FREE = 5  # wrong passwords for one account from unknown browsers that cause no delay
PASSWORD_MIN = 10
PASSWORD_MAX = 1000
_log = structlog.get_logger("vademecum.sign_in")
_hasher = PasswordHasher()
_hashing = FairExecutor(2, 1, "password")  # two threads, because a hash takes 64 MB and a core
HASHES_WAITING_MAX = 64
HASHES_RETRY_S = 5
T = TypeVar("T")


def _unmatchable_hash() -> str:
    """Return a hash that no password matches. Verifying it takes as long as for a real hash; creating it is fast."""
    salt, tag = (
        base64.b64encode(secrets.token_bytes(length)).decode().rstrip("=")
        for length in (_hasher.salt_len, _hasher.hash_len)
    )
    cost = f"m={_hasher.memory_cost},t={_hasher.time_cost},p={_hasher.parallelism}"
    return f"$argon2id$v={ARGON2_VERSION}${cost}${salt}${tag}"


_decoy = _unmatchable_hash()


class SignIn:
    def __init__(
        self,
        accounts: AccountStore,
        tokens: TokenService,
        rate_limiter: RateLimiter,
        hub: Hub,
        clock: Callable[[], str],
    ) -> None:
        self._accounts = accounts
        self._tokens = tokens
        self._rate_limiter = rate_limiter
        self._hub = hub
        self._clock = clock

    async def create_link(self, account: Account) -> str:
        """Return the path of a one-time sign-in link."""
        expires_at = later(self._clock(), LINK_MINUTES * 60)
        return f"/v1/sign-in?link={await self._tokens.issue(account, 'link', 'sign-in link', expires_at)}"

    async def use_link(self, secret: str) -> str:
        """Exchange a sign-in link for the secret of a session cookie. Raises SignedOut if it was used or has expired."""
        link = self._tokens.find(secret, "link")
        expired = SignedOut(
            f"This sign-in link was already used or is older than {LINK_MINUTES} minutes. Ask for a new one."
        )
        if link is None:
            raise expired

        def check(_: Account) -> None:
            if not self._tokens.is_valid(link):
                raise expired

        # No other request runs between these two calls, and `revoke_tokens` revokes the link in memory at once. So a
        # concurrent request with the same link is rejected.
        cookie = await self.create_session(self._accounts.accounts[link.account_id], check)
        await self._accounts.revoke_tokens([link])
        return cookie

    async def create_session(self, account: Account, check: AccountCheck | None = None) -> str:
        """Return the secret of a new session cookie."""
        expires_at = later(self._clock(), COOKIE_S)
        return await self._tokens.issue(account, "cookie", "browser", expires_at, check=check)

    async def extend_session(self, session: Token) -> bool:
        """Extend a valid session after a third of its lifetime, so that few requests write.

        Return whether it was extended.
        """
        is_fresh = session.expires_at is None or session.expires_at > later(self._clock(), COOKIE_S * 2 / 3)
        if is_fresh or not self._tokens.is_valid(session):
            return False
        try:
            return await self._accounts.extend_token(session, later(self._clock(), COOKIE_S))
        except Exception as error:  # only log it: the next request tries again
            _log.error("cannot extend a session", exc_info=error)
            return False

    @asynccontextmanager
    async def password_attempt(
        self, address: str, email: str, device: Token | None, *, is_shared: bool = False
    ) -> AsyncIterator[None]:
        """Limit and count one password attempt: by address, by account, and by both together. Raises RateLimited.

        `is_shared`: many people may have this address, because a proxy hides their own. Failures from a shared address
        delay only the account that they concern.

        Attempts of a browser that has signed in to this account before (`device`) are counted separately, so that
        nobody can lock the user out by guessing passwords. Keys contain digests of emails, which have a fixed length.
        """
        if current_user.get() == SERVER:  # nobody is signed in, so share the threads fairly among addresses
            current_user.set(f"address {address}")
        account = self._accounts.by_email(email)
        account_key = f"account {digest(email_key(email))}"
        if device is not None and account is not None and device.account_id == account.id:
            async with self._device_attempt(device):
                yield
            return
        # A known browser is known for another account here. Its request was counted for the browser only, so count the
        # attempt for the address, too.
        if device is not None:
            self._rate_limiter.take("sign_in", address)
        self._rate_limiter.take("sign_in", f"{address} {account_key}")
        free_failures = {account_key: ACCOUNT_FAILURES_FREE}
        if not is_shared:
            free_failures = {address: FAILURES_FREE, **free_failures}
        for key in free_failures:
            self._rate_limiter.check_failures(key)
        try:
            yield
        except (SignedOut, Forbidden):
            for key, free in free_failures.items():
                self._rate_limiter.record_failure(key, free)
            raise
        for key in free_failures:
            self._rate_limiter.clear_failures(key)

    @asynccontextmanager
    async def _device_attempt(self, device: Token) -> AsyncIterator[None]:
        key = f"device {device.id}"
        self._rate_limiter.check_failures(key)
        try:
            yield
        except (SignedOut, Forbidden):
            if self._rate_limiter.record_failure(key) >= DEVICE_FAILURES_MAX:
                await self._accounts.revoke_tokens([device])
            raise
        self._rate_limiter.clear_failures(key)

    async def remember_device(self, session: Token) -> str:
        """Make the browser of this session a known browser, and return the secret of its device token.

        Beyond DEVICES_MAX known browsers of an account, the oldest ones become unknown.
        """
        account = self._accounts.accounts[session.account_id]
        secret = await self._tokens.issue(
            account,
            "device",
            "browser",
            later(self._clock(), DEVICE_S),
            check=lambda _: self._tokens.check_valid(session),
        )
        devices = [token for token in self._accounts.tokens_of(account.id) if token.kind == "device"]
        await self._accounts.revoke_tokens(devices[:-DEVICES_MAX])
        return secret

    async def sign_in_with_password(self, email: str, password: str) -> str:
        """Return the secret of a new session cookie. Raises the same SignedOut for a wrong email and a wrong password."""
        account = self._accounts.by_email(email)
        stored = account.password if account is not None and account.password is not None else _decoy
        wrong = SignedOut("This email and password do not match. Nothing was changed. Try again.")
        spelling = await _find_matching_spelling(stored, password)
        if spelling is None or account is None or account.password is None:
            raise wrong

        def check(current: Account) -> None:  # the password may have changed during the verification
            if current.password != stored:
                raise wrong

        cookie = await self.create_session(account, check)
        if spelling != _spellings(password)[0]:
            await self._rehash(account, check, password)
        return cookie

    async def _rehash(self, account: Account, check: AccountCheck, password: str) -> None:
        """Replace the hash of the typed password with a hash of the normalized password. Sessions stay valid."""

        def change(current: Account) -> Account:
            check(current)
            return msgspec.structs.replace(current, password=password_hash)

        try:
            password_hash = await hash_password(password)
            await self._accounts.change_account(account.id, change)
        except Exception as error:  # only log it: the user is signed in, and the next sign-in tries again
            _log.error("cannot rehash a password", exc_info=error)

    async def change_password(
        self, account: Account, current_password: str | None, new: str, keep: Token | None
    ) -> None:
        """Set a password and sign out every browser of the account except the one with the session `keep`.

        Raises Forbidden if `current_password` is wrong.
        """
        stored = account.password
        if stored is not None and await _find_matching_spelling(stored, current_password or "") is None:
            raise Forbidden("The current password is wrong. Nothing was changed.")
        password_hash = await hash_password(new)

        def check(current: Account) -> None:  # the password may have changed during the hashing
            if current.password != stored:
                raise SignedOut(
                    "Another request changed the password at the same time. Your change was not made."
                )
            if keep is not None:  # detects a reset of an account whose hash stays None: it has no password
                self._tokens.check_valid(keep)

        await self.set_password_hash(account.id, password_hash, check, keep)

    async def set_password_hash(
        self,
        account_id: str,
        password_hash: str | None,
        check: AccountCheck = lambda _: None,
        keep: Token | None = None,
    ) -> Account:
        """Set the password and revoke all tokens of the account except `keep` and API tokens, in one commit.

        The streams of revoked sessions end. If `check` raises an error, nothing changes.
        """

        def change(current: Account) -> Account:
            check(current)
            return msgspec.structs.replace(current, password=password_hash)

        changed = await self._accounts.change_account(
            account_id, change, lambda token: token.kind != "api" and (keep is None or token.id != keep.id)
        )
        self._hub.wake_user(account_id)
        return changed

    async def sign_out(self, session: Token) -> None:
        """End this session and its streams."""
        await self._accounts.revoke_tokens([session])
        self._hub.wake_user(session.account_id)


def _spellings(password: str) -> list[str]:
    """Return the password normalized by RFC 8265, then as typed. Earlier versions hashed the password as typed."""
    try:
        return list(dict.fromkeys((passwords.prepare(password), password)))
    except ValueError:
        return [password]


async def _find_matching_spelling(stored: str, password: str) -> str | None:
    """Return the spelling of the password that has this hash, or None."""

    def check(spelling: str) -> bool:
        try:
            return _hasher.verify(stored, spelling)
        except (Argon2Error, InvalidHashError, UnicodeEncodeError):
            return False

    for spelling in _spellings(password):
        if await _in_hashing_pool(partial(check, spelling)):
            return spelling
    return None


async def _in_hashing_pool(work: Callable[[], T]) -> T:
    """Run `work` in the threads for password hashes. Raises Busy if too many wait."""
    if _hashing.waiting() >= HASHES_WAITING_MAX:
        raise Busy(
            "Too many people are signing in. Nothing was changed. Try again in a few seconds.",
            retry_after_s=HASHES_RETRY_S,
        )
    return await asyncio.get_running_loop().run_in_executor(_hashing, work)


async def hash_password(password: str) -> str:
    """Hash a new password. Raises BadRequest if it is too short or contains a character that is not allowed."""
    try:
        prepared = passwords.prepare(password)
    except ValueError as error:
        raise BadRequest(
            f"A password cannot contain this character: {error}. Nothing was changed."
        ) from error
    if not PASSWORD_MIN <= len(prepared) <= PASSWORD_MAX:
        raise BadRequest(f"A password has {PASSWORD_MIN} to {PASSWORD_MAX} characters. Nothing was changed.")
    return await _in_hashing_pool(partial(_hasher.hash, prepared))
