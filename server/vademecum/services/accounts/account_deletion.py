"""Delete accounts and erase their data. If the server stops during a deletion, the next start completes it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import structlog

from vademecum.errors import Broken
from vademecum.model.records.accounts import Account
from vademecum.model.records.paths import user_folder
from vademecum.model.records.store_interface import AccountStore, UserStores
from vademecum.services.accounts.accounts import check_administrator_remains
from vademecum.services.accounts.deleted_accounts import (
    read_deleted_accounts,
    read_deleted_ids,
    record_deletion,
)
from vademecum.services.agents.spool import Spool
from vademecum.services.models.model_change import ModelChange
from vademecum.services.runtime.background_jobs import BackgroundJobs
from vademecum.services.runtime.job_queue import JobQueue
from vademecum.services.search.indexing import Indexes
from vademecum.services.sync.stream import Hub
from vademecum.settings import Settings

_log = structlog.get_logger("vademecum.accounts")


class AccountDeletion:
    """Deletes accounts. `queue` erases their data; it is separate from the background jobs of existing accounts."""

    def __init__(
        self,
        settings: Settings,
        accounts: AccountStore,
        users: UserStores,
        indexes: Sequence[Indexes],
        spool: Spool,
        hub: Hub,
        model_change: ModelChange,
        background_jobs: BackgroundJobs,
    ) -> None:
        self._data: Path = settings.data
        self._accounts = accounts
        self._users = users
        self._indexes = indexes
        self._spool = spool
        self._hub = hub
        self._model_change = model_change
        self._background_jobs = background_jobs
        self.queue = JobQueue("leave", settings.data / "jobs", self._run, delay_s=settings.erase_delay_s)

    async def delete(self, account: Account) -> None:
        """Delete an account and erase all its data: secrets, records, indexes and ledger. Its streams are closed.

        Running requests of the account end first and no new one starts, so a device that is writing cannot recreate its
        folder. Raises NotFound if the account has already been deleted, Conflict if no administrator would remain, and
        Broken if everything except spooled agent events was erased.
        """
        await self._accounts.block(account.id, self._record)
        self.queue.schedule(account.id)  # the marker file of the job survives a crash
        await self._accounts.remove_account(account.id)
        self._hub.close_user(account.id)
        # Delete agent events before a new account can get the email.
        async with self._spool.erasing_account(account.email):
            await self.queue.run_and_wait(account.id)

    def _record(self, account: Account) -> None:
        check_administrator_remains(self._accounts, removed=account)
        try:
            record_deletion(self._data, account.id, account.email)
        except OSError as error:
            raise Broken(
                f"The deletion of {account.email} cannot be recorded ({error.strerror}). Nothing was changed. "
                "Run `vademecum doctor` to check the data folder."
            ) from error

    async def _run(self, account_id: str) -> None:
        """Erase what remains of a deleted account: its folder, and its row and email in the accounts file."""
        if account_id not in read_deleted_ids(self._data):
            return  # a marker file alone must not erase an account that is not listed as deleted
        if account_id in self._accounts.accounts:  # the server crashed before the account's row was deleted
            await self._accounts.remove_account(account_id)
        try:
            await self._erase(account_id)
        finally:
            await self._accounts.rewrite()

    async def _erase(self, account_id: str) -> None:
        self._background_jobs.cancel_all(account_id)
        await self._model_change.forget(account_id)
        for indexes in self._indexes:
            await indexes.remove(account_id)
        await self._users.remove(account_id)
        self._background_jobs.cancel_all(account_id)  # again: the last commits scheduled more jobs

    async def resume(self) -> None:
        """Complete the deletions that a server stop interrupted. Called at startup, before events are ingested.

        Startup continues even if some data cannot be erased now. The erasure is retried, and `vademecum doctor` lists
        the data.
        """
        deleted = read_deleted_accounts(self._data)
        if deleted.problem:
            _log.error("the list of deleted accounts is unreadable", why=deleted.problem)
        erased = [account_id for account_id in deleted.digests if await self._erase_or_log(account_id)]
        # If the server stopped after deleting an account's row and before erasing the row's bytes, the accounts file
        # still contains the email.
        if deleted.digests and await self._rewrite_or_log():
            for account_id in erased:
                self.queue.cancel(account_id)
        self.queue.start()
        for account_id in deleted.digests.keys() - set(erased):
            self.queue.schedule(account_id)
        await self._spool.delete_events_of_deleted_accounts()

    async def _erase_or_log(self, account_id: str) -> bool:
        """Erase what remains of a deleted account. Return False, and log the error, if that fails."""
        try:
            exists = account_id in self._accounts.accounts
            if exists:
                await self._accounts.remove_account(account_id)
            if exists or user_folder(self._data, account_id).exists():
                await self._erase(account_id)
        except Exception as error:
            _log.error("cannot erase a deleted account yet", account=account_id, exc_info=error)
            return False
        return True

    async def _rewrite_or_log(self) -> bool:
        try:
            await self._accounts.rewrite()
        except Exception as error:
            _log.error("cannot rewrite the accounts file", exc_info=error)
            return False
        return True
