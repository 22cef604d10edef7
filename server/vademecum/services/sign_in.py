"""Signing in, by a password or by a link that works once, and out again. A browser that is in has a cookie.

Passwords are argon2id and slow on purpose; a wrong one costs the same time as an unknown address.
"""

from __future__ import annotations

import asyncio
import base64
import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import structlog
from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError
from argon2.low_level import ARGON2_VERSION

from vademecum.engines.duckdb.accounts import Account, Check, Token, email_key
from vademecum.errors import BadRequest, Forbidden, SignedOut
from vademecum.model.moments import DAY_S, later
from vademecum.services.parts import Parts
from vademecum.services.tokens import check_still_in, digest, find_token, is_valid, issue

LINK_MINUTES = 15
COOKIE_S = 90 * DAY_S
PASSWORD_MIN = 10
PASSWORD_MAX = 1000
_log = structlog.get_logger("vademecum.sign_in")
_hasher = PasswordHasher()
_hashing = asyncio.Semaphore(2)  # each takes 64 MB and a core


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


async def new_link(parts: Parts, account: Account) -> str:
    """The path of a one-time sign-in link."""
    expires_at = later(parts.clock(), LINK_MINUTES * 60)
    return f"/v1/sign-in?link={await issue(parts, account, 'link', 'sign-in link', expires_at)}"


async def use_link(parts: Parts, secret: str) -> str:
    """Trade a link for a cookie's secret. Raises SignedOut when it was used or is too old."""
    token = find_token(parts, secret, "link")
    used = SignedOut(
        f"This sign-in link was used already or is older than {LINK_MINUTES} minutes. Ask for a new one."
    )
    if token is None:
        raise used

    def check(_: Account) -> None:
        if not is_valid(parts, token):
            raise used

    # Nothing comes between the two: of several who use it at once, the others find it gone.
    cookie = await new_cookie(parts, parts.accounts.accounts[token.account_id], check)
    await parts.accounts.remove_tokens([token])
    return cookie


async def new_cookie(parts: Parts, account: Account, check: Check | None = None) -> str:
    expires_at = later(parts.clock(), COOKIE_S)
    return await issue(parts, account, "cookie", "browser", expires_at, check=check)


async def keep_alive(parts: Parts, token: Token) -> bool:
    """Begin the days of a cookie in use anew, once a third of them is over: a burst of requests writes once, and a
    month of them too. Returns whether that was done; a cookie that is not valid any more stays so."""
    is_fresh = token.expires_at is None or token.expires_at > later(parts.clock(), COOKIE_S * 2 / 3)
    if is_fresh or not is_valid(parts, token):
        return False
    try:
        return await parts.accounts.extend_token(token, later(parts.clock(), COOKIE_S))
    except Exception as error:  # the request itself was carried out, and the next one tries again
        _log.error("a session was not extended", exc_info=error)
        return False


@contextmanager
def guess(parts: Parts, address: str, email: str) -> Iterator[None]:
    """Around each try of a password: counted by account, and an address whose tries fail waits ever longer. Raises
    RateLimited.

    What somebody typed is kept as a digest, of one length, under one key for all spellings of an email.
    """
    parts.limiter.take("sign_in", f"account {digest(email_key(email))}")
    try:
        yield
    except (SignedOut, Forbidden):
        parts.limiter.failed(address)
        raise
    parts.limiter.succeeded(address)


async def with_password(parts: Parts, email: str, password: str) -> str:
    """A cookie's secret for the right password. Raises SignedOut, the same for all that is wrong."""
    account = parts.accounts.by_email(email)
    stored = account.password if account is not None and account.password is not None else _decoy
    wrong = SignedOut("This email and password do not go together. Nothing was changed. Try again.")
    if not await _verified(stored, password) or account is None or account.password is None:
        raise wrong

    def check(now: Account) -> None:  # it was changed, or taken away, while it was looked at
        if now.password != stored:
            raise wrong

    return await new_cookie(parts, account, check)


async def _verified(stored: str, password: str) -> bool:
    def check() -> bool:
        try:
            return _hasher.verify(stored, password)
        except (Argon2Error, InvalidHashError):
            return False

    async with _hashing:
        return await asyncio.to_thread(check)


async def hashed(password: str) -> str:
    """Raises BadRequest for a password too short to be one."""
    if not PASSWORD_MIN <= len(password) <= PASSWORD_MAX:
        raise BadRequest(f"A password has at least {PASSWORD_MIN} characters. Nothing was changed.")
    async with _hashing:
        return await asyncio.to_thread(_hasher.hash, password)


async def change_password(
    parts: Parts, account: Account, current: str | None, new: str, keep: Token | None
) -> None:
    """Set a password; every other browser of the account is signed out. Raises Forbidden if `current` is wrong."""
    known = account.password
    if known is not None and not await _verified(known, current or ""):
        raise Forbidden("The current password is not right. Nothing was changed.")
    password = await hashed(new)

    def check(now: Account) -> None:  # hashing takes its time: somebody may have changed it meanwhile
        if now.password != known:
            raise SignedOut("The password was changed elsewhere meanwhile. Nothing was changed here.")
        if keep is not None:  # an account without a password has the same none after a reset
            check_still_in(parts, keep)

    await set_password(parts, account.id, password, check, keep)


async def set_password(
    parts: Parts,
    account_id: str,
    password: str | None,
    check: Check = lambda _: None,
    keep: Token | None = None,
) -> Account:
    """`password`: its hash. The commit that sets it ends all cookies and links of the account, but one: no crash leaves
    them behind. Open streams end with them. `check` may raise."""

    def change(now: Account) -> Account:
        check(now)
        return msgspec.structs.replace(now, password=password)

    changed = await parts.accounts.change_account(
        account_id, change, lambda token: token.kind != "api" and (keep is None or token.id != keep.id)
    )
    parts.hub.wake_user(account_id)
    return changed


async def sign_out(parts: Parts, token: Token) -> None:
    """End this cookie, and the streams that were opened with it."""
    await parts.accounts.remove_tokens([token])
    parts.hub.wake_user(token.account_id)
