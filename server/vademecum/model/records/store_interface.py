"""Define the interface between the services and the engine that stores records.

Services and routes use only these types, and the composition root chooses the engine. Every engine must pass
tests/conformance/records. The interface has no queries about documents, memories or agents. The services implement them
with `row_index` and `read_bodies`.

For each user, an engine stores the rows of all collections, numbered by one counter (`seq`), the jobs, and the ids of
ingested events. One transaction can change all of them. The heads of all rows (`RowIndex`) and the open jobs
(`StoredJobs`) are in memory; bodies are read on demand.
"""

from __future__ import annotations

import base64
import hmac
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from vademecum.errors import Busy
from vademecum.model.memory.jobs import Job, StoredJobs
from vademecum.model.records.accounts import Account, AccountCheck, AdoptionResult, Token
from vademecum.model.schema.collections import Collection
from vademecum.model.sync.quotas import Usage
from vademecum.model.sync.transaction import Change, RecordsMeta, RowIndex, Transaction, state_of

T = TypeVar("T")
Entry = tuple[int, str]  # the `seq` and the key of a row
WRITE_ATTEMPTS = 8
RETRY_S = 1
CONFLICTS = "Other requests changed this account at the same time. Nothing was stored. Try again in a moment."


class VersionConflict(Exception):
    """Another writer committed to the user's records first, so the transaction must run again on the newest state."""


async def retry_conflicts(attempt: Callable[[], Awaitable[T]]) -> T:
    """Return the result of `attempt`, repeating it after a version conflict. Raises Busy after WRITE_ATTEMPTS conflicts."""
    for number in range(1, WRITE_ATTEMPTS + 1):
        try:
            return await attempt()
        except VersionConflict as error:
            if number == WRITE_ATTEMPTS:
                raise Busy(CONFLICTS, retry_after_s=RETRY_S) from error
    raise AssertionError("the loop returns or raises")


class UserStore(ABC):
    """The records of one user. Reads see all acknowledged commits. Do not change `row_index`, `jobs` or `meta`."""

    user_id: str
    collections: Mapping[str, Collection]

    @property
    @abstractmethod
    def row_index(self) -> RowIndex:
        """Return the heads of all rows."""

    @property
    @abstractmethod
    def jobs(self) -> StoredJobs:
        """Return the open jobs, and the counts of requests to the language model."""

    @property
    @abstractmethod
    def meta(self) -> RecordsMeta:
        """Return the account-wide values."""

    @property
    @abstractmethod
    def mac_key(self) -> str:
        """Return the account's secret key that signs checkpoints."""

    async def write(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` in a transaction on the newest state. Its changes are durable when this method returns.

        `work` does no I/O and runs in another thread. If it raises an error, none of its changes are stored. After a
        version conflict it runs again on the newest state, so it must not have other effects. Raises Busy after
        WRITE_ATTEMPTS conflicts.
        """
        return await retry_conflicts(lambda: self._try_write(work))

    @abstractmethod
    async def _try_write(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` and commit once, as `write` describes. Raises VersionConflict, storing nothing."""

    @abstractmethod
    async def read_bodies(self, keys: Sequence[str]) -> dict[str, bytes]:
        """Return the current JSON of those rows that exist, tombstones and waiting rows included."""

    @abstractmethod
    def entries_after(self, collection: str, seq: int, limit: int) -> list[Entry]:
        """Return (seq, key) of at most `limit` rows after `seq`, tombstones included, in the order of `seq`."""

    @abstractmethod
    def latest_seq(self, collection: str) -> int:
        """Return the highest `seq` of a row of the collection, or 0."""

    @abstractmethod
    async def list_jobs(self, limit: int) -> tuple[list[Job], dict[str, int]]:
        """Return the newest jobs and the number of jobs in each state, without the jobs of imported turns."""

    @abstractmethod
    async def has_ingested_events(self) -> bool:
        """Return whether ids of ingested events are stored."""

    @abstractmethod
    async def sync_ledger(self) -> None:
        """Make the erasure ledger durable. Raises OSError."""

    @abstractmethod
    async def compact(self) -> None:
        """Remove from the live data all versions of rows that were replaced or deleted before this call."""

    @property
    def seq(self) -> int:
        """Return the last `seq` that was assigned."""
        return self.row_index.seq

    @property
    def epoch(self) -> str:
        return self.meta.epoch

    @property
    def forgotten_at(self) -> str:
        """Return the time at which the user last forgot everything, or an empty string."""
        return self.meta.forgotten_at

    @property
    def usage(self) -> Usage:
        """Return the documents and bytes charged to the account."""
        return self.row_index.totals.usage

    def is_live(self, key: str) -> bool:
        """Return whether the row exists and is neither deleted nor waiting for its parent."""
        return state_of(self.row_index.rows.get(key)) == "live"

    def was_never_assigned(self, seq: int) -> bool:
        """Return whether no row can have had `seq` in this epoch."""
        return self.meta.was_never_assigned(seq, self.seq)

    def checkpoint_id(self, lwt: int) -> str:
        """Return the `id` of a checkpoint: `{epoch}.{mac}`, or the epoch alone if `lwt` was never assigned."""
        return self.epoch if self.was_never_assigned(lwt) else self._signed_id(lwt)

    def proves_rollback(self, lwt: int, checkpoint_id: str) -> bool:
        """Return whether this server signed the checkpoint in this epoch and its records lack that `seq`."""
        if not self.was_never_assigned(lwt):
            return False
        return hmac.compare_digest(checkpoint_id.encode(), self._signed_id(lwt).encode())

    def _signed_id(self, lwt: int) -> str:
        digest = hmac.digest(self.mac_key.encode(), f"{self.epoch}:{lwt}".encode(), "sha256")
        return f"{self.epoch}.{base64.urlsafe_b64encode(digest[:15]).decode()}"


async def _do_nothing(store: UserStore) -> None:
    pass


@dataclass
class StoreHooks:
    """The functions of the services that an engine calls. `before_commit` may add changes to the transaction.

    `on_attach` is called when a store is opened, before anyone else uses it. `on_commit` is called in the event loop after
    a commit that changed rows. `on_notice` receives a message for the operator. `on_erasure_due` is called when bytes
    of deleted rows may still be on the disk. `on_new_epoch` is called before and after an engine starts a new epoch by
    itself. `on_fence` is called when an engine starts to reject all requests of an account with damaged records.
    """

    on_attach: Callable[[UserStore], Awaitable[None]] = _do_nothing
    before_commit: Callable[[Transaction], None] = lambda tx: None
    on_commit: Callable[[UserStore, list[Change]], None] = lambda store, changes: None
    on_notice: Callable[[str], None] = lambda notice: None
    on_erasure_due: Callable[[str], None] = lambda user_id: None
    on_new_epoch: Callable[[str], None] = lambda user_id: None
    on_fence: Callable[[str], None] = lambda user_id: None


class UserStores(ABC):
    """The records of all users.

    `unsigned_ahead`: maps users to the number of their pulls with an unsigned checkpoint ahead of their records.
    """

    unsigned_ahead: dict[str, int]

    @abstractmethod
    def open(self, user_id: str, *, touches_lru: bool = True) -> AbstractAsyncContextManager[UserStore]:
        """Open a user's store for the duration of the context, creating it on first use.

        Opening a store that the task has already opened raises RuntimeError. With `touches_lru` False, the use does not
        delay the eviction of the store from memory. Raises NotFound, Busy, Broken or Fenced.
        """

    @abstractmethod
    def has_records(self, user_id: str) -> bool:
        """Return whether a store of the user exists. Raises OSError."""

    @abstractmethod
    def is_new(self, user_id: str) -> bool:
        """Return whether the user has never stored anything. Raises Busy or Broken if that cannot be determined."""

    @abstractmethod
    def list_unclean(self) -> list[str]:
        """Return the users whose stores were open when an earlier process died."""

    @abstractmethod
    def room_to_rewrite(self, user_id: str) -> int:
        """Return the maximum of free disk space, in bytes, that `rewrite` may need."""

    @abstractmethod
    def stop_recovery(self) -> None:
        """Stop repairing damaged records at once, because the process is about to end."""

    @abstractmethod
    def check_not_fenced(self, user_id: str) -> None:
        """Raise Fenced if the user's records are damaged and therefore not served."""

    @abstractmethod
    def fenced(self) -> dict[str, str]:
        """Map the id of each fenced account to the reason for its fence."""

    @abstractmethod
    def count_attached(self) -> int:
        """Return the number of stores that are open or cached in memory."""

    @abstractmethod
    def count_failed_checkpoints(self) -> int:
        """Return the number of stores whose write-ahead log could not be written to the file. No commit is lost."""

    @abstractmethod
    async def rewrite(self, user_id: str) -> None:
        """Erase the bytes of deleted and replaced rows from the disk."""

    @abstractmethod
    async def remove(self, user_id: str) -> None:
        """Erase a user's records, ledger and folder after all uses have ended. Raises Broken if that fails."""

    @abstractmethod
    def detached(self, user_id: str) -> AbstractAsyncContextManager[Path]:
        """Close the user's records, and keep them closed while the block runs. Yield the user's folder."""

    @abstractmethod
    async def replace(
        self,
        user_id: str,
        source: Path,
        floor: int,
        work: Callable[[Transaction], T],
        before_opening: Callable[[], None],
    ) -> T:
        """Replace the user's records with a copy of `source`, completely or not at all.

        The copy starts a new epoch, and its new rows get a `seq` above `floor`. `work` changes the copy first.
        `before_opening` is always called before the records can be opened again.
        """


class AccountStore(ABC):
    """Stores accounts and hashed secrets.

    All accounts and tokens are in memory. Callers must not change `accounts` or `tokens`.
    """

    accounts: dict[str, Account]  # keys: account ids
    tokens: dict[str, Token]  # keys: hashes of the secrets

    @abstractmethod
    def exists(self, account_id: str) -> bool: ...

    @abstractmethod
    def name_of(self, account_id: str) -> str:
        """Return the email of an account, or its id if the account does not exist."""

    @abstractmethod
    def by_email(self, email: str) -> Account | None: ...

    @abstractmethod
    def tokens_of(self, account_id: str) -> list[Token]:
        """Return the account's tokens, oldest first."""

    @abstractmethod
    async def add_account(self, account: Account) -> None:
        """Add an account. Raises Conflict if the email is in use."""

    @abstractmethod
    async def change_account(
        self,
        account_id: str,
        change: Callable[[Account], Account],
        is_ending: Callable[[Token], bool] = lambda _: False,
    ) -> Account:
        """Apply `change` to the current account and return the result. The email must stay the same.

        The same commit deletes the tokens for which `is_ending` is true. If `change` raises an error, nothing changes.
        Raises NotFound for a missing account.
        """

    @abstractmethod
    async def save_token(
        self, token: Token, max_count: int | None = None, check: AccountCheck | None = None
    ) -> None:
        """Save a token, unless `check` raises an error.

        Raises NotFound if the account does not exist, and Conflict if it has `max_count` tokens of this kind.
        """

    @abstractmethod
    async def extend_token(self, token: Token, expires_at: str) -> bool:
        """Set a later expiry. If another request revoked or changed the token, change nothing and return False."""

    @abstractmethod
    async def revoke_tokens(self, tokens: Iterable[Token]) -> None:
        """Revoke tokens. The tokens are revoked in memory even if the write to the file fails."""

    @abstractmethod
    async def block(self, account_id: str, check: AccountCheck) -> None:
        """Reject all sign-ins of this account until the server restarts, unless `check` raises an error.

        Raises NotFound for a missing account.
        """

    @abstractmethod
    async def remove_account(self, account_id: str) -> None:
        """Delete the account and its secrets. `rewrite` erases their bytes."""

    @abstractmethod
    async def rewrite(self) -> None:
        """Erase the bytes of deleted accounts and tokens from the disk."""

    @abstractmethod
    async def repair_file(self) -> None:
        """Make the file match the state in memory if an earlier change may not have been written."""

    @abstractmethod
    async def read_file(self) -> bytes:
        """Return all accounts and tokens as a file for a backup. Raises Broken if that fails."""

    @abstractmethod
    async def adopt_missing(self, path: Path, deleted_ids: set[str], empty: set[str]) -> AdoptionResult:
        """Add the accounts of a backup that this server lacks, with their API tokens.

        Deleted accounts (`deleted_ids`) are not added. An existing account with the same email is replaced if it is in
        `empty`.
        """

    @abstractmethod
    async def ping(self) -> None:
        """Check for the /ready route that accounts can be read and written. Raises Busy."""
