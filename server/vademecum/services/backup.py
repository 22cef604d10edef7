"""Backup: a consistent copy of accounts and records while the server goes on, and the way back.

Left out: the indexes (derived), models (published), the ledger (it must survive an older backup). A restore begins a
new epoch, so devices start again from zero and push what they hold; what was erased since the backup stays erased.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import tempfile
from pathlib import Path

import msgspec

from vademecum.engines.duckdb.ledger import LedgerLine
from vademecum.engines.duckdb.userfile import SEQ_JUMP
from vademecum.engines.duckdb.users import RECORDS, user_folder, user_ledger
from vademecum.errors import BadRequest, Broken
from vademecum.model import cascade
from vademecum.model.draft import WAITING, Draft
from vademecum.services.left import read_left
from vademecum.services.parts import Parts

MANIFEST = "backup.json"
ACCOUNTS = "accounts.duckdb"


class BackupManifest(msgspec.Struct, rename="camel"):
    """`files`: path inside the backup -> sha-256."""

    at: str
    users: list[str]
    files: dict[str, str]


class Restored(msgspec.Struct, rename="camel"):
    """`erased_again`: rows of the backup that had been erased since, and were not brought back. `skipped`: emails of
    the backup that somebody else has here by now."""

    users: int
    accounts: int
    erased_again: int
    backup_at: str
    skipped: list[str]


async def backup(parts: Parts, target: Path) -> BackupManifest:
    """Write a new folder `target`, verified. Raises BadRequest when it exists: nothing is ever overwritten."""
    if target.exists():
        raise BadRequest(f"{target} exists already. Nothing was written; choose another name.")
    target.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        await parts.accounts.copy_to(staging / ACCOUNTS)
        users = sorted(parts.accounts.accounts)
        for user_id in users:
            if not (user_folder(parts.settings.data, user_id) / RECORDS).exists():
                continue
            if parts.backstage.jobs["erase"].is_asked(user_id):  # what was deleted is not copied
                await parts.users.rewrite(user_id)
            async with parts.users.detached(user_id) as folder:
                await asyncio.to_thread(_copy_records, folder, user_folder(staging, user_id))
        files = await asyncio.to_thread(_checksums, staging)
        manifest = BackupManifest(parts.clock(), users, files)
        (staging / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=2))
        staging.rename(target)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    return manifest


def _copy_records(source: Path, target: Path) -> None:
    target.mkdir(parents=True)
    for name in (RECORDS, RECORDS + ".wal"):
        if (source / name).exists():
            _copy(source / name, target / name)


def _copy(source: Path, target: Path) -> None:
    """Copied, on the disk, and read again. Raises Broken when the copy is not the same."""
    shutil.copy2(source, target)
    with target.open("rb") as file:
        os.fsync(file.fileno())
    if _hash(source) != _hash(target):
        raise Broken(
            f"The copy of {source.name} is not what was copied: is the disk of the backup sound? No backup was made."
        )


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _checksums(folder: Path) -> dict[str, str]:
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.name != MANIFEST)
    return {str(p.relative_to(folder)): _hash(p) for p in files}


async def restore(parts: Parts, source: Path) -> Restored:
    """Put a backup in place of what is here, user by user. Accounts that are here stay as they are.

    Raises Broken when a user's records cannot be restored, and says whose were: those stay restored.
    """
    manifest = await asyncio.to_thread(_verified, source)
    empty = {account_id for account_id in parts.accounts.accounts if await _is_empty(parts, account_id)}
    adopted = await parts.accounts.adopt(source / ACCOUNTS, read_left(parts.settings.data), empty)
    for account_id in adopted.replaced:
        await parts.users.remove(account_id)
    erased = 0
    done: list[str] = []
    for user_id in manifest.users:
        records = user_folder(source, user_id)
        if user_id in parts.accounts.accounts and (records / RECORDS).exists():
            email = parts.accounts.accounts[user_id].email
            try:
                erased += await _restore_user(parts, user_id, records)
            except Exception as error:
                raise _stopped(email, error, done) from error
            done.append(email)
    return Restored(len(done), adopted.count, erased, manifest.at, adopted.skipped)


def _stopped(email: str, error: Exception, done: list[str]) -> Broken:
    return Broken(
        f"The restore stopped at {email}, whose records are as they were: {error}\nRestored before: "
        f"{', '.join(done) or 'nobody'}. When the cause is gone, restore the same backup again."
    )


async def _is_empty(parts: Parts, account_id: str) -> bool:
    """Nothing was ever written here, as by the owner that a new server makes for itself."""
    if not (user_folder(parts.settings.data, account_id) / RECORDS).exists():
        return True
    try:
        async with parts.users.open(account_id) as store:
            return not store.heads.rows
    except Broken:
        return False


def _verified(source: Path) -> BackupManifest:
    try:
        manifest = msgspec.json.decode((source / MANIFEST).read_bytes(), type=BackupManifest)
    except (OSError, msgspec.DecodeError) as error:
        raise BadRequest(f"{source} is not a backup of this program. Nothing was changed.") from error
    if _checksums(source) != manifest.files:
        raise Broken(f"The backup {source} is damaged: its checksums do not fit. Nothing was changed.")
    return manifest


async def _restore_user(parts: Parts, user_id: str, records: Path) -> int:
    ledger = user_ledger(parts.settings.data, user_id)
    highest = ledger.last_seq()
    if (user_folder(parts.settings.data, user_id) / RECORDS).exists():
        try:
            async with parts.users.open(user_id) as store:
                await store.settle_ledger()
                highest = max(highest, store.seq)
        except Broken:  # the restore is its cure; how far it had come is not known
            highest += SEQ_JUMP
    try:
        await parts.indexer.drop(user_id)
        await parts.recall.indexer.drop(user_id)
        return await parts.users.replace(
            user_id,
            records / RECORDS,
            highest,
            lambda draft: erase_again(draft, ledger.read()),
            # A stream that outlived it would go on in the new epoch, and its reader never learn that there is one.
            before_opening=lambda: parts.hub.close_user(user_id),
        )
    finally:  # also when it failed: the indexes may be gone
        for job in parts.backstage.jobs.values():
            job.ask(user_id)


def erase_again(draft: Draft, lines: list[LedgerLine]) -> int:
    """Apply the ledger to restored records. Returns how many rows that the backup had died again."""
    # As the backup has them: a death heals the rows that name the dead one, and that takes a new seq.
    came = {key: head.seq for key in list(draft.keys()) if (head := draft.head(key)) is not None}
    count = 0
    for line in lines:
        if line.forgotten_at:
            draft.forgotten_at = max(draft.forgotten_at, line.forgotten_at)
            for key in list(draft.keys()):
                head = draft.head(key)
                if head is None:
                    continue
                if head.seq == WAITING:
                    if draft.row(key)["createdAt"] < line.forgotten_at:
                        draft.erase_waiting(key)
                elif came[key] <= line.seq:
                    count += len(cascade.kill(draft, key))
            continue
        head = draft.head(line.key)
        if head is None:
            name, _, row_id = line.key.partition("/")
            collection = draft.collections.get(
                name
            )  # none: damage has changed the line, or a newer version wrote it
            if collection is not None and collection.synced:  # else there is no device to be told
                cascade.kill_unknown(draft, line.key, {"id": row_id})
        elif not head.deleted and came[line.key] <= line.seq:  # later: its owner brought it back to life
            count += len(cascade.kill(draft, line.key))
    return count
