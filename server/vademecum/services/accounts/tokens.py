"""Tokens: what lets somebody in. A sign-in link, a browser's cookie, a program's API token: each a secret of 256 random
bits that is stored as its sha-256 and can be seen once.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import structlog

from vademecum.errors import Forbidden, NotFound, SignedOut
from vademecum.model.records.accounts import Account, AccountCheck, Token, TokenKind
from vademecum.model.schema.timestamps import DAY_S
from vademecum.services.runtime.container import Services
from vademecum.services.runtime.ids import new_id

API_TOKENS_MAX = 100  # of an account: all tokens are held in memory
FORGET_EVERY_S: float = DAY_S
_log = structlog.get_logger("vademecum.tokens")


class TokenInfo(msgspec.Struct, rename="camel"):
    """A token without its secret."""

    id: str
    name: str
    kind: str
    created_at: str
    expires_at: str | None


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()


def find_token(services: Services, secret: str, kind: TokenKind) -> Token | None:
    """The unexpired token of that kind with this secret."""
    token = services.accounts.tokens.get(digest(secret))
    if token is None or token.kind != kind or not is_valid(services, token):
        return None
    return token


def is_valid(services: Services, token: Token) -> bool:
    """Still stored, not expired, its account still there. Streams ask again at each event and heartbeat."""
    stored = services.accounts.tokens.get(token.hash)
    if stored is None or stored.id != token.id or token.account_id not in services.accounts.accounts:
        return False
    return stored.expires_at is None or stored.expires_at > services.clock()


def check_still_in(services: Services, token: Token) -> None:
    """Raises SignedOut when what a request came with has ended since. The local door's is stored nowhere, and stays."""
    if token.hash and not is_valid(services, token):
        raise SignedOut("This sign-in ended before all of the request had come. Nothing was changed.")


def check_lets_in(by: Token, instead: str) -> None:
    """Before whoever came by `by` makes what lets somebody in: a token, a password, a sign-in link. Raises Forbidden for
    an API token, which its thief would outlive by it. `instead`: a sentence that says how it is done. The local door's
    is stored nowhere: it is a command of the machine that holds all of it."""
    if by.kind == "api" and by.hash:
        raise Forbidden(
            "This request came by an API token, and such a token makes no token, password or sign-in link. Nothing was "
            f"changed. {instead}"
        )


async def issue(
    services: Services,
    account: Account,
    kind: TokenKind,
    name: str,
    expires_at: str | None,
    most: int | None = None,
    check: AccountCheck | None = None,
) -> str:
    """Store a new secret and return it: the only time that it can be seen. `check`: may it still be given, at the very
    moment when it is? Raises Conflict when the account has `most` of this kind already."""
    secret = secrets.token_urlsafe(32)
    token = Token(new_id(), account.id, kind, name, digest(secret), services.clock(), expires_at)
    await services.accounts.save_token(token, most, check)
    return secret


async def new_api_token(services: Services, account: Account, name: str, by: Token) -> str:
    """Its secret, for whoever is in by `by`. Raises Conflict when the account has as many as it may, Forbidden for who
    came by an API token, SignedOut."""
    check_lets_in(
        by,
        "Make one with `vademecum token create EMAIL` on the server's machine, or from a browser that is signed in.",
    )
    return await issue(
        services, account, "api", name, None, API_TOKENS_MAX, lambda _: check_still_in(services, by)
    )


def api_tokens(services: Services, account: Account) -> list[TokenInfo]:
    found = [t for t in services.accounts.tokens_of(account.id) if t.kind == "api"]
    return [TokenInfo(t.id, t.name, t.kind, t.created_at, t.expires_at) for t in found]


async def revoke(services: Services, account: Account, token_id: str) -> None:
    """Raises NotFound for an unknown token, or somebody else's. Open streams end at once."""
    found: Token | None = next((t for t in services.accounts.tokens_of(account.id) if t.id == token_id), None)
    if found is None or found.kind != "api":
        raise NotFound("There is no such token.")
    await services.accounts.revoke_tokens([found])
    services.hub.wake_user(account.id)


@asynccontextmanager
async def forgetting_expired(services: Services) -> AsyncIterator[None]:
    """At the start, and each day for as long as the block runs."""
    await _forget_expired_or_log(services)
    stop = asyncio.Event()
    task = asyncio.create_task(_go_on_forgetting(services, stop))
    try:
        yield
    finally:
        stop.set()  # not cancelled: what has left the memory shall leave the file too
        await task


async def _go_on_forgetting(services: Services, stop: asyncio.Event) -> None:
    while not stop.is_set():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), FORGET_EVERY_S)
            return
        await _forget_expired_or_log(services)


async def _forget_expired_or_log(services: Services) -> None:
    try:
        await forget_expired(services)
    except Exception as error:  # they open nothing all the same, and the upkeep corrects the file
        _log.error("expired sign-ins were not forgotten", exc_info=error)


async def forget_expired(services: Services) -> None:
    """Cookies and links that nobody can use any more leave the file."""
    now = services.clock()
    await services.accounts.revoke_tokens(
        t for t in list(services.accounts.tokens.values()) if t.expires_at is not None and t.expires_at <= now
    )
