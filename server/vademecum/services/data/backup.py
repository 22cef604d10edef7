"""Create a verified backup while the server runs: a consistent copy of accounts and records.

A backup does not contain the indexes, which are derived, the models, which can be downloaded, and the erasure ledger,
which must survive the restore of an older backup.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import msgspec
import structlog

from vademecum.engines.duckdb.paths import RECORDS_FILE, user_ledger
from vademecum.engines.duckdb.verification import Verifier
from vademecum.errors import BadRequest, Broken, Busy, VademecumError
from vademecum.fsync import sync_folder
from vademecum.model.records.paths import user_folder
from vademecum.model.records.store_interface import AccountStore, UserStores
from vademecum.services.data.backup_staging import backup_staging_folder
from vademecum.services.runtime.job_queue import JobQueue

MANIFEST = "backup.json"
ACCOUNTS = "accounts.duckdb"
_log = structlog.get_logger("vademecum.backup")


class Damaged(msgspec.Struct):
    """An account whose records could not be copied, and the reason."""

    email: str
    problem: str


class BackupManifest(msgspec.Struct, rename="camel"):
    """The contents of a backup, stored in it as `backup.json`.

    `files`: maps paths inside the backup to SHA-256 hashes. `damaged`: accounts whose records are not in the backup.
    """

    at: str
    users: list[str]
    files: dict[str, str]
    damaged: list[Damaged] = msgspec.field(default_factory=list)


class NotWritableError(Broken):
    """The backup cannot be written to its disk, so no account can be copied."""


class BackupService:
    def __init__(
        self,
        data: Path,
        accounts: AccountStore,
        users: UserStores,
        erase_queue: JobQueue,
        clock: Callable[[], str],
    ) -> None:
        self._data = data
        self._accounts = accounts
        self._users = users
        self._erase_queue = erase_queue
        self._clock = clock

    async def create(self, target: Path) -> BackupManifest:
        """Write a backup to the new folder `target` and verify it. `damaged` lists the accounts that cannot be copied.

        Raises BadRequest if `target` exists or is inside the data folder, NotWritableError if it cannot be written.
        """
        with _translate_write_errors(target):
            # `Path.resolve` is not used, because it fails for a symbolic link to itself.
            if Path(os.path.realpath(target)).is_relative_to(os.path.realpath(self._data)):
                raise BadRequest(
                    f"{target} is inside the data folder, so a loss of that folder would destroy both. Nothing was written. "
                    "Choose a folder elsewhere, preferably on another disk."
                )
            if target.exists():
                raise BadRequest(f"{target} already exists. Nothing was written. Choose another name.")
            with suppress(FileExistsError):  # if the parent is a file, `backup_staging_folder` fails below
                target.parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            with _translate_write_errors(target):
                staging = stack.enter_context(backup_staging_folder(target))
            return await self._fill(staging, target)

    async def _fill(self, staging: Path, target: Path) -> BackupManifest:
        created = staging
        try:
            # Read the accounts into memory, so that sign-ins do not wait for the backup's disk.
            accounts = await self._accounts.read_file()
            users = sorted(self._accounts.accounts)
            with _translate_write_errors(target):
                await asyncio.to_thread(_write, staging / ACCOUNTS, accounts)
            damaged = []
            async with Verifier() as verifier:
                for user_id in users:
                    copy = user_folder(staging, user_id)
                    try:
                        await self._copy_user(user_id, copy, target)
                        await self._verify_copy(user_id, copy / RECORDS_FILE, verifier)
                    except NotWritableError:
                        raise
                    except Exception as error:
                        damaged.append(self._damaged(user_id, error))
                        await asyncio.to_thread(shutil.rmtree, copy, ignore_errors=True)
            with _translate_write_errors(target):
                files = await asyncio.to_thread(_checksums, staging)
                manifest = BackupManifest(self._clock(), users, files, damaged)
                encoded = msgspec.json.format(msgspec.json.encode(manifest), indent=2)
                (staging / MANIFEST).write_bytes(encoded)
                await asyncio.to_thread(_sync_all, staging)
                created = staging.rename(target)
                sync_folder(target.parent)
        except BaseException:
            shutil.rmtree(created, ignore_errors=True)
            raise
        return manifest

    async def _copy_user(self, user_id: str, copy: Path, target: Path) -> None:
        self._users.check_not_fenced(user_id)
        records = user_folder(self._data, user_id) / RECORDS_FILE
        if not records.exists():
            await self._check_not_lost(user_id)
            return
        if records.with_name(f"{RECORDS_FILE}.wal").exists():
            with suppress(Busy):  # on a full disk, copy the write-ahead log as it is
                async with self._users.open(user_id, touches_lru=False):  # repairs the log if it is damaged
                    pass
        if self._erase_queue.is_pending(user_id):  # erase first, so that deleted text is not copied
            await self._users.rewrite(user_id)
        async with self._users.detached(user_id) as folder:
            with _translate_write_errors(target):
                await asyncio.to_thread(_copy_records, folder, copy)

    async def _check_not_lost(self, user_id: str) -> None:
        """Raise Broken if the account has lost its records file.

        Otherwise a backup without the file could replace an older backup that contains the file.
        """
        if user_ledger(self._data, user_id).path.exists():
            async with self._users.open(user_id):  # raises Broken, with a message that names the remedy
                return

    async def _verify_copy(self, user_id: str, copy: Path, verifier: Verifier) -> None:
        """Raise Broken if a segment of the copy is damaged, because then the original is damaged, too."""
        if copy.exists() and (problem := await verifier.problem(copy)) is not None:
            raise Broken(self._damage_message(user_id, problem))

    async def verify_account(self, user_id: str) -> str | None:
        """Read every segment of an account's file while the file is closed. Return a message about damage, or None."""
        async with Verifier() as verifier, self._users.detached(user_id) as folder:
            path = folder / RECORDS_FILE
            problem = await verifier.problem(path) if path.exists() else None
        return None if problem is None else self._damage_message(user_id, problem)

    def _damage_message(self, user_id: str, problem: str) -> str:
        """Return a message that names a damaged file and the remedy."""
        return (
            f"Its file {user_folder(self._data, user_id) / RECORDS_FILE} is damaged ({problem}). Other accounts are not "
            "affected. Restore it from an earlier backup with "
            f"`vademecum restore BACKUP --user {self._accounts.name_of(user_id)}`."
        )

    def _damaged(self, user_id: str, error: Exception) -> Damaged:
        _log.error("an account is not in the backup", account=user_id, exc_info=error)
        problem = (
            error.message if isinstance(error, VademecumError) else f"Its records cannot be read ({error})."
        )
        account = self._accounts.accounts.get(user_id)
        return Damaged(account.email if account else user_id, problem)


@contextmanager
def _translate_write_errors(target: Path) -> Iterator[None]:
    """Translate an OSError of the backup's disk to NotWritableError, whose message tells the operator what to do."""
    try:
        yield
    except OSError as error:
        raise NotWritableError(
            f"{target} cannot be written ({error.strerror or type(error).__name__}). No backup was made. The data itself is "
            "safe. Choose a new folder on a writable disk with enough space."
        ) from error


def _copy_records(source: Path, target: Path) -> None:
    target.mkdir(parents=True)
    for name in (RECORDS_FILE, RECORDS_FILE + ".wal"):
        if (source / name).exists():
            _copy(source / name, target / name)


def _write(target: Path, content: bytes) -> None:
    """Write a file, sync it to disk and read it back. Raises NotWritableError if the content differs."""
    target.write_bytes(content)
    _sync_and_verify(target, hashlib.sha256(content).hexdigest())


def _copy(source: Path, target: Path) -> None:
    """Copy a file, sync it to disk and verify it. Raises Broken if `source` is unreadable or the copy differs."""
    try:
        source.open("rb").close()
    except OSError as error:  # report a failed read as Broken, because the backup's disk did not cause it
        raise Broken(
            f"{source} cannot be read ({error.strerror}). Nothing was changed. It must be a file that the server can read."
        ) from error
    shutil.copy2(source, target)
    _sync_and_verify(target, hash_file(source))


def _sync_and_verify(copy: Path, digest: str) -> None:
    with copy.open("rb") as file:
        os.fsync(file.fileno())
    if hash_file(copy) != digest:
        raise NotWritableError(
            f"The copy of {copy.name} differs from the original, so the backup's disk may be faulty. No backup was made."
        )


def _sync_all(staging: Path) -> None:
    """Sync the manifest and all folders to disk. The other files were synced when they were written."""
    with (staging / MANIFEST).open("rb") as file:
        os.fsync(file.fileno())
    for top, _, _ in os.walk(staging):
        sync_folder(Path(top))


def hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _checksums(folder: Path) -> dict[str, str]:
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.name != MANIFEST)
    return {str(p.relative_to(folder)): hash_file(p) for p in files}
