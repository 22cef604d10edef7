"""The spool: events that hooks of agents have written to `<data>/spool/<user>/<id>.json`, taken up while the server runs.

A file goes when its event is in the records, and an event whose file outlived that is known by its id. What is no event,
or of no user, is set aside under `spool/rejected` for a while (spool_bounds), so that it is neither lost at once nor looked at
for ever.
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import stat
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote

import msgspec
import structlog

from vademecum.engines.duckdb.accounts import Account, Accounts, email_key
from vademecum.engines.duckdb.users import Users
from vademecum.errors import BadRequest, LimitReached
from vademecum.model.limits import Limits
from vademecum.model.observation import Event, Identity
from vademecum.services import claims
from vademecum.services.observe import receive
from vademecum.services.spool_bounds import bound

T = TypeVar("T")
EVERY_S = 1.0
BOUND_EVERY_S = 3600.0
PAUSE_S = 30.0  # after what did not work, as when the account is full
PATIENCE_S = 2.0  # of a request, with what hooks have written just now
BATCH = 200  # files read and committed at once
FILE_MAX = 2**17  # bytes; 8,000 characters are less, however they are written
OWNERS = "owner"
REJECTED = "rejected"
# Says something of this process and nothing of the file.
SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)

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
    """`owner`: the email of the local owner, whose folder is `owner`."""

    def __init__(
        self,
        data: Path,
        accounts: Accounts,
        users: Users,
        limits: Callable[[Account], Limits],
        owner: str,
    ) -> None:
        self._folder = data / "spool"
        self._owner = owner
        self._accounts = accounts
        self._users = users
        self._limits = limits
        self._one_at_a_time = asyncio.Lock()
        self._paused: dict[str, float] = {}  # folder -> until when, on the monotonic clock

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
            if time.monotonic() >= bound_at:
                await asyncio.to_thread(bound, self._folder, self._folder / REJECTED)
                bound_at = time.monotonic() + BOUND_EVERY_S
            await self.take_up()
            await asyncio.sleep(EVERY_S)

    async def take_up(self) -> None:
        """All that lies there now. What cannot be taken up stays, for later."""
        for folder in await asyncio.to_thread(_folders, self._folder):
            if self._paused.get(folder.name, 0) > time.monotonic():
                continue
            try:
                await self._of_user(folder)
            except Exception as error:
                self._paused[folder.name] = time.monotonic() + PAUSE_S
                _log.error("events are not taken up yet", retry_s=PAUSE_S, exc_info=error)

    async def take_up_soon(self) -> None:
        """As much as can be in a moment: a request does not wait for more."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                await self.take_up()

    async def clear(self, email: str) -> None:
        """The user has forgotten everything, or left: nothing of theirs is taken up any more."""
        async with self._one_at_a_time:
            await asyncio.to_thread(self._remove, email)

    async def drop(self, account: Account, project_id: str) -> None:
        """The project is being forgotten: what was to be taken up into it goes, and what of it was set aside."""
        async with self._one_at_a_time:
            for folder in await asyncio.to_thread(self.folders, account.email):
                files = await asyncio.to_thread(_files, folder)
                for at in range(0, len(files), BATCH):
                    await self._drop(account, project_id, files[at : at + BATCH])

    async def _drop(self, account: Account, project_id: str, paths: Sequence[Path]) -> None:
        read = await asyncio.to_thread(_read, paths, _whose)
        said = {identity for _, identity in read}
        async with self._users.open(account.id) as store:
            gone = await store.write(
                lambda draft: {one for one in said if claims.meant(draft, one, claims.HERE) == project_id}
            )
        await asyncio.to_thread(_unlink, [path for path, identity in read if identity in gone])

    def folders(self, email: str) -> list[Path]:
        """All that holds events of this user, also those that were set aside."""
        key = email_key(email)
        every = [*_folders(self._folder), *_folders(self._folder / REJECTED)]
        return [folder for folder in every if email_key(self._email(folder)) == key]

    def _remove(self, email: str) -> None:
        for folder in self.folders(email):
            shutil.rmtree(folder, ignore_errors=True)

    def _email(self, folder: Path) -> str:
        """Whose events these are: as the user was named to `vademecum record`, in whatever letters."""
        return self._owner if folder.name == OWNERS else unquote(folder.name)

    async def _of_user(self, folder: Path) -> None:
        account = self._accounts.by_email(self._email(folder))
        if account is None and folder.name == OWNERS:
            return  # a new data folder: the owner is made as soon as the server runs
        files = await asyncio.to_thread(_files, folder)
        for at in range(0, len(files), BATCH):
            async with self._one_at_a_time:  # a batch, so that who forgets has not to wait for all
                await self._batch(account, files[at : at + BATCH])

    async def _batch(self, account: Account | None, paths: Sequence[Path]) -> None:
        read = await asyncio.to_thread(_read, paths, _event.decode) if account is not None else []
        known = {path for path, _ in read}
        await asyncio.to_thread(self._set_aside, [path for path in paths if path not in known])
        if account is not None and read:
            await self._store(account, read)

    async def _store(self, account: Account, batch: Sequence[_Waiting]) -> None:
        try:
            events = [event for _, event in batch]
            await receive(self._users, account.id, events, self._limits(account), claims.HERE)
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
        await asyncio.to_thread(_unlink, [path for path, _ in batch])

    def _set_aside(self, paths: Sequence[Path]) -> None:
        for path in paths:
            folder = self._folder / REJECTED / path.parent.name
            try:
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                os.utime(path, follow_symlinks=False)  # it is kept for a time from now on
                path.replace(folder / path.name)
            except FileNotFoundError:
                continue  # taken up, or forgotten, since it was listed
            except OSError as error:
                _log.warning("not an event, and cannot be set aside", file=path.name, error=error.strerror)
                continue
            _log.warning("not an event of a user: set aside", file=path.name, folder=str(folder))


def _read(paths: Sequence[Path], decode: Callable[[bytes], T]) -> list[tuple[Path, T]]:
    """Those of the files that hold what is looked for."""
    found: list[tuple[Path, T]] = []
    for path in paths:
        try:
            found.append((path, decode(_content(path))))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        except OSError as error:
            if error.errno in SHORTAGES:
                raise
    return found


def _content(path: Path) -> bytes:
    """Of a file as `record` writes it. Of anything else nothing: a pipe would never end, a link leads elsewhere."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        fits = stat.S_ISREG(status.st_mode) and status.st_size <= FILE_MAX
        return os.read(descriptor, FILE_MAX) if fits else b""
    finally:
        os.close(descriptor)


def _folders(spool: Path) -> list[Path]:
    if not spool.is_dir():
        return []
    return sorted(path for path in spool.iterdir() if path.is_dir() and path.name != REJECTED)


def _files(folder: Path) -> list[Path]:
    """In the order of their ids, so of time. What is being written has another end."""
    return sorted(path for path in folder.iterdir() if path.suffix == ".json")


def _unlink(paths: Sequence[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
