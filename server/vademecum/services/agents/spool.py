"""Ingest the events that `vademecum record` writes to `<data>/spool/<user>/<id>.json`.

A file is deleted once its event is stored. If the file remains after a crash, its event is recognized by its id. Invalid
events and events without an account are moved to `spool/rejected` and kept there for a while. Events of deleted
accounts are deleted. Status files in each folder contain the number of waiting blocks and the reason for the wait.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import structlog

from vademecum.errors import BadRequest, Broken, LimitReached, VademecumError
from vademecum.model.agents.observations import Event, Identity
from vademecum.model.agents.spool_layout import OWNER_FOLDER, REJECTED_FOLDER, SPOOL, folder_name
from vademecum.model.records.accounts import Account, email_key
from vademecum.model.records.store_interface import AccountStore, UserStores
from vademecum.model.schema.constants import OWNER
from vademecum.model.sync.quotas import Limits
from vademecum.services.accounts.deleted_accounts import was_deleted
from vademecum.services.agents import folder_check, project_claims, spool_files
from vademecum.services.agents.ingest import ingest_events
from vademecum.services.agents.spool_files import email_of

POLL_S = 1.0
CLEANUP_INTERVAL_S = 3600.0
RETRY_S = 30.0  # the wait after an error, in seconds, for example if the account is full
REQUEST_TIMEOUT_S = 2.0  # the longest time that a request waits for the newest events
BATCH = 200  # the maximum number of files that are read and committed together
SEE_LOG = "The server's log says why."
NO_ACCOUNT = "No account has this email. Its events are moved to spool/rejected."

_log = structlog.get_logger("vademecum.spool")
_event = msgspec.json.Decoder(Event)
_PendingEvent = tuple[Path, Event]


class _EventProject(msgspec.Struct):
    """The project of an event that may otherwise be invalid."""

    project: Identity


_event_project = msgspec.json.Decoder(_EventProject)


def _decode_project(content: bytes) -> Identity:
    return _event_project.decode(content).project


class Spool:
    def __init__(
        self,
        data: Path,
        accounts: AccountStore,
        users: UserStores,
        limits: Callable[[Account], Limits],
    ) -> None:
        self._data = data
        self._folder = data / SPOOL
        self._rejected = self._folder / REJECTED_FOLDER
        self._accounts = accounts
        self._users = users
        self._limits = limits
        self._lock = asyncio.Lock()
        self._retry_at: dict[str, float] = {}  # maps folder names to times of the monotonic clock
        self._logged_errors: dict[str, str] = {}  # maps folder names to their last error, logged only once
        self._stuck: set[Path] = set()  # invalid files that cannot be moved; each is logged only once

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Spool]:
        """Ingest continuously until the context exits."""
        task = asyncio.create_task(self._run())
        try:
            yield self
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _run(self) -> None:
        cleanup_at = 0.0
        while True:
            pause = POLL_S
            try:
                if time.monotonic() >= cleanup_at:
                    await asyncio.to_thread(spool_files.delete_leftovers, self._folder)
                    cleanup_at = time.monotonic() + CLEANUP_INTERVAL_S
                await self.ingest_all()
                self._logged_errors.pop("", None)
            except Exception as error:
                pause = RETRY_S
                self._log_error("", error)
            await asyncio.sleep(pause)

    async def ingest_all(self) -> None:
        """Ingest all waiting events. Events that cannot be ingested now keep waiting."""
        await self._ingest_folders(await asyncio.to_thread(spool_files.list_user_folders, self._folder))

    async def _ingest_folders(self, folders: Sequence[Path]) -> None:
        for folder in folders:
            if self._retry_at.get(folder.name, 0) > time.monotonic():
                continue
            try:
                await self._ingest_folder(folder)
                self._logged_errors.pop(folder.name, None)
            except Exception as error:
                if not folder.exists():
                    continue  # no error: the folder was deleted, because the user forgot everything
                self._retry_at[folder.name] = time.monotonic() + RETRY_S
                await self._report_error(folder, error)

    async def _report_error(self, folder: Path, error: Exception) -> None:
        """Write the reason why events wait to the log and to the folder, where `record` and `doctor` read it.

        Only messages of this program's errors are written to the folder, because other messages may quote an event.
        """
        self._log_error(folder.name, error)
        reason = error.message if isinstance(error, VademecumError) else SEE_LOG
        try:
            await asyncio.to_thread(spool_files.write_status, folder, reason)
        except OSError as failure:
            _log.warning("spool status not written", error=failure.strerror)

    def _log_error(self, name: str, error: Exception) -> None:
        message = f"{type(error).__name__}: {error}"
        if self._logged_errors.get(name) == message:
            return
        self._logged_errors[name] = message
        if isinstance(error, VademecumError):
            _log.warning("agent events wait", folder=name, reason=error.message, retry_s=RETRY_S)
        else:
            _log.error("ingesting agent events failed", folder=name, retry_s=RETRY_S, exc_info=error)

    async def ingest_account(self, email: str) -> None:
        """Ingest this account's events for at most REQUEST_TIMEOUT_S, without waiting for other accounts' events."""
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                folders = await asyncio.to_thread(self._account_folders_or_default, self._folder, email)
                await self._ingest_folders(folders)
        except TimeoutError:
            return
        except Exception as error:
            self._log_error("", error)

    async def delete_account_events(self, email: str) -> None:
        """Delete all events of an account, also rejected ones. Raises Broken if some remain."""
        async with self._lock:
            await asyncio.to_thread(self._delete_account_events, email)

    def _delete_account_events(self, email: str) -> None:
        first_error: Broken | None = None
        for parent in self._parents():
            try:
                spool_files.remove_folders(self._account_folders(parent, email))
            except OSError as error:  # folders of the account may be left, because `parent` cannot be listed
                first_error = first_error or Broken(spool_files.read_error_message(parent, error))
            except Broken as error:
                first_error = first_error or error
        if first_error:
            raise first_error

    @asynccontextmanager
    async def erasing_account(self, email: str) -> AsyncIterator[list[Path]]:
        """Delete an account's events. When the block has erased everything else, raise Broken if events remain.

        Yield the folders to check for remaining text, or none if events are known to remain.
        """
        error: Broken | None = None
        try:
            await self.delete_account_events(email)
        except Broken as failure:
            error = Broken(f"All other data is erased. {failure.message}")
        yield [] if error else self.account_folders(email)
        if error:
            raise error

    async def delete_events_of_deleted_accounts(self) -> None:
        """Delete the remaining events of deleted accounts, for example after a server stop during a deletion."""
        async with self._lock:
            try:
                folders = await asyncio.to_thread(self._all_folders)
            except OSError as error:  # an unreadable spool must not prevent the server's start
                self._log_error("", error)
                return
            for folder in folders:
                email = email_of(folder)
                try:
                    if self._accounts.by_email(email) is None and was_deleted(self._data, email):
                        await asyncio.to_thread(spool_files.remove_folders, [folder])
                except Broken as error:
                    self._log_error(folder.name, error)

    async def delete_project_events(self, account: Account, project_id: str) -> None:
        """Delete the waiting and rejected events of a project, and rejected events whose project is unknown.

        Raises Broken if a file cannot be read, deleting nothing, or if one cannot be deleted.
        """
        deletable: list[Path] = []
        async with self._lock:
            for folder in await asyncio.to_thread(self._list_account_folders, account.email):
                try:
                    files = await asyncio.to_thread(spool_files.list_contents, folder)
                except OSError as error:
                    raise spool_files.read_error(folder, error) from None
                for start in range(0, len(files), BATCH):
                    batch = files[start : start + BATCH]
                    deletable += await self._find_project_files(account, project_id, batch)
            await asyncio.to_thread(spool_files.remove_files, deletable)
            await asyncio.to_thread(spool_files.remove_empty_folders, self._rejected)

    async def _find_project_files(
        self, account: Account, project_id: str, paths: Sequence[Path]
    ) -> list[Path]:
        """Return the files that `delete_project_events` deletes."""
        read = await asyncio.to_thread(spool_files.read_files, paths, _decode_project)
        if read.unreadable:
            raise spool_files.read_error(*read.unreadable[0])
        identities = {identity for _, identity in read.decoded}
        async with self._users.open(account.id) as store:
            access = await project_claims.check_folders(store, folder_check.LOCAL, identities)
            matching = await store.write(
                lambda tx: project_claims.find_identities(tx, identities, project_id, access)
            )
        retained = {
            path for path, identity in read.decoded if identity not in matching and path.suffix == ".json"
        }
        return [path for path in paths if path not in retained]

    def account_folders(self, email: str) -> list[Path]:
        """Return all folders with events of this account, also rejected ones."""
        return [
            folder for parent in self._parents() for folder in self._account_folders_or_default(parent, email)
        ]

    def _parents(self) -> tuple[Path, Path]:
        return self._folder, self._rejected

    def _account_folders(self, parent: Path, email: str) -> list[Path]:
        """Return the folders for the email, whose names may differ from it in letter case. Raises OSError."""
        key = email_key(email)
        return [
            folder for folder in spool_files.list_user_folders(parent) if email_key(email_of(folder)) == key
        ]

    def _account_folders_or_default(self, parent: Path, email: str) -> list[Path]:
        """Return the account's folders, or its default folder if `parent` cannot be listed.

        Reading the default folder then raises an error with the reason.
        """
        try:
            return self._account_folders(parent, email)
        except OSError:
            return [parent / folder_name("" if email_key(email) == OWNER else email)]

    def _list_account_folders(self, email: str) -> list[Path]:
        """Return all folders of the account. Raises Broken or OSError if they cannot be listed."""
        folders: list[Path] = []
        for parent in self._parents():
            try:
                folders += self._account_folders(parent, email)
            except OSError as error:
                raise spool_files.read_error(parent, error) from None
        return folders

    def _all_folders(self) -> list[Path]:
        return [folder for parent in self._parents() for folder in spool_files.list_user_folders(parent)]

    async def _ingest_folder(self, folder: Path) -> None:
        account = self._accounts.by_email(email_of(folder))
        files = await asyncio.to_thread(spool_files.list_events, folder)
        if account is None and files:
            if await asyncio.to_thread(was_deleted, self._data, email_of(folder)):
                async with self._lock:
                    await asyncio.to_thread(spool_files.remove_folders, [folder])
                return
            if folder.name == OWNER_FOLDER:
                return  # keep these events: in a new data folder, the server creates the owner account later
        unreadable: list[tuple[Path, OSError]] = []
        for start in range(0, len(files), BATCH):
            async with self._lock:  # for one batch only, so that a deletion does not wait for all batches
                unreadable += await self._ingest_batch(account, files[start : start + BATCH])
        if unreadable:
            raise spool_files.read_error(*unreadable[0])
        has_status = await asyncio.to_thread(spool_files.has_status, folder)
        if account is None:
            if files:
                await asyncio.to_thread(spool_files.write_status, folder, NO_ACCOUNT, keep_reason=True)
        elif files or has_status:
            await asyncio.to_thread(spool_files.write_status, folder)

    async def _ingest_batch(
        self, account: Account | None, paths: Sequence[Path]
    ) -> list[tuple[Path, OSError]]:
        """Store the events and reject invalid files. Return the files that cannot be read."""
        if account is None:
            await asyncio.to_thread(self._reject, paths)
            return []
        read = await asyncio.to_thread(spool_files.read_files, paths, _event.decode)
        await asyncio.to_thread(self._reject, read.invalid)
        if read.decoded:
            await self._store(account, read.decoded)
        return read.unreadable

    async def _store(self, account: Account, batch: Sequence[_PendingEvent]) -> None:
        """Store events and delete their files. If an event is refused, split the batch in halves to store the others.

        Raises LimitReached at the first event that exceeds a limit of the account.
        """
        try:
            events = [event for _, event in batch]
            await ingest_events(self._users, account.id, events, self._limits(account), folder_check.LOCAL)
        except (LimitReached, BadRequest) as error:
            if len(batch) > 1:
                middle = len(batch) // 2
                await self._store(account, batch[:middle])
                await self._store(account, batch[middle:])
            elif isinstance(error, LimitReached):
                raise
            else:
                await asyncio.to_thread(self._reject, [batch[0][0]])
            return
        await asyncio.to_thread(_unlink_all, [path for path, _ in batch])

    def _reject(self, paths: Sequence[Path]) -> None:
        """Move files to the folder of rejected events."""
        for path in paths:
            folder = self._rejected / path.parent.name
            try:
                os.utime(path, follow_symlinks=False)  # so that the retention period starts now
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                path.replace(folder / path.name)
            except FileNotFoundError:
                continue  # the file has already been ingested or deleted
            except OSError as error:
                if path not in self._stuck:
                    _log.warning("invalid agent event cannot be moved", file=path.name, error=error.strerror)
                    self._stuck.add(path)
                continue
            _log.warning("agent event rejected", file=path.name, folder=str(folder))


def _unlink_all(paths: Sequence[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
