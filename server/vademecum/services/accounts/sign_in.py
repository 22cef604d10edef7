"""Signing in, by a password or by a link that works once, and out again. A browser that is in has a cookie.

Passwords are argon2id and slow on purpose; a wrong one costs the same time as an unknown address.
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
from vademecum.model.schema.timestamps import DAY_S, later
from vademecum.services.accounts.rate_limiter import FAILURES_FREE
from vademecum.services.accounts.tokens import check_still_in, digest, find_token, is_valid, issue
from vademecum.services.runtime.container import Services

LINK_MINUTES = 15
COOKIE_S = 90 * DAY_S
DEVICE_S = 365 * DAY_S
DEVICES_MAX = 20  # known browsers of an account
DEVICE_FAILURES_MAX = 10  # wrong passwords from a known browser, after which it is an unknown one
ACCOUNT_FAILURES_FREE = (
    5  # wrong passwords for an account, from any unknown browser, before each causes a delay
)
PASSWORD_MIN = 10
PASSWORD_MAX = 1000
_log = structlog.get_logger("vademecum.sign_in")
_hasher = PasswordHasher()
_hashing = FairExecutor(2, 1, "password")  # a hash takes 64 MB and a core
HASHES_WAITING_MAX = 64
HASHES_RETRY_S = 5
T = TypeVar("T")


def _unmatched() -> str:
    """A stored password that none fits. Verifying costs what a real one costs; making it costs nothing, so that no
    command waits for it."""
    salt, tag = (
        base64.b64encode(secrets.token_bytes(length)).decode().rstrip("=")
        for length in (_hasher.salt_len, _hasher.hash_len)
    )
    cost = f"m={_hasher.memory_cost},t={_hasher.time_cost},p={_hasher.parallelism}"
    return f"$argon2id$v={ARGON2_VERSION}${cost}${salt}${tag}"


_decoy = _unmatched()


async def new_link(services: Services, account: Account) -> str:
    """The path of a one-time sign-in link."""
    expires_at = later(services.clock(), LINK_MINUTES * 60)
    return f"/v1/sign-in?link={await issue(services, account, 'link', 'sign-in link', expires_at)}"


async def use_link(services: Services, secret: str) -> str:
    """Trade a link for a cookie's secret. Raises SignedOut when it was used or is too old."""
    token = find_token(services, secret, "link")
    used = SignedOut(
        f"This sign-in link was used already or is older than {LINK_MINUTES} minutes. Ask for a new one."
    )
    if token is None:
        raise used

    def check(_: Account) -> None:
        if not is_valid(services, token):
            raise used

    # Nothing comes between the two: of several who use it at once, the others find it gone.
    cookie = await new_cookie(services, services.accounts.accounts[token.account_id], check)
    await services.accounts.revoke_tokens([token])
    return cookie


async def new_cookie(services: Services, account: Account, check: AccountCheck | None = None) -> str:
    expires_at = later(services.clock(), COOKIE_S)
    return await issue(services, account, "cookie", "browser", expires_at, check=check)


async def keep_alive(services: Services, token: Token) -> bool:
    """Extend a cookie in use once a third of its lifetime is over: a burst of requests writes once, and a
    month of them too. Returns whether that was done; a cookie that is not valid any more stays so."""
    is_fresh = token.expires_at is None or token.expires_at > later(services.clock(), COOKIE_S * 2 / 3)
    if is_fresh or not is_valid(services, token):
        return False
    try:
        return await services.accounts.extend_token(token, later(services.clock(), COOKIE_S))
    except Exception as error:  # the request itself was carried out, and the next one tries again
        _log.error("a session was not extended", exc_info=error)
        return False


@asynccontextmanager
async def guess(
    services: Services, address: str, email: str, device: Token | None, *, is_shared: bool = False
) -> AsyncIterator[None]:
    """Limit and count one try of a password: by address, by account, and by both together. Raise RateLimited.

    `is_shared`: many people may have this address, because a proxy hides theirs. Failures from it delay no other
    account.

    A browser that has signed in to this account before (`device`) is counted alone, so that others who guess the
    password do not keep its user out. Addresses of accounts are counted as digests of one length.
    """
    if current_user.get() == SERVER:  # nobody is signed in: callers take turns by address
        current_user.set(f"address {address}")
    account = services.accounts.by_email(email)
    key = f"account {digest(email_key(email))}"
    if device is not None and account is not None and device.account_id == account.id:
        async with _guess_from(services, device):
            yield
        return
    if device is not None:  # it passed the limit of its address as a known browser of another account
        services.limiter.take("sign_in", address)
    services.limiter.take("sign_in", f"{address} {key}")
    guessers = (
        {key: ACCOUNT_FAILURES_FREE} if is_shared else {address: FAILURES_FREE, key: ACCOUNT_FAILURES_FREE}
    )
    for who in guessers:
        services.limiter.check_failures(who)
    try:
        yield
    except (SignedOut, Forbidden):
        for who, free in guessers.items():
            services.limiter.failed(who, free)
        raise
    for who in guessers:
        services.limiter.succeeded(who)


@asynccontextmanager
async def _guess_from(services: Services, device: Token) -> AsyncIterator[None]:
    who = f"device {device.id}"
    services.limiter.check_failures(who)
    try:
        yield
    except (SignedOut, Forbidden):
        if services.limiter.failed(who) >= DEVICE_FAILURES_MAX:
            await services.accounts.revoke_tokens([device])
        raise
    services.limiter.succeeded(who)


async def new_device(services: Services, session: Token) -> str:
    """Make the browser of this session a known one and return the secret of its device token. The oldest known
    browser beyond DEVICES_MAX is forgotten."""
    account = services.accounts.accounts[session.account_id]
    expires_at = later(services.clock(), DEVICE_S)
    secret = await issue(
        services, account, "device", "browser", expires_at, check=lambda _: check_still_in(services, session)
    )
    known = [token for token in services.accounts.tokens_of(account.id) if token.kind == "device"]
    await services.accounts.revoke_tokens(known[:-DEVICES_MAX])
    return secret


async def with_password(services: Services, email: str, password: str) -> str:
    """Return the secret of a new cookie for the right password. Raise SignedOut, the same for whatever is wrong."""
    account = services.accounts.by_email(email)
    stored = account.password if account is not None and account.password is not None else _decoy
    wrong = SignedOut("This email and password do not go together. Nothing was changed. Try again.")
    matching = await _matching(stored, password)
    if matching is None or account is None or account.password is None:
        raise wrong

    def check(now: Account) -> None:  # the password may have changed during the verification
        if now.password != stored:
            raise wrong

    cookie = await new_cookie(services, account, check)
    if matching != _spellings(password)[0]:
        await _rehash(services, account, check, password)
    return cookie


def _spellings(password: str) -> list[str]:
    """Return the password as it is hashed now, then as typed: versions before RFC 8265 hashed what was typed."""
    try:
        return list(dict.fromkeys((passwords.prepare(password), password)))
    except ValueError:
        return [password]


async def _matching(stored: str, password: str) -> str | None:
    """Return the spelling of the password that has this hash."""

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
    """Run `work` in the threads for password hashes. Raise Busy if too many wait."""
    if _hashing.waiting() >= HASHES_WAITING_MAX:
        raise Busy(
            "Too many people are signing in. Nothing was changed. Try again in a few seconds.",
            retry_after_s=HASHES_RETRY_S,
        )
    return await asyncio.get_running_loop().run_in_executor(_hashing, work)


async def _rehash(services: Services, account: Account, check: AccountCheck, password: str) -> None:
    """Replace the hash of the bytes as typed. Sessions stay."""

    def change(now: Account) -> Account:
        check(now)
        return msgspec.structs.replace(now, password=password_hash)

    try:
        password_hash = await hashed(password)
        await services.accounts.change_account(account.id, change)
    except Exception as error:  # the user is signed in, and the next sign-in tries again
        _log.error("a password was not rehashed", exc_info=error)


async def hashed(password: str) -> str:
    """Hash a new password. Raise BadRequest if it is too short or has a character that passwords cannot have."""
    try:
        prepared = passwords.prepare(password)
    except ValueError as error:
        raise BadRequest(
            f"A password cannot contain this character: {error}. Nothing was changed."
        ) from error
    if not PASSWORD_MIN <= len(prepared) <= PASSWORD_MAX:
        raise BadRequest(f"A password has at least {PASSWORD_MIN} characters. Nothing was changed.")
    return await _in_hashing_pool(partial(_hasher.hash, prepared))


async def change_password(
    services: Services, account: Account, current: str | None, new: str, keep: Token | None
) -> None:
    """Set a password; every other browser of the account is signed out. Raises Forbidden if `current` is wrong."""
    known = account.password
    if known is not None and await _matching(known, current or "") is None:
        raise Forbidden("The current password is not right. Nothing was changed.")
    password = await hashed(new)

    def check(now: Account) -> None:  # hashing takes its time: somebody may have changed it meanwhile
        if now.password != known:
            raise SignedOut("The password was changed elsewhere meanwhile. Nothing was changed here.")
        if keep is not None:  # an account without a password has the same none after a reset
            check_still_in(services, keep)

    await set_password(services, account.id, password, check, keep)


async def set_password(
    services: Services,
    account_id: str,
    password: str | None,
    check: AccountCheck = lambda _: None,
    keep: Token | None = None,
) -> Account:
    """`password`: its hash. The commit that sets it ends all cookies and links of the account, but one: no crash leaves
    them behind. Open streams end with them. `check` may raise."""

    def change(now: Account) -> Account:
        check(now)
        return msgspec.structs.replace(now, password=password)

    changed = await services.accounts.change_account(
        account_id, change, lambda token: token.kind != "api" and (keep is None or token.id != keep.id)
    )
    services.hub.wake_user(account_id)
    return changed


async def sign_out(services: Services, token: Token) -> None:
    """End this cookie, and the streams that were opened with it."""
    await services.accounts.revoke_tokens([token])
    services.hub.wake_user(token.account_id)
