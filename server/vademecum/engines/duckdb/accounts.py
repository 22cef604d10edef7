"""Who may use this server: accounts and hashed secrets, in a file of their own that stays attached.

All accounts and tokens are held in memory too (a server has few); the file is written first.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from vademecum.engines.duckdb import migrate
from vademecum.engines.duckdb.instance import Cursor, Instance
from vademecum.model.limits import Tier

TokenKind = Literal["api", "cookie", "link"]


class Account(msgspec.Struct, frozen=True):
    """`password`: an argon2id hash, or None when the account signs in by link or token only."""

    id: str
    email: str
    tier: Tier
    admin: bool
    password: str | None
    created_at: str


class Token(msgspec.Struct, frozen=True):
    """A secret of an account. `hash`: sha-256 (hex) of 256 random bits; the secret itself is shown once."""

    id: str
    account_id: str
    kind: TokenKind
    name: str
    hash: str
    created_at: str
    expires_at: str | None = None


class Accounts:
    def __init__(self, instance: Instance, alias: str) -> None:
        self._instance = instance
        self._alias = alias
        self.accounts: dict[str, Account] = {}
        self.tokens: dict[str, Token] = {}  # by hash

    @classmethod
    def open(cls, instance: Instance, path: Path, migrations: Path, record_migrations: Path) -> Accounts:
        """Attach (or create) the file; refuse to start if a migration that was ever applied here has changed."""
        path.parent.mkdir(parents=True, exist_ok=True)
        migrate.migrate_file(path, migrate.load(migrations))
        alias, _ = instance.attach(path)
        accounts = cls(instance, alias)
        cursor = instance.cursor()
        accounts._check_record_migrations(cursor, migrate.load(record_migrations))
        accounts._load(cursor)
        return accounts

    def _check_record_migrations(self, cursor: Cursor, known: tuple[migrate.Migration, ...]) -> None:
        """Users' files are opened on demand; their migrations are checked here once, at the start."""
        table = f"{self._alias}.main.record_migrations"
        cursor.execute(f"CREATE TABLE IF NOT EXISTS {table} (name VARCHAR, checksum VARCHAR)")
        applied = cursor.execute(f"SELECT name, checksum FROM {table}").fetchall()
        for migration in migrate.pending(known, applied, "this data folder"):
            cursor.execute(f"INSERT INTO {table} VALUES (?, ?)", [migration.name, migration.checksum])

    def _load(self, cursor: Cursor) -> None:
        for row in self._rows(cursor, "accounts", Account.__struct_fields__):
            account = msgspec.convert(row, Account)
            self.accounts[account.id] = account
        for row in self._rows(cursor, "tokens", Token.__struct_fields__):
            token = msgspec.convert(row, Token)
            self.tokens[token.hash] = token

    def _rows(self, cursor: Cursor, table: str, fields: Sequence[str]) -> list[dict[str, Any]]:
        found = cursor.execute(f"SELECT {', '.join(fields)} FROM {self._alias}.main.{table}").fetchall()
        return [dict(zip(fields, row, strict=True)) for row in found]

    def by_email(self, email: str) -> Account | None:
        wanted = email.strip().casefold()
        return next((a for a in self.accounts.values() if a.email.casefold() == wanted), None)

    def tokens_of(self, account_id: str) -> list[Token]:
        return sorted(
            (t for t in self.tokens.values() if t.account_id == account_id), key=lambda t: t.created_at
        )

    async def save_account(self, account: Account) -> None:
        await self._replace("accounts", "id", account)
        self.accounts[account.id] = account

    async def save_token(self, token: Token) -> None:
        await self._replace("tokens", "id", token)
        self.tokens[token.hash] = token

    async def remove_token(self, token: Token) -> None:
        self.tokens.pop(token.hash, None)
        await self._delete("tokens", "id", token.id)

    async def remove_account(self, account_id: str) -> None:
        """The account and all its secrets. Its folder is the business of `Users.remove`."""
        self.tokens = {h: t for h, t in self.tokens.items() if t.account_id != account_id}
        self.accounts.pop(account_id, None)
        await self._delete("tokens", "account_id", account_id)
        await self._delete("accounts", "id", account_id)

    async def _replace(self, table: str, key: str, row: Account | Token) -> None:
        fields = row.__struct_fields__
        names, marks = ", ".join(fields), ", ".join("?" * len(fields))
        values = [getattr(row, name) for name in fields]
        statement = f"INSERT OR REPLACE INTO {self._alias}.main.{table} ({names}) VALUES ({marks})"
        await self._instance.run(lambda c: c.execute(statement, values))

    async def _delete(self, table: str, field: str, value: str) -> None:
        statement = f"DELETE FROM {self._alias}.main.{table} WHERE {field} = ?"
        await self._instance.run(lambda c: c.execute(statement, [value]))

    def ping(self, cursor: Cursor) -> None:
        """A real read, for /ready."""
        cursor.execute(f"SELECT count(*) FROM {self._alias}.main.accounts").fetchall()
