"""Signing in and out: secrets are 256 random bits, stored as sha-256; passwords are argon2id."""

from __future__ import annotations

import hashlib

from vademecum.engines.duckdb.accounts import Token, TokenKind
from vademecum.services.parts import Parts


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def find_token(parts: Parts, secret: str, kind: TokenKind) -> Token | None:
    """The unexpired token of that kind with this secret."""
    token = parts.accounts.tokens.get(digest(secret))
    if token is None or token.kind != kind or not is_valid(parts, token):
        return None
    return token


def is_valid(parts: Parts, token: Token) -> bool:
    """Still stored, not expired, its account still there. Streams ask again at each event and heartbeat."""
    if parts.accounts.tokens.get(token.hash) is not token or token.account_id not in parts.accounts.accounts:
        return False
    return token.expires_at is None or token.expires_at > parts.clock()
