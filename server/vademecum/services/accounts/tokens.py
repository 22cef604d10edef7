"""Issue, check and revoke tokens: one-time sign-in links, browser sessions and API tokens.

Each token is a secret of 256 random bits. The secret is shown once, and only its SHA-256 is stored.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec
import structlog

from vademecum.errors import Forbidden, NotFound, SignedOut
from vademecum.model.records.accounts import Account, AccountCheck, Token, TokenKind
from vademecum.model.records.store_interface import AccountStore
from vademecum.model.schema.timestamps import DAY_S
from vademecum.services.runtime.ids import new_id
from vademecum.services.sync.stream import Hub

API_TOKENS_MAX = 100  # the maximum per account, because all tokens are in memory
PURGE_INTERVAL_S: float = DAY_S
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


def info(token: Token) -> TokenInfo:
    return TokenInfo(token.id, token.name, token.kind, token.created_at, token.expires_at)


def check_may_create_credentials(token: Token, alternative: str) -> None:
    """Raise Forbidden for an API token. A credential created with a stolen token would outlive the token's revocation.

    `alternative`: a sentence about another way to create the credential. Local commands may create credentials, because
    they can read the data folder anyway. Their token has no hash, because it is not stored.
    """
    if token.kind == "api" and token.hash:
        raise Forbidden(
            "An API token cannot create a token, a password or a sign-in link. Nothing was changed. "
            + alternative
        )


class TokenService:
    def __init__(self, accounts: AccountStore, hub: Hub, clock: Callable[[], str]) -> None:
        self._accounts = accounts
        self._hub = hub
        self._clock = clock

    def find(self, secret: str, kind: TokenKind) -> Token | None:
        """Return the valid token of this kind with this secret, or None."""
        token = self._accounts.tokens.get(digest(secret))
        return token if token is not None and token.kind == kind and self.is_valid(token) else None

    def is_valid(self, token: Token) -> bool:
        """Return whether the token is stored and not expired, and its account exists.

        Streams call this function at each event and heartbeat.
        """
        stored = self._accounts.tokens.get(token.hash)
        if stored is None or stored.id != token.id or token.account_id not in self._accounts.accounts:
            return False
        return stored.expires_at is None or stored.expires_at > self._clock()

    def check_valid(self, token: Token) -> None:
        """Raise SignedOut if the token of a request is not valid any more.

        Credentials of local commands always pass.
        """
        if token.hash and not self.is_valid(token):
            raise SignedOut("You were signed out before the request was complete. Nothing was changed.")

    async def issue(
        self,
        account: Account,
        kind: TokenKind,
        name: str,
        expires_at: str | None,
        max_count: int | None = None,
        check: AccountCheck | None = None,
    ) -> str:
        """Store a new token and return its secret, which cannot be read again.

        `check` runs in the transaction and may raise an error. Raises Conflict if the account has `max_count` tokens of
        this kind.
        """
        secret = secrets.token_urlsafe(32)
        token = Token(new_id(), account.id, kind, name, digest(secret), self._clock(), expires_at)
        await self._accounts.save_token(token, max_count, check)
        return secret

    async def create_api_token(self, account: Account, name: str, requested_by: Token) -> str:
        """Return the secret of a new API token.

        Raises Conflict if the account has too many tokens, Forbidden if an API token made the request, and SignedOut if
        the token of the request is no longer valid.
        """
        check_may_create_credentials(
            requested_by,
            "Create one with `vademecum token create EMAIL` on the server's machine, or in a browser that is signed in.",
        )
        return await self.issue(
            account, "api", name, None, API_TOKENS_MAX, lambda _: self.check_valid(requested_by)
        )

    def list_api_tokens(self, account: Account) -> list[TokenInfo]:
        return [info(token) for token in self._accounts.tokens_of(account.id) if token.kind == "api"]

    async def revoke(self, account: Account, token_id: str) -> None:
        """Revoke an API token and end its streams. Raises NotFound, also for a token of another account."""
        token = next((t for t in self._accounts.tokens_of(account.id) if t.id == token_id), None)
        if token is None or token.kind != "api":
            raise NotFound("There is no such token.")
        await self._accounts.revoke_tokens([token])
        self._hub.wake_user(account.id)

    @asynccontextmanager
    async def purging_expired(self) -> AsyncIterator[None]:
        """Purge expired tokens now, and daily while the block runs."""
        await self._purge_or_log()
        stop = asyncio.Event()
        task = asyncio.create_task(self._purge_daily(stop))
        try:
            yield
        finally:
            # Do not cancel the task: tokens that it has removed from memory must also be removed from the file.
            stop.set()
            await task

    async def _purge_daily(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), PURGE_INTERVAL_S)
                return
            await self._purge_or_log()

    async def _purge_or_log(self) -> None:
        try:
            await self.purge_expired()
        except Exception as error:  # only log it: expired tokens are invalid, and `repair_file` runs later
            _log.error("cannot purge expired tokens", exc_info=error)

    async def purge_expired(self) -> None:
        """Purge all tokens that have expired."""
        now = self._clock()
        await self._accounts.revoke_tokens(
            t
            for t in list(self._accounts.tokens.values())
            if t.expires_at is not None and t.expires_at <= now
        )
