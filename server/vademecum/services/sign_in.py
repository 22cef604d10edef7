"""Signing in: secrets are 256 random bits, stored as sha-256; passwords are argon2id and slow on purpose.

A sign-in link works once and for fifteen minutes. A wrong password costs the same time as an unknown address.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta

import msgspec
import structlog
from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError
from argon2.low_level import ARGON2_VERSION

from vademecum.engines.duckdb.accounts import Account, Check, Token, TokenKind, email_key
from vademecum.errors import BadRequest, Forbidden, SignedOut
from vademecum.services.documents import new_id
from vademecum.services.parts import Parts

LINK_MINUTES = 15
COOKIE_DAYS = 90
API_TOKENS_MAX = 100  # of an account: all tokens are held in memory
FORGET_EVERY_S = 86_400.0
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


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()


def find_token(parts: Parts, secret: str, kind: TokenKind) -> Token | None:
    """The unexpired token of that kind with this secret."""
    token = parts.accounts.tokens.get(digest(secret))
    if token is None or token.kind != kind or not is_valid(parts, token):
        return None
    return token


def is_valid(parts: Parts, token: Token) -> bool:
    """Still stored, not expired, its account still there. Streams ask again at each event and heartbeat."""
    stored = parts.accounts.tokens.get(token.hash)
    if stored is None or stored.id != token.id or token.account_id not in parts.accounts.accounts:
        return False
    return stored.expires_at is None or stored.expires_at > parts.clock()


def check_still_in(parts: Parts, token: Token) -> None:
    """Raises SignedOut when what a request came with has ended since. The local door's is stored nowhere, and stays."""
    if token.hash and not is_valid(parts, token):
        raise SignedOut("This sign-in ended before all of the request had come. Nothing was changed.")


def later(parts: Parts, **delta: float) -> str:
    """The time on the server's clock after so long, as ISO 8601."""
    moment = datetime.fromisoformat(parts.clock()).astimezone(UTC) + timedelta(**delta)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


async def issue(
    parts: Parts,
    account: Account,
    kind: TokenKind,
    name: str,
    expires_at: str | None,
    most: int | None = None,
    check: Check | None = None,
) -> str:
    """Store a new secret and return it: the only time that it can be seen. `check`: may it still be given, at the very
    moment when it is? Raises Conflict when the account has `most` of this kind already."""
    secret = secrets.token_urlsafe(32)
    token = Token(new_id(), account.id, kind, name, digest(secret), parts.clock(), expires_at)
    await parts.accounts.save_token(token, most, check)
    return secret


async def new_api_token(parts: Parts, account: Account, name: str, by: Token) -> str:
    """Its secret, for whoever is in by another. Raises Conflict when the account has as many as it may, SignedOut."""
    return await issue(parts, account, "api", name, None, API_TOKENS_MAX, lambda _: check_still_in(parts, by))


async def new_link(parts: Parts, account: Account) -> str:
    """The path of a one-time sign-in link."""
    return f"/v1/sign-in?link={await issue(parts, account, 'link', 'sign-in link', later(parts, minutes=LINK_MINUTES))}"


async def use_link(parts: Parts, secret: str) -> str:
    """Trade a link for a cookie's secret. Raises SignedOut when it was used or is too old."""
    token = find_token(parts, secret, "link")
    used = SignedOut("This sign-in link was used already or is older than 15 minutes. Ask for a new one.")
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
    return await issue(parts, account, "cookie", "browser", later(parts, days=COOKIE_DAYS), check=check)


async def keep_alive(parts: Parts, token: Token) -> bool:
    """Begin the days of a cookie in use anew, once a third of them is over: a burst of requests writes once, and a
    month of them too. Returns whether that was done; a cookie that is not valid any more stays so."""
    is_fresh = token.expires_at is None or token.expires_at > later(parts, days=COOKIE_DAYS * 2 / 3)
    if is_fresh or not is_valid(parts, token):
        return False
    try:
        return await parts.accounts.extend_token(token, later(parts, days=COOKIE_DAYS))
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


@asynccontextmanager
async def forgetting_expired(parts: Parts) -> AsyncIterator[None]:
    """At the start, and each day for as long as the block runs."""
    await forget_expired(parts)
    stop = asyncio.Event()
    task = asyncio.create_task(_go_on_forgetting(parts, stop))
    try:
        yield
    finally:
        stop.set()  # not cancelled: what has left the memory shall leave the file too
        await task


async def _go_on_forgetting(parts: Parts, stop: asyncio.Event) -> None:
    while not stop.is_set():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), FORGET_EVERY_S)
            return
        try:
            await forget_expired(parts)
        except Exception as error:  # they open nothing all the same, and tomorrow it is tried again
            _log.error("expired sign-ins were not forgotten", exc_info=error)


async def forget_expired(parts: Parts) -> None:
    """Cookies and links that nobody can use any more leave the file."""
    now = parts.clock()
    await parts.accounts.remove_tokens(
        t for t in list(parts.accounts.tokens.values()) if t.expires_at is not None and t.expires_at <= now
    )


async def sign_out(parts: Parts, token: Token) -> None:
    """End this cookie, and the streams that were opened with it."""
    await parts.accounts.remove_tokens([token])
    parts.hub.wake_user(token.account_id)
