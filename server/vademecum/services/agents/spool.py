"""The spool: events that hooks of agents have written to `<data>/spool/<user>/<id>.json`, taken up while the server runs.

A file goes when its event is in the records, and an event whose file outlived that is known by its id. What is no event,
or of no user, is set aside under `spool/rejected` for a while (spool_leftovers), so that it is neither lost at once nor looked at
for ever; what is of somebody who has left is deleted. Of what waits, the folder says how much and why.
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

from vademecum.engines.duckdb.account_store import Account, AccountStore, email_key
from vademecum.engines.duckdb.user_stores import UserStores
from vademecum.errors import BadRequest, Broken, LimitReached, VademecumError
from vademecum.model.agents.observations import Event, Identity
from vademecum.model.agents.spool_layout import OF_OWNER, REJECTED, SPOOL, folder_name
from vademecum.model.schema.constants import OWNER
from vademecum.model.sync.quotas import Limits
from vademecum.services.accounts.deleted_accounts import has_left
from vademecum.services.agents import folder_check, project_claims, spool_files
from vademecum.services.agents.ingest import receive
from vademecum.services.agents.spool_files import email_of
from vademecum.services.agents.spool_leftovers import bound, remove_empty

EVERY_S = 1.0
BOUND_EVERY_S = 3600.0
PAUSE_S = 30.0  # after what did not work, as when the account is full
PATIENCE_S = 2.0  # of a request, with what hooks have written just now
BATCH = 200  # files read and committed at once
LOG_SAYS = "The server's log says why."
NO_ACCOUNT = "No account has this email. What came for it is set aside in spool/rejected."

_log = structlog.get_logger("vademecum.spool")
_event = msgspec.json.Decoder(Event)
_Waiting = tuple[Path, Event]


class _Whose(msgspec.Struct):
    """Of what is an event, or is not quite one."""

    project: Identity


_whose_project = msgspec.json.Decoder(_Whose)


def _whose(content: bytes) -> Identity:
    return _whose_project.decode(content).project


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
        self._accounts = accounts
        self._users = users
        self._limits = limits
        self._one_at_a_time = asyncio.Lock()
        self._paused: dict[str, float] = {}  # folder -> until when, on the monotonic clock
        self._failed: dict[str, str] = {}  # folder -> what has been said of it, and need not be said again
        self._stuck: set[Path] = set()  # no events, and cannot be set aside: said once

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Spool]:
        """Takes up what comes, until it is left."""
        task = asyncio.create_task(self._run())
        try:
            yield self
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _run(self) -> None:
        bound_at = 0.0
        while True:
            pause = EVERY_S
            try:
                if time.monotonic() >= bound_at:
                    await asyncio.to_thread(bound, self._folder, self._folder / REJECTED)
                    bound_at = time.monotonic() + BOUND_EVERY_S
                await self.take_up()
                self._failed.pop("", None)
            except Exception as error:
                pause = PAUSE_S
                self._say("", error)
            await asyncio.sleep(pause)

    async def take_up(self) -> None:
        """All that lies there now. What cannot be taken up stays, for later."""
        await self._take_up(await asyncio.to_thread(spool_files.folders, self._folder))

    async def _take_up(self, folders: Sequence[Path]) -> None:
        for folder in folders:
            if self._paused.get(folder.name, 0) > time.monotonic():
                continue
            try:
                await self._of_user(folder)
                self._failed.pop(folder.name, None)
            except Exception as error:
                if not folder.exists():
                    continue  # it was forgotten meanwhile
                self._paused[folder.name] = time.monotonic() + PAUSE_S
                await self._wait(folder, error)

    async def _wait(self, folder: Path, error: Exception) -> None:
        """Says why: once in the log, and where `record` and the doctor look. No text of an event is in a refusal of ours;
        in another error there may be."""
        self._say(folder.name, error)
        why = error.message if isinstance(error, VademecumError) else LOG_SAYS
        try:
            await asyncio.to_thread(spool_files.settle, folder, why)
        except OSError as failure:
            _log.warning("it is not noted why events wait", error=failure.strerror)

    def _say(self, name: str, error: Exception) -> None:
        said = f"{type(error).__name__}: {error}"
        if self._failed.get(name) == said:
            return
        self._failed[name] = said
        if isinstance(error, VademecumError):
            _log.warning("events wait", folder=name, why=error.message, retry_s=PAUSE_S)
        else:
            _log.error("events are not taken up yet", folder=name, retry_s=PAUSE_S, exc_info=error)

    async def take_up_soon(self, email: str) -> None:
        """As much of this user's as can be in a moment: a request does not wait for more, nor for others'."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._take_up(await asyncio.to_thread(self._of, self._folder, email))
        except TimeoutError:
            return
        except Exception as error:
            self._say("", error)

    async def clear(self, email: str) -> None:
        """The user has forgotten everything, or left: nothing of theirs is taken up any more. Raises Broken when
        something of it stays."""
        async with self._one_at_a_time:
            await asyncio.to_thread(self._clear, email)

    def _clear(self, email: str) -> None:
        """Where folders cannot be listed, there may be some that are written in other letters."""
        stays: Broken | None = None
        for parent in self._parents():
            try:
                spool_files.remove_folders(self._named(parent, email))
            except OSError as error:
                stays = stays or Broken(spool_files.no_reading(parent, error))
            except Broken as error:
                stays = stays or error
        if stays:
            raise stays

    @asynccontextmanager
    async def cleared(self, email: str) -> AsyncIterator[list[Path]]:
        """Around the erasing of all else: what cannot be removed here is no reason to keep the rest, and is raised when
        that is done. Yields where to look for what is left: nowhere, when that is known."""
        stays: Broken | None = None
        try:
            await self.clear(email)
        except Broken as error:
            stays = Broken(f"All else is erased. {error.message}")
        yield [] if stays else self.folders(email)
        if stays:
            raise stays

    async def clear_left(self) -> None:
        """What a stop has left of those who have left."""
        async with self._one_at_a_time:
            try:
                every = await asyncio.to_thread(self._every)
            except OSError as error:  # no reason not to start
                self._say("", error)
                return
            for folder in every:
                email = email_of(folder)
                try:
                    if self._accounts.by_email(email) is None and has_left(self._data, email):
                        await asyncio.to_thread(spool_files.remove_folders, [folder])
                except Broken as error:
                    self._say(folder.name, error)

    async def drop(self, account: Account, project_id: str) -> None:
        """The project is being forgotten: what was to be taken up into it goes, what of it was set aside, and that of
        which nobody can tell whose it is. Raises Broken when something of it stays, or cannot be read: then nothing has
        gone, because the project stays."""
        gone: list[Path] = []
        async with self._one_at_a_time:
            for folder in await asyncio.to_thread(self._listed, account.email):
                try:
                    files = await asyncio.to_thread(spool_files.everything, folder)
                except OSError as error:
                    raise spool_files.unread(folder, error) from None
                for at in range(0, len(files), BATCH):
                    gone += await self._of_project(account, project_id, files[at : at + BATCH])
            await asyncio.to_thread(spool_files.remove, gone)
            await asyncio.to_thread(remove_empty, self._folder / REJECTED)

    async def _of_project(self, account: Account, project_id: str, paths: Sequence[Path]) -> list[Path]:
        """Those that go with it."""
        read = await asyncio.to_thread(spool_files.read, paths, _whose)
        if read.unread:
            raise spool_files.unread(*read.unread[0])
        said = {identity for _, identity in read.found}
        async with self._users.open(account.id) as store:
            view = await project_claims.checked(store, folder_check.HERE, said)
            meant = await store.write(lambda tx: project_claims.meaning(tx, said, project_id, view))
        stay = {path for path, identity in read.found if identity not in meant and path.suffix == ".json"}
        return [path for path in paths if path not in stay]

    def folders(self, email: str) -> list[Path]:
        """All that holds events of this user, also those that were set aside."""
        return [folder for parent in self._parents() for folder in self._of(parent, email)]

    def _parents(self) -> tuple[Path, Path]:
        return self._folder, self._folder / REJECTED

    def _of(self, parent: Path, email: str) -> list[Path]:
        """Where folders cannot be listed, the one that would be there: who looks into that hears why it is not to be had."""
        try:
            return self._named(parent, email)
        except OSError:
            return [parent / folder_name("" if email_key(email) == OWNER else email)]

    def _named(self, parent: Path, email: str) -> list[Path]:
        """Those of this user, in whatever letters. Raises OSError."""
        key = email_key(email)
        return [one for one in spool_files.folders(parent) if email_key(email_of(one)) == key]

    def _listed(self, email: str) -> list[Path]:
        """As `folders`, or none is known for certain: then it raises."""
        found: list[Path] = []
        for parent in self._parents():
            try:
                found += self._named(parent, email)
            except OSError as error:
                raise spool_files.unread(parent, error) from None
        return found

    def _every(self) -> list[Path]:
        return [folder for parent in self._parents() for folder in spool_files.folders(parent)]

    async def _of_user(self, folder: Path) -> None:
        account = self._accounts.by_email(email_of(folder))
        files = await asyncio.to_thread(spool_files.files, folder)
        if account is None and files:
            if await asyncio.to_thread(has_left, self._data, email_of(folder)):
                async with self._one_at_a_time:
                    await asyncio.to_thread(spool_files.remove_folders, [folder])
                return
            if folder.name == OF_OWNER:
                return  # a new data folder: the owner is made as soon as the server runs
        unread: list[tuple[Path, OSError]] = []
        for at in range(0, len(files), BATCH):
            async with self._one_at_a_time:  # a batch, so that who forgets has not to wait for all
                unread += await self._batch(account, files[at : at + BATCH])
        if unread:  # the rest is taken up
            raise spool_files.unread(*unread[0])
        marked = await asyncio.to_thread(spool_files.marked, folder)
        if account is None:
            if files:
                await asyncio.to_thread(spool_files.settle, folder, NO_ACCOUNT, lasting=True)
        elif files or marked:
            await asyncio.to_thread(spool_files.settle, folder)

    async def _batch(self, account: Account | None, paths: Sequence[Path]) -> list[tuple[Path, OSError]]:
        """Returns what cannot be read."""
        if account is None:
            await asyncio.to_thread(self._set_aside, paths)
            return []
        read = await asyncio.to_thread(spool_files.read, paths, _event.decode)
        await asyncio.to_thread(self._set_aside, read.odd)
        if read.found:
            await self._store(account, read.found)
        return read.unread

    async def _store(self, account: Account, batch: Sequence[_Waiting]) -> None:
        try:
            events = [event for _, event in batch]
            await receive(self._users, account.id, events, self._limits(account), folder_check.HERE)
        except LimitReached:
            if len(batch) == 1:
                raise
            half = len(batch) // 2
            await self._store(account, batch[:half])
            await self._store(account, batch[half:])
            return
        except BadRequest:
            if len(batch) > 1:
                for one in batch:
                    await self._store(account, [one])
                return
            await asyncio.to_thread(self._set_aside, [path for path, _ in batch])
            return
        await asyncio.to_thread(spool_files.unlink, [path for path, _ in batch])

    def _set_aside(self, paths: Sequence[Path]) -> None:
        for path in paths:
            folder = self._folder / REJECTED / path.parent.name
            try:
                os.utime(path, follow_symlinks=False)  # if it is there: it is kept for a time from now on
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                path.replace(folder / path.name)
            except FileNotFoundError:
                continue  # taken up, or forgotten, since it was listed
            except OSError as error:
                if path not in self._stuck:
                    _log.warning(
                        "not an event, and cannot be set aside", file=path.name, error=error.strerror
                    )
                    self._stuck.add(path)
                continue
            _log.warning("not an event of a user: set aside", file=path.name, folder=str(folder))
