"""Backup: a consistent copy of accounts and records while the server goes on, and the way back.

Left out: the indexes (derived), models (published), the ledger (it must survive an older backup). A restore begins a
new epoch, so devices start again from zero and push what they hold; what was erased since the backup stays erased.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import msgspec
import structlog

from vademecum.engines.duckdb.erasure_replay import replay_erasures
from vademecum.engines.duckdb.paths import RECORDS_FILE, user_ledger
from vademecum.engines.duckdb.verification import Verifier
from vademecum.errors import BadRequest, Broken, Busy, VademecumError
from vademecum.fsync import sync_folder
from vademecum.model.records.paths import user_folder
from vademecum.model.records.store_interface import UserStore
from vademecum.model.sync.transaction import SEQ_JUMP
from vademecum.services.accounts.deleted_accounts import Left, look, read_left
from vademecum.services.data.partial_backup import unfinished
from vademecum.services.memory.project_merge import MOVED
from vademecum.services.memory.scope import find_project_id
from vademecum.services.runtime.container import Services

MANIFEST = "backup.json"
ACCOUNTS = "accounts.duckdb"
_log = structlog.get_logger("vademecum.backup")


class BackupManifest(msgspec.Struct, rename="camel"):
    """`files`: path inside the backup -> sha-256. `damaged`: accounts whose records are not in it."""

    at: str
    users: list[str]
    files: dict[str, str]
    damaged: list[Damaged] = msgspec.field(default_factory=list)


class NotWritableError(Broken):
    """The disk of the backup failed, so no account can be copied."""


class Damaged(msgspec.Struct):
    """An account whose records could not be copied, and why."""

    email: str
    problem: str


class Removed(msgspec.Struct, rename="camel"):
    """An account of the backup that has left since. `email`: its address, if somebody has it here again; else it is known
    no more."""

    id: str
    email: str | None


class Restored(msgspec.Struct, rename="camel"):
    """`erased_again`: rows of the backup that had been erased since, and were not brought back. `skipped`: emails of
    the backup that somebody else has here by now. `removed`: whose records were left out because they are to stay
    removed."""

    users: int
    accounts: int
    erased_again: int
    backup_at: str
    skipped: list[str]
    removed: list[Removed]


async def backup(services: Services, target: Path) -> BackupManifest:
    """Write a new folder `target`, verified. Accounts that cannot be copied are left out and named. Raises BadRequest when
    it exists: nothing is ever overwritten. Raises NotWritableError when it cannot be written."""
    with _writing(target):
        # Not `resolve`, which fails at a link that leads to itself.
        if Path(os.path.realpath(target)).is_relative_to(os.path.realpath(services.settings.data)):
            raise BadRequest(
                f"{target} is inside the data folder, which may be lost as a whole. Nothing was written; choose a folder "
                "elsewhere, best on another disk."
            )
        if target.exists():
            raise BadRequest(f"{target} exists already. Nothing was written; choose another name.")
        with suppress(FileExistsError):  # a file is there: that it is no folder is said by what comes next
            target.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        with _writing(target):
            staging = stack.enter_context(unfinished(target))
        return await _filled(services, staging, target)


async def _filled(services: Services, staging: Path, target: Path) -> BackupManifest:
    made = staging
    try:
        accounts = (
            await services.accounts.read_file()
        )  # in memory, so that sign-ins do not wait for the disk of the backup
        users = sorted(services.accounts.accounts)
        with _writing(target):
            await asyncio.to_thread(_write, staging / ACCOUNTS, accounts)
        damaged = []
        async with Verifier() as verifier:
            for user_id in users:
                copy = user_folder(staging, user_id)
                try:
                    await _copy_user(services, user_id, copy, target)
                    await _verify_copy(services, user_id, copy / RECORDS_FILE, verifier)
                except NotWritableError:
                    raise
                except Exception as error:
                    damaged.append(_damaged(services, user_id, error))
                    await asyncio.to_thread(shutil.rmtree, copy, ignore_errors=True)
        with _writing(target):
            files = await asyncio.to_thread(_checksums, staging)
            manifest = BackupManifest(services.clock(), users, files, damaged)
            (staging / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=2))
            await asyncio.to_thread(_settle, staging)
            made = staging.rename(target)
            sync_folder(target.parent)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    return manifest


async def _copy_user(services: Services, user_id: str, copy: Path, target: Path) -> None:
    services.users.check_not_fenced(user_id)
    records = user_folder(services.settings.data, user_id) / RECORDS_FILE
    if not records.exists():
        await _check_not_lost(services, user_id)
        return
    if records.with_name(f"{RECORDS_FILE}.wal").exists():
        with suppress(Busy):  # on a full disk the log is copied as it is
            async with services.users.open(
                user_id, touches_lru=False
            ):  # repairs a log that a crash has damaged
                pass
    if services.background_jobs.jobs["erase"].is_pending(user_id):  # do not copy deleted text
        await services.users.rewrite(user_id)
    async with services.users.detached(user_id) as folder:
        with _writing(target):
            await asyncio.to_thread(_copy_records, folder, copy)


async def _verify_copy(services: Services, user_id: str, copy: Path, verifier: Verifier) -> None:
    """Raises Broken when a segment of the copied file is damaged: then so is the file."""
    if not copy.exists() or (problem := await verifier.problem(copy)) is None:
        return
    raise Broken(damage_of(services, user_id, problem))


async def verify_account(services: Services, user_id: str) -> str | None:
    """Read every segment of an account's file while nobody has it open. Return a sentence about its damage, or None."""
    async with Verifier() as verifier, services.users.detached(user_id) as folder:
        path = folder / RECORDS_FILE
        problem = await verifier.problem(path) if path.exists() else None
    return None if problem is None else damage_of(services, user_id, problem)


def damage_of(services: Services, user_id: str, problem: str) -> str:
    """Return a sentence that names a damaged file and the remedy."""
    return (
        f"Its file {user_folder(services.settings.data, user_id) / RECORDS_FILE} is damaged ({problem}). Other accounts are not "
        "affected. Restore it from an earlier backup with "
        f"`vademecum restore BACKUP --user {services.accounts.name_of(user_id)}`."
    )


def _damaged(services: Services, user_id: str, error: Exception) -> Damaged:
    _log.error("an account is not in the backup", account=user_id, exc_info=error)
    account = services.accounts.accounts.get(user_id)
    problem = error.message if isinstance(error, VademecumError) else f"Its records cannot be read ({error})."
    return Damaged(account.email if account else user_id, problem)


@contextmanager
def _writing(target: Path) -> Iterator[None]:
    """Raises Broken for what the disk of the backup does not take: no defect of ours, and a person can help it."""
    try:
        yield
    except OSError as error:
        raise NotWritableError(
            f"{target} cannot be written ({error.strerror or type(error).__name__}). No backup was made; all that was to "
            "be copied is safe. Name a new folder on a disk that has room and that may be written to."
        ) from error


def _copy_records(source: Path, target: Path) -> None:
    target.mkdir(parents=True)
    for name in (RECORDS_FILE, RECORDS_FILE + ".wal"):
        if (source / name).exists():
            _copy(source / name, target / name)


def _write(target: Path, content: bytes) -> None:
    """Write a file to the disk and read it again. Raises NotWritableError when it differs."""
    target.write_bytes(content)
    _settle_copy(target, hashlib.sha256(content).hexdigest())


def _copy(source: Path, target: Path) -> None:
    """Copied, on the disk, and read again. Raises Broken when `source` cannot be read or the copy is not the same."""
    try:
        source.open("rb").close()
    except OSError as error:  # no fault of the disk of the backup
        raise Broken(
            f"{source} cannot be read ({error.strerror}). Nothing was changed. It must be a file that the server can read."
        ) from error
    shutil.copy2(source, target)
    _settle_copy(target, _hash(source))


def _settle_copy(copy: Path, digest: str) -> None:
    with copy.open("rb") as file:
        os.fsync(file.fileno())
    if _hash(copy) != digest:
        raise NotWritableError(
            f"The copy of {copy.name} is not what was copied: is the disk of the backup sound? No backup was made."
        )


def _settle(staging: Path) -> None:
    """The manifest and the names of all that was copied are on the disk."""
    with (staging / MANIFEST).open("rb") as file:
        os.fsync(file.fileno())
    for top, _, _ in os.walk(staging):
        sync_folder(Path(top))


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _checksums(folder: Path) -> dict[str, str]:
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.name != MANIFEST)
    return {str(p.relative_to(folder)): _hash(p) for p in files}


async def restore_one(services: Services, source: Path, email: str) -> Restored:
    """Put the records of one account that is here back from a backup, while the others are served. The rest of the backup
    may be damaged. Raises BadRequest when the account is not here or not in the backup."""
    account = services.accounts.by_email(email)
    if account is None:
        raise BadRequest(f"There is no account {email} here. Nothing was changed.")
    folder = user_folder(Path(), account.id)
    manifest = await asyncio.to_thread(_verified, source, str(folder))
    if not (source / folder / RECORDS_FILE).exists():
        raise BadRequest(f"The backup {source} has no records of {email}. Nothing was changed.")
    erased = await _restore_user(services, account.id, source / folder)
    return Restored(1, 0, erased, manifest.at, [], [])


async def restore(services: Services, source: Path) -> Restored:
    """Put a backup in place of what is here, user by user. Accounts that are here stay as they are.

    Raises Broken when a user's records cannot be restored, and says whose were: those stay restored.
    """
    manifest = await asyncio.to_thread(_verified, source)
    empty = {account_id for account_id in services.accounts.accounts if await _is_empty(services, account_id)}
    adopted = await services.accounts.adopt_missing(
        source / ACCOUNTS, read_left(services.settings.data), empty
    )
    for account_id in adopted.replaced:
        await services.users.remove(account_id)
    emails = [account.email for account in services.accounts.accounts.values()]
    removed = await asyncio.to_thread(_removed, manifest, look(services.settings.data), emails)
    erased = 0
    done: list[str] = []
    for user_id in manifest.users:
        records = user_folder(source, user_id)
        if user_id in services.accounts.accounts and (records / RECORDS_FILE).exists():
            email = services.accounts.accounts[user_id].email
            try:
                erased += await _restore_user(services, user_id, records)
            except Exception as error:
                raise _stopped(email, error, done) from error
            done.append(email)
    return Restored(len(done), adopted.count, erased, manifest.at, adopted.skipped, removed)


def _removed(manifest: BackupManifest, left: Left, emails: list[str]) -> list[Removed]:
    """Those of the backup who have left for good, perhaps to come again as somebody else."""
    return [Removed(one, left.address_of(one, emails)) for one in manifest.users if one in left.digests]


def _stopped(email: str, error: Exception, done: list[str]) -> Broken:
    return Broken(
        f"The restore stopped at {email}, whose records are as they were: {error}\nRestored before: "
        f"{', '.join(done) or 'nobody'}. When the cause is gone, restore the same backup again."
    )


async def _is_empty(services: Services, account_id: str) -> bool:
    """Nothing was ever written here, as by the owner that a new server makes for itself."""
    data = services.settings.data
    if not (user_folder(data, account_id) / RECORDS_FILE).exists():
        return not user_ledger(data, account_id).path.exists()
    try:
        async with services.users.open(account_id) as store:
            return not store.row_index.rows
    except Broken:
        return False


def _verified(source: Path, within: str = "") -> BackupManifest:
    """The manifest of a backup whose files, or those in the folder `within`, are as they were written."""
    try:
        manifest = msgspec.json.decode((source / MANIFEST).read_bytes(), type=BackupManifest)
    except (OSError, msgspec.DecodeError) as error:
        raise BadRequest(f"{source} is not a backup of this program. Nothing was changed.") from error
    checked = {name: digest for name, digest in manifest.files.items() if name.startswith(within)}
    users = [one for one in manifest.users if str(user_folder(Path(), one)).startswith(within)]
    flaws = _flaws(source, BackupManifest(manifest.at, users, checked), {ACCOUNTS} if not within else set())
    if flaws:
        more = f", and {len(flaws) - 1} more" if len(flaws) > 1 else ""
        raise Broken(
            f"The backup {source} is damaged: {flaws[0]}{more}. Nothing was changed. Restore another copy of it, or "
            "another backup."
        )
    return manifest


def _flaws(source: Path, manifest: BackupManifest, more: set[str]) -> list[str]:
    """What is wrong with the files that the manifest names, and with those that a restore would take although it does
    not. Others are none of the backup: a file manager or a disk puts its own in each folder."""
    found = [
        f"{name} {flaw}" for name, digest in manifest.files.items() if (flaw := _flaw(source / name, digest))
    ]
    if found:
        return found
    records = [str(user_folder(Path(), user_id) / RECORDS_FILE) for user_id in manifest.users]
    unnamed = {*more, *records, *(f"{name}.wal" for name in records)} - manifest.files.keys()
    return [f"{name} is not of it" for name in sorted(unnamed) if (source / name).exists()]


def _flaw(path: Path, digest: str) -> str:
    """What is wrong with a file that the manifest names; empty if nothing is."""
    try:
        if not path.is_file():
            return "is missing"
        return "" if _hash(path) == digest else "is not as it was written"
    except OSError as error:
        return f"cannot be read ({error.strerror})"


async def _check_not_lost(services: Services, user_id: str) -> None:
    """A backup without an account that had a file would take the place of one that has it. Raises Broken: opening the
    account says what to do."""
    if user_ledger(services.settings.data, user_id).path.exists():
        async with services.users.open(user_id):
            return


async def _restore_user(services: Services, user_id: str, records: Path) -> int:
    ledger = user_ledger(services.settings.data, user_id)
    highest, places = ledger.last_seq(), dict[str, str | None]()
    if not (user_folder(services.settings.data, user_id) / RECORDS_FILE).exists():
        highest += SEQ_JUMP  # how far it had come is not known
    else:
        try:
            async with services.users.open(user_id) as store:
                await store.sync_ledger()
                highest, places = max(highest, store.seq), _places(store)
        except Broken:  # the restore is its cure
            highest += SEQ_JUMP
    try:
        await services.indexer.drop(user_id)
        await services.recall.indexer.drop(user_id)
        return await services.users.replace(
            user_id,
            records / RECORDS_FILE,
            highest,
            lambda tx: replay_erasures(tx, ledger.read(), places),
            # A stream that outlived it would go on in the new epoch, and its reader never learn that there is one.
            before_opening=lambda: services.hub.close_user(user_id),
        )
    finally:  # also when it failed: the indexes may be gone
        services.background_jobs.schedule_all(user_id)


def _places(store: UserStore) -> dict[str, str | None]:
    """In which project, if in any, the rows are by now that may change it."""
    rows = store.row_index.rows.items()
    return {
        key: find_project_id((*head.parents, *head.references))
        for key, head in rows
        if not head.deleted and key.partition("/")[0] in MOVED
    }
