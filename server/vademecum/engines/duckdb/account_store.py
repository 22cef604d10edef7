"""Store accounts and hashed secrets in a file that stays attached.

All accounts and tokens are also in memory, because a server has few of them. A change that grants access is written to
the file first. A change that revokes access is applied to memory first, so a failed write never grants access. Changes
run one at a time, so a late change cannot restore a deleted account. After a failed write the file may or may not
contain the change: the next change, or the maintenance task, makes the file match memory.

Every change is checkpointed into the file before it is acknowledged (1.5 ms, also with 20,000 tokens). So a damaged log
contains at most one unacknowledged change. Without the checkpoint, truncating a damaged log would remove new accounts
and restore revoked tokens and old passwords.
"""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import msgspec
import structlog

from vademecum.engines.duckdb import migrations as migrate
from vademecum.engines.duckdb.cursor import Cursor
from vademecum.engines.duckdb.instance import Instance
from vademecum.engines.duckdb.paths import file_identity
from vademecum.engines.duckdb.user_database import rewrite_file
from vademecum.errors import Broken, Busy, Conflict, NotFound, is_full, not_now
from vademecum.model.records.accounts import (
    Account,
    AccountCheck,
    AdoptionResult,
    Token,
    TokenKind,
    email_key,
)
from vademecum.model.records.store_interface import AccountStore

Statement = tuple[str, list[Any]]
S = TypeVar("S", bound=msgspec.Struct)
REPAIRED = (
    "The file contains all acknowledged accounts, tokens and passwords. A change that was in progress when the server "
    "stopped may be missing: repeat it."
)
CURE = (
    "otherwise stop the server and replace the file with the `accounts.duckdb` of a backup. Documents are not "
    "affected. Accounts, tokens and passwords are then those of the backup, so repeat later revocations"
)
REPLACED = (
    "accounts.duckdb was removed or replaced while the server is running, so changes of accounts, passwords and tokens "
    "cannot be stored. Existing ones still work. An administrator must put the file back or restart the server."
)
ACCOUNTS = "accounts"  # the `owner` argument of `Instance.run` for calls on this file
_log = structlog.get_logger("vademecum.accounts")


class DuckDBAccountStore(AccountStore):
    def __init__(
        self,
        instance: Instance,
        path: Path,
        migrations: tuple[migrate.Migration, ...],
        on_notice: Callable[[str], None],
    ) -> None:
        self._instance = instance
        self._path = path
        self._migrations = migrations
        self._on_notice = on_notice
        self._is_suspect = False  # if true, an fsync may have failed: rewrite the file before any other use
        self._is_unsure = False  # if true, a change may have failed: correct the file with the next change
        self._identity: tuple[int, int] | None = None  # of the file that was last attached
        self._alias = self._attach()  # empty while the file is not attached
        self._has_failed_checkpoint = False  # if true, the last commits are only in the log
        instance.on_rebuilt.append(self._forget_file)
        self._lock = threading.Lock()  # one thread at a time, because a rewrite replaces the file
        self._pinging: asyncio.Future[None] | None = None
        self._turn = asyncio.Lock()  # serializes changes of file and memory
        self._ids: dict[str, str] = {}  # maps `email_key` to the account id
        self.accounts: dict[str, Account] = {}
        self.tokens: dict[str, Token] = {}  # maps the hash to the token
        self._tokens_of: dict[str, dict[str, Token]] = {}  # maps the account id to its tokens by hash

    @classmethod
    def open(
        cls,
        instance: Instance,
        path: Path,
        migrations: Path,
        record_migrations: Path,
        on_notice: Callable[[str], None],
    ) -> DuckDBAccountStore:
        """Attach or create the file.

        `on_notice` is called with a sentence if a damaged log was truncated. Raises Busy if the disk is full, and
        Broken if the file is damaged or a migration that was applied to it has changed.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        for stale in (".new", ".new.wal"):  # incomplete files that a crash left behind
            path.with_name(path.name + stale).unlink(missing_ok=True)
        known = migrate.load(migrations), migrate.load(record_migrations)
        try:
            instance.shared_files = f"{path}; {CURE}"
            with instance.sized_deadline(path):
                accounts = cls(instance, path, known[0], on_notice)
                accounts._load(instance.cursor(), known[1])
        except (duckdb.Error, msgspec.ValidationError) as error:
            if isinstance(error, duckdb.Error) and is_full(error):
                raise not_now() from error
            if isinstance(error, duckdb.InterruptException):  # by the watchdog
                instance.end(
                    f"a statement takes too long: the disk is too slow or hangs. Check the disk of {instance.shared_files}"
                )
                raise not_now() from error
            message = str(error).partition("\n")[0]
            raise Broken(
                f"The accounts' file {path} is damaged ({message}). Nothing was changed. Restore an undamaged copy, "
                f"{CURE}."
            ) from error
        return accounts

    def _load(self, cursor: Cursor, record_migrations: tuple[migrate.Migration, ...]) -> None:
        self._check_record_migrations(cursor, record_migrations)
        self._checkpoint(cursor)
        for account in _stored(cursor, self._attached(), "accounts", Account):
            self._remember(account)
        for token in _stored(cursor, self._attached(), "tokens", Token):
            self._remember_token(token)

    def _attach(self) -> str:
        alias, notice = migrate.attach_migrated(
            self._instance, self._path, self._migrations, "the accounts' file", CURE
        )
        self._identity = file_identity(self._path)
        if notice:
            self._on_notice(f"{notice} {REPAIRED}")
        return alias

    def _forget_file(self) -> None:
        """Mark the file as detached and suspect after DuckDB was restarted."""
        self._alias, self._is_suspect, self._is_unsure = "", True, True

    def _attached(self) -> str:
        """Return the file's alias, attaching the file again if necessary.

        Raises Busy if the path leads to another file or to none. Commits to the attached file would then be lost.
        """
        if self._is_replaced():
            raise Busy(REPLACED, retry_after_s=60)
        if self._is_suspect:
            self._rewrite_detached()
            self._is_suspect = False
        self._alias = self._alias or self._attach()
        return self._alias

    def _is_replaced(self) -> bool:
        return file_identity(self._path) != self._identity

    def _rewrite_detached(self) -> None:
        try:
            rewrite_file(self._instance, self._path)
        finally:
            self._identity = file_identity(self._path)

    @contextmanager
    def _detached(self) -> Iterator[None]:
        """Detach the file during the block; it then contains all commits.

        Raises duckdb.Error if that is not possible.
        """
        with self._lock:
            alias, self._alias = self._attached(), ""
            try:
                self._instance.detach(alias)
                yield
            finally:
                self._attached()

    def _check_record_migrations(self, cursor: Cursor, known: tuple[migrate.Migration, ...]) -> None:
        """Record the migrations of users' files. Raises Broken if one that was recorded before has changed.

        The check runs once, when the server starts, because users' files are opened later, on demand.
        """
        table = f"{self._alias}.main.record_migrations"
        cursor.execute(f"CREATE TABLE IF NOT EXISTS {table} (name VARCHAR, checksum VARCHAR)")
        applied = cursor.execute(f"SELECT name, checksum FROM {table}").fetchall()
        for migration in migrate.pending(known, applied, "this data folder"):
            cursor.execute(f"INSERT INTO {table} VALUES (?, ?)", [migration.name, migration.checksum])

    def _remember(self, account: Account) -> None:
        self.accounts[account.id] = account
        self._ids[email_key(account.email)] = account.id

    def _forget(self, account_id: str) -> None:
        account = self.accounts.pop(account_id, None)
        if account is None:
            return
        key = email_key(account.email)
        if self._ids.get(key) == account_id:  # keep the entry if another account uses this email now
            del self._ids[key]

    def _remember_token(self, token: Token) -> None:
        self.tokens[token.hash] = token
        self._tokens_of.setdefault(token.account_id, {})[token.hash] = token

    def _forget_token(self, token: Token) -> None:
        self.tokens.pop(token.hash, None)
        self._tokens_of.get(token.account_id, {}).pop(token.hash, None)

    def exists(self, account_id: str) -> bool:
        return account_id in self.accounts

    def name_of(self, account_id: str) -> str:
        """Return the email of an account, or its id if there is no such account."""
        account = self.accounts.get(account_id)
        return account.email if account is not None else account_id

    def by_email(self, email: str) -> Account | None:
        return self.accounts.get(self._ids.get(email_key(email), ""))

    def tokens_of(self, account_id: str) -> list[Token]:
        return sorted(self._tokens_of.get(account_id, {}).values(), key=lambda t: t.created_at)

    # -- changes ------------------------------------------------------------------------------------------------

    async def add_account(self, account: Account) -> None:
        """Add an account. Raises Conflict if the email is in use."""
        async with self._turn:
            if self.by_email(account.email) is not None:
                raise Conflict(f"The account {account.email} already exists. Nothing was changed.")
            await self._execute([_insert("accounts", account)])
            self._remember(account)

    async def change_account(
        self,
        account_id: str,
        change: Callable[[Account], Account],
        is_ending: Callable[[Token], bool] = lambda _: False,
    ) -> Account:
        """Apply `change` to the current account and return the result; the email must stay the same.

        The same commit deletes the tokens for which `is_ending` is true. If `change` raises, nothing is changed. Raises
        NotFound.
        """
        async with self._turn:
            changed = change(self._known(account_id))
            ended = [token for token in self.tokens_of(account_id) if is_ending(token)]
            deletions = (_deleting("tokens", "id", token.id) for token in ended)
            await self._execute([_replacing("accounts", changed), *deletions])
            for token in ended:
                self._forget_token(token)
            if account_id in self.accounts:
                self._remember(changed)
            return changed

    def _known(self, account_id: str) -> Account:
        account = self.accounts.get(account_id)
        if account is None:
            raise NotFound("There is no such account.")
        return account

    async def save_token(
        self, token: Token, max_count: int | None = None, check: AccountCheck | None = None
    ) -> None:
        async with self._turn:
            account = self._known(token.account_id)
            if check is not None:
                check(account)
            if max_count is not None and self._count(token.account_id, token.kind) >= max_count:
                raise Conflict(
                    f"This account already has {max_count} tokens. Revoke one that you no longer use."
                )
            await self._execute([_insert("tokens", token)])
            if token.account_id in self.accounts:
                self._remember_token(token)

    def _count(self, account_id: str, kind: TokenKind) -> int:
        return sum(t.kind == kind for t in self._tokens_of.get(account_id, {}).values())

    async def extend_token(self, token: Token, expires_at: str) -> bool:
        """Set a later expiry. Return False, changing nothing, if the token was revoked or changed by another request."""
        async with self._turn:
            if self.tokens.get(token.hash) is not token:
                return False
            statement = "UPDATE {}.main.tokens SET expires_at = ? WHERE id = ?"
            await self._execute([(statement, [expires_at, token.id])])
            if self.tokens.get(token.hash) is not token:  # revoked during the write; its deletion follows
                return False
            self._remember_token(msgspec.structs.replace(token, expires_at=expires_at))
            return True

    async def revoke_tokens(self, tokens: Iterable[Token]) -> None:
        """Revoke tokens. The tokens are removed from memory before the file is written."""
        revoked = list(tokens)
        for token in revoked:
            self._forget_token(token)
        if revoked:
            async with self._turn:
                await self._execute([_deleting("tokens", "id", token.id) for token in revoked])

    async def block(self, account_id: str, check: AccountCheck) -> None:
        """Reject all sign-ins of this account by removing the account from memory. The file stays unchanged.

        If `check` raises, nothing is changed. Raises NotFound.
        """
        async with self._turn:
            check(self._known(account_id))
            self._forget(account_id)

    async def remove_account(self, account_id: str) -> None:
        """Delete the account and its secrets from memory and file.

        `rewrite` erases their bytes from the file, and `UserStores.remove` erases the account's folder.
        """
        for token_hash in self._tokens_of.pop(account_id, {}):
            self.tokens.pop(token_hash, None)
        self._forget(account_id)
        async with self._turn:
            await self._execute(
                [_deleting("tokens", "account_id", account_id), _deleting("accounts", "id", account_id)]
            )

    async def repair_file(self) -> None:
        """Make the file match memory if an earlier change has failed. Raises Busy if the file was removed or replaced."""
        async with self._turn:
            if self._is_unsure or self._is_replaced():
                await self._execute([])

    async def _execute(self, works: list[Statement]) -> None:
        """Commit a change. The caller holds `_turn`."""

        def work(cursor: Cursor) -> None:
            with self._lock:
                was_unsure, self._is_unsure = self._is_unsure, True
                alias = self._attached()
                corrections = list(self._corrections(cursor, alias)) if was_unsure else []
                cursor.execute("BEGIN")
                try:
                    for statement, values in [*corrections, *works]:
                        cursor.execute(statement.format(alias), values)
                    cursor.execute("COMMIT")
                except BaseException:
                    cursor.execute("ROLLBACK")
                    raise
                self._checkpoint(cursor)
                self._is_unsure = False

        await self._instance.run(work, ACCOUNTS)

    def _corrections(self, cursor: Cursor, alias: str) -> Iterator[Statement]:
        """Yield the statements that make the file match memory."""
        yield from _differences("accounts", _stored(cursor, alias, "accounts", Account), self.accounts)
        yield from _differences("tokens", _stored(cursor, alias, "tokens", Token), self.tokens)

    def _checkpoint(self, cursor: Cursor) -> None:
        """Checkpoint the log into the file.

        If that fails, the last commit is still in the log. The file is then detached, and its next use attaches it
        again.
        """
        alias = self._attached()
        try:
            cursor.execute(f"CHECKPOINT {alias}")
            self._has_failed_checkpoint = False
        except duckdb.Error as error:
            _log.error("the accounts' log could not be checkpointed", exc_info=error)
            self._has_failed_checkpoint, self._alias = True, ""
            self._instance.detach_safely(alias)

    async def rewrite(self) -> None:
        """Rewrite the file, so that deleted rows leave no bytes on the disk."""
        async with self._turn:
            await self._instance.run(self._rewrite, ACCOUNTS)

    def _rewrite(self, _: Cursor) -> None:
        with self._detached():
            self._rewrite_detached()

    async def read_file(self) -> bytes:
        """Return the file's bytes, including all commits. Raises Broken or Busy if it cannot be read."""

        def work(cursor: Cursor) -> bytes:
            with self._detached():
                try:
                    content = self._path.read_bytes()
                except OSError as error:
                    raise Broken(
                        f"{self._path} cannot be read ({error.strerror}). Nothing was changed."
                    ) from error
            with self._lock:
                self._read_all(cursor)
            return content

        return await self._instance.run(work, ACCOUNTS)

    async def adopt_missing(self, path: Path, deleted_ids: set[str], empty: set[str]) -> AdoptionResult:
        """Add the accounts of a backup that are missing here, with their API tokens.

        Accounts whose ids are in `deleted_ids` are not added. If an account of this server has the same email, it is
        replaced if its id is in `empty`; otherwise the backup's account is skipped.
        """
        accounts, tokens = await self._instance.run(lambda cursor: self._read_copy(cursor, path), ACCOUNTS)
        result = AdoptionResult()
        adopted: set[str] = set()
        for account in accounts:
            if account.id in self.accounts or account.id in deleted_ids:
                continue
            holder = self.by_email(account.email)
            if holder is not None and holder.id not in empty:
                result.skipped.append(account.email)
                continue
            if holder is not None:
                await self.remove_account(holder.id)
                result.replaced.append(holder.id)
            await self.add_account(account)
            adopted.add(account.id)
        for token in tokens:
            if token.kind == "api" and token.account_id in adopted:
                await self.save_token(token)
        result.count = len(adopted)
        return result

    def _read_copy(self, cursor: Cursor, path: Path) -> tuple[list[Account], list[Token]]:
        """Return the accounts and tokens of another accounts file.

        Both are read from a migrated copy of the file, because the file may come from an older version.
        """
        staged = self._path.with_name(self._path.name + ".new")
        with self._lock:
            try:
                shutil.copyfile(path, staged)
                alias, _ = migrate.attach_migrated(self._instance, staged, self._migrations, str(path))
                try:
                    return _stored(cursor, alias, "accounts", Account), _stored(
                        cursor, alias, "tokens", Token
                    )
                finally:
                    self._instance.detach(alias)
            finally:
                for end in ("", ".wal"):
                    staged.with_name(staged.name + end).unlink(missing_ok=True)

    async def ping(self) -> None:
        """Check the file for /ready, as `_ping` describes. Concurrent callers share one check and one thread."""
        if self._pinging is None or self._pinging.done():
            self._pinging = asyncio.ensure_future(self._instance.run(self._ping, ACCOUNTS))
        await asyncio.shield(self._pinging)

    def _ping(self, cursor: Cursor) -> None:
        """Check that the file can be read, and retry a failed checkpoint. Raises Busy if the retry fails."""
        with self._lock:
            if self._has_failed_checkpoint:
                self._checkpoint(cursor)
            self._read_all(cursor)
            if self._has_failed_checkpoint:
                raise not_now()

    def _read_all(self, cursor: Cursor) -> None:
        """Read every value. DuckDB then checks each block that it has not cached, and raises if one is damaged."""
        for table in ("accounts", "tokens"):
            cursor.execute(f"SELECT bit_xor(hash(row)) FROM {self._attached()}.main.{table} row").fetchall()


def _stored(cursor: Cursor, alias: str, table: str, kind: type[S]) -> list[S]:
    fields = kind.__struct_fields__
    rows = cursor.execute(f"SELECT {', '.join(fields)} FROM {alias}.main.{table}").fetchall()
    return [msgspec.convert(dict(zip(fields, row, strict=True)), kind) for row in rows]


def _differences(
    table: str, stored: Iterable[Account | Token], rows: Mapping[str, Account | Token]
) -> Iterator[Statement]:
    """Yield the statements that make the stored rows equal to the rows in memory."""
    found = {row.id: row for row in stored}
    expected = {row.id: row for row in list(rows.values())}
    yield from (_deleting(table, "id", row_id) for row_id in found.keys() - expected.keys())
    yield from (_replacing(table, row) for row_id, row in expected.items() if found.get(row_id) != row)


def _insert(table: str, row: Account | Token, verb: str = "INSERT") -> Statement:
    """Return an INSERT statement. With the default verb the statement fails if the id exists.

    A separate check before the insert would take three times as long as the insert.
    """
    fields = row.__struct_fields__
    names, marks = ", ".join(fields), ", ".join("?" * len(fields))
    values = [getattr(row, name) for name in fields]
    return f"{verb} INTO {{}}.main.{table} ({names}) VALUES ({marks})", values


def _replacing(table: str, row: Account | Token) -> Statement:
    return _insert(table, row, "INSERT OR REPLACE")


def _deleting(table: str, field: str, value: str) -> Statement:
    return f"DELETE FROM {{}}.main.{table} WHERE {field} = ?", [value]
