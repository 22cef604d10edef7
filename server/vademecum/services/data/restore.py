"""Restore a backup of all accounts or of one, while the server runs.

A restore starts a new epoch, so devices sync from zero and push the rows that they have. Rows that were erased since
the backup stay erased.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec

from vademecum.engines.duckdb.erasure_replay import replay_erasures
from vademecum.engines.duckdb.paths import RECORDS_FILE, user_ledger
from vademecum.errors import BadRequest, Broken
from vademecum.model.records.paths import user_folder
from vademecum.model.records.store_interface import AccountStore, UserStore, UserStores
from vademecum.model.sync.transaction import SEQ_JUMP
from vademecum.services.accounts.deleted_accounts import (
    DeletedAccounts,
    read_deleted_accounts,
    read_deleted_ids,
)
from vademecum.services.data.backup import ACCOUNTS, MANIFEST, BackupManifest, hash_file
from vademecum.services.memory.project_merge import MOVED
from vademecum.services.memory.scope import find_project_id
from vademecum.services.runtime.background_jobs import BackgroundJobs
from vademecum.services.search.indexing import Indexer
from vademecum.services.sync.stream import Hub


class Removed(msgspec.Struct, rename="camel"):
    """An account of the backup that was deleted later.

    `email`: its email if another account has the same email now, else None, because only a digest is stored.
    """

    id: str
    email: str | None


class Restored(msgspec.Struct, rename="camel"):
    """The result of a restore.

    `erased_again`: rows of the backup that were not restored because they were erased after it. `skipped`: emails of
    the backup that belong to another account now. `removed`: accounts that were omitted because they were deleted.
    """

    users: int
    accounts: int
    erased_again: int
    backup_at: str
    skipped: list[str]
    removed: list[Removed]


class RestoreService:
    def __init__(
        self,
        data: Path,
        accounts: AccountStore,
        users: UserStores,
        indexers: Sequence[Indexer],
        hub: Hub,
        background_jobs: BackgroundJobs,
    ) -> None:
        self._data = data
        self._accounts = accounts
        self._users = users
        self._indexers = indexers
        self._hub = hub
        self._background_jobs = background_jobs

    async def restore_account(self, source: Path, email: str) -> Restored:
        """Restore the records of one existing account. The rest of the backup may be damaged.

        Raises BadRequest if the account does not exist or is not in the backup.
        """
        account = self._accounts.by_email(email)
        if account is None:
            raise BadRequest(f"There is no account {email} on this server. Nothing was changed.")
        folder = user_folder(Path(), account.id)
        manifest = await asyncio.to_thread(_verify_backup, source, str(folder))
        if not (source / folder / RECORDS_FILE).exists():
            raise BadRequest(f"The backup {source} has no records of {email}. Nothing was changed.")
        erased = await self._restore_user(account.id, source / folder)
        return Restored(1, 0, erased, manifest.at, [], [])

    async def restore_all(self, source: Path) -> Restored:
        """Add the accounts of the backup that this server lacks. Restore the records of its accounts, one by one.

        Existing accounts keep their email, tier and password. If the records of an account cannot be restored, raises
        Broken. Its message lists the accounts that were already restored, which stay restored.
        """
        manifest = await asyncio.to_thread(_verify_backup, source)
        empty = {account_id for account_id in self._accounts.accounts if await self._is_empty(account_id)}
        adopted = await self._accounts.adopt_missing(source / ACCOUNTS, read_deleted_ids(self._data), empty)
        for account_id in adopted.replaced:
            await self._users.remove(account_id)
        emails = [account.email for account in self._accounts.accounts.values()]
        deleted = await asyncio.to_thread(read_deleted_accounts, self._data)
        removed = await asyncio.to_thread(_removed, manifest, deleted, emails)
        erased = 0
        restored: list[str] = []
        for user_id in manifest.users:
            records = user_folder(source, user_id)
            if user_id in self._accounts.accounts and (records / RECORDS_FILE).exists():
                email = self._accounts.accounts[user_id].email
                try:
                    erased += await self._restore_user(user_id, records)
                except Exception as error:
                    raise Broken(
                        f"The restore stopped at {email}, whose records are unchanged: {error}\nRestored before: "
                        f"{', '.join(restored) or 'no account'}. Fix the cause and restore the same backup again."
                    ) from error
                restored.append(email)
        return Restored(len(restored), adopted.count, erased, manifest.at, adopted.skipped, removed)

    async def _is_empty(self, account_id: str) -> bool:
        """Return whether nothing was ever written to the account, for example to the owner account of a new server."""
        if not (user_folder(self._data, account_id) / RECORDS_FILE).exists():
            return not user_ledger(self._data, account_id).path.exists()
        try:
            async with self._users.open(account_id) as store:
                return not store.row_index.rows
        except Broken:
            return False

    async def _restore_user(self, user_id: str, records: Path) -> int:
        """Replace the records of a user. Return the number of rows that were erased again."""
        ledger = user_ledger(self._data, user_id)
        last_seq, project_ids = ledger.last_seq(), dict[str, str | None]()
        if not (user_folder(self._data, user_id) / RECORDS_FILE).exists():
            last_seq += SEQ_JUMP  # the last `seq` of the lost file is unknown
        else:
            try:
                async with self._users.open(user_id) as store:
                    await store.sync_ledger()
                    last_seq, project_ids = max(last_seq, store.seq), _project_ids(store)
            except Broken:  # the current file is unreadable, and the restore replaces it
                last_seq += SEQ_JUMP
        try:
            for indexer in self._indexers:
                await indexer.drop(user_id)
            return await self._users.replace(
                user_id,
                records / RECORDS_FILE,
                last_seq,
                lambda tx: replay_erasures(tx, ledger.read(), project_ids),
                # Close the streams. Otherwise the streams would continue in the new epoch, and their clients would not
                # notice the restore.
                before_opening=lambda: self._hub.close_user(user_id),
            )
        finally:  # schedule the jobs even after a failure, because the deleted indexes must be rebuilt
            self._background_jobs.schedule_all(user_id)


def _removed(manifest: BackupManifest, deleted: DeletedAccounts, emails: list[str]) -> list[Removed]:
    """Return the accounts of the backup that were deleted. Their emails may belong to new accounts."""
    return [Removed(id_, deleted.email_of(id_, emails)) for id_ in manifest.users if id_ in deleted.digests]


def _project_ids(store: UserStore) -> dict[str, str | None]:
    """Map the key of each row that can move between projects to its current project."""
    rows = store.row_index.rows.items()
    return {
        key: find_project_id((*head.parents, *head.references))
        for key, head in rows
        if not head.deleted and key.partition("/")[0] in MOVED
    }


def _verify_backup(source: Path, within: str = "") -> BackupManifest:
    """Return the manifest of a backup after checking its files, or only those in the folder `within`.

    Raises BadRequest if `source` is not a backup, and Broken if a file is missing, changed or unexpected.
    """
    try:
        manifest = msgspec.json.decode((source / MANIFEST).read_bytes(), type=BackupManifest)
    except (OSError, msgspec.DecodeError) as error:
        raise BadRequest(f"{source} is not a backup of this program. Nothing was changed.") from error
    checked = {name: digest for name, digest in manifest.files.items() if name.startswith(within)}
    users = [id_ for id_ in manifest.users if str(user_folder(Path(), id_)).startswith(within)]
    flaws = _flaws(source, BackupManifest(manifest.at, users, checked), {ACCOUNTS} if not within else set())
    if flaws:
        more = f", and {len(flaws) - 1} more" if len(flaws) > 1 else ""
        raise Broken(
            f"The backup {source} is damaged: {flaws[0]}{more}. Nothing was changed. Restore another copy of it, or "
            "another backup."
        )
    return manifest


def _flaws(source: Path, manifest: BackupManifest, more: set[str]) -> list[str]:
    """Return the problems of the files in the manifest. If there are none, return unlisted files that a restore reads.

    All other unlisted files are ignored, because file managers add their own files to folders.
    """
    found = [
        f"{name} {flaw}" for name, digest in manifest.files.items() if (flaw := _flaw(source / name, digest))
    ]
    if found:
        return found
    records = [str(user_folder(Path(), user_id) / RECORDS_FILE) for user_id in manifest.users]
    unlisted = {*more, *records, *(f"{name}.wal" for name in records)} - manifest.files.keys()
    return [f"{name} is not part of it" for name in sorted(unlisted) if (source / name).exists()]


def _flaw(path: Path, digest: str) -> str:
    """Return the problem of a file in the manifest, or an empty string."""
    try:
        if not path.is_file():
            return "is missing"
        return "" if hash_file(path) == digest else "was changed"
    except OSError as error:
        return f"cannot be read ({error.strerror})"
