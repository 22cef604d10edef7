"""Define accounts and tokens as a records engine stores them."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Literal

import msgspec

from vademecum.model.sync.quotas import Tier

TokenKind = Literal["api", "cookie", "link", "device"]


def email_key(email: str) -> str:
    """Return the form in which two spellings of an email address are equal."""
    return unicodedata.normalize("NFC", email.strip()).casefold()


class Account(msgspec.Struct, frozen=True):
    """An account. `password`: an argon2id hash, or None if the account signs in by link or token only."""

    id: str
    email: str
    tier: Tier
    admin: bool
    password: str | None
    created_at: str


class Token(msgspec.Struct, frozen=True):
    """A stored token of an account. `hash`: the SHA-256 (hex) of its secret, 256 random bits that are shown once."""

    id: str
    account_id: str
    kind: TokenKind
    name: str
    hash: str
    created_at: str
    expires_at: str | None = None


AccountCheck = Callable[[Account], None]  # raises an error if the account must not be changed


class AdoptionResult(msgspec.Struct):
    """The result of adopting the accounts of a backup.

    `count`: the number of adopted accounts. `replaced`: ids of accounts that they replaced. `skipped`: emails that were
    not adopted because they are in use.
    """

    count: int = 0
    replaced: list[str] = msgspec.field(default_factory=list)
    skipped: list[str] = msgspec.field(default_factory=list)
