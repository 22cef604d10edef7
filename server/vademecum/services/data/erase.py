"""Erase: what was deleted leaves the disk. A DuckDB file and a Lance folder keep bytes until they are rewritten.

A delete takes the content out of the row at once; this follows `erase_delay_s` later, and at once for "forget
everything". An edit leaves the text before it in its pack; that goes `compaction_delay_s` after the first such edit, so
that whoever edits all day costs one rewrite. `scan` proves it on the uncompressed bytes.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from vademecum.errors import Broken, Busy, NotFound, NotYetErased, Stopping, VademecumError, lacks_room
from vademecum.model.records.paths import user_folder
from vademecum.model.records.store_interface import UserStores
from vademecum.services.runtime.job_queue import JobQueue
from vademecum.services.search.indexing import Indexer

NEEDLE_MIN = 8  # bytes; shorter ones are found by chance
PIECE = 2**20  # bytes that a scan looks at together: a file may be larger than memory


class Eraser:
    """`prune`: erases what is staged of a user's dead blocks."""

    def __init__(
        self,
        data: Path,
        users: UserStores,
        indexers: Sequence[Indexer],
        prune: Callable[[str], Awaitable[None]],
    ) -> None:
        self._data = data
        self._users = users
        self._indexers = indexers
        self._prune = prune

    async def work(self, user_id: str) -> None:
        """Rewrite the user's records and indexes without what was deleted."""
        await self._prune(user_id)
        await self._rewrite(user_id)
        for indexer in self._indexers:
            await indexer.erase(user_id)

    async def erase_all(self, user_id: str) -> int:
        """As `work`, when nothing is left alive: the index folders go as a whole. Returns the files touched."""
        folder = user_folder(self._data, user_id)
        files = await asyncio.to_thread(lambda: sum(1 for _ in files_below(folder)))
        await self._rewrite(user_id)
        await self.evict(user_id)
        return files

    async def evict(self, user_id: str) -> None:
        """Remove what can be derived again: staged vectors and the indexes. A search or the next commit rebuilds them."""
        await self._prune(user_id)
        for indexer in self._indexers:
            await indexer.drop(user_id)

    async def _rewrite(self, user_id: str) -> None:
        """Rewrite the records; on a full disk only after making room. Raises NotYetErased when that does not suffice."""
        try:
            return await self._users.rewrite(user_id)
        except Busy as error:
            if not lacks_room(error):
                raise
        await self.evict(user_id)
        try:
            await self._users.rewrite(user_id)
        except Busy as error:
            if lacks_room(error):
                raise NotYetErased(self._users.room_to_rewrite(user_id)) from error
            raise


async def erase_due(data: Path, job: JobQueue, emails: Mapping[str, str]) -> int:
    """Erase pending deletions now, and the kept copies of damaged logs. Return for how many of the accounts, which are given
    by id. Raises Broken or Busy, naming those that failed, after all others are erased; failed ones are retried later."""
    due = [user_id for user_id in emails if job.is_pending(user_id) or _has_damaged_log(data, user_id)]
    failures: list[tuple[str, VademecumError]] = []
    for user_id in due:
        try:
            await job.run_and_wait(user_id)
        except NotFound:  # the account has just left
            continue
        except Stopping:
            raise
        except VademecumError as error:
            failures.append((emails[user_id], error))
    if not failures:
        return len(due)
    first = failures[0][1]
    if len(due) == 1:
        raise first
    names = "; ".join(f"{email}: {error.message}" for email, error in failures)
    message = f"{len(due) - len(failures)} of {len(due)} accounts were erased. The others are retried later. {names}"
    if all(isinstance(error, Busy) for _, error in failures):
        raise Busy(message, retry_after_s=first.retry_after_s)
    raise Broken(message)


def _has_damaged_log(data: Path, user_id: str) -> bool:
    return any(user_folder(data, user_id).glob("*.damaged"))


def scan(folder: Path, needles: Iterable[bytes]) -> int:
    """How many of the needles still stand in any file below the folder, as they are or as UTF-16."""
    wanted = {n for n in needles if len(n) >= NEEDLE_MIN}
    wanted |= {n.decode().encode("utf-16-le") for n in wanted if _is_text(n)}
    found: set[bytes] = set()
    for path in files_below(folder):
        try:
            for piece in _pieces(path, max(map(len, wanted), default=1)):
                found |= {n for n in wanted - found if n in piece}
        except FileNotFoundError:
            continue  # an index gave it up meanwhile; what took its place was written after the erasure
    return len(found)


def _pieces(path: Path, longest: int) -> Iterator[bytes]:
    """The file's bytes, so that each run of `longest` is whole in some piece. (Not mapped: DuckDB may cut the file
    meanwhile, and to read what is no longer there would end the process.)"""
    with path.open("rb") as file:
        piece = b""
        while more := file.read(PIECE):
            piece = piece[max(0, len(piece) - longest + 1) :] + more
            yield piece


def files_below(folder: Path) -> Iterator[Path]:
    """All files, also while others come and go: unlike `rglob`, a walk passes over a folder that has just gone."""
    for top, _, names in os.walk(folder):
        yield from (Path(top) / name for name in names)


def _is_text(needle: bytes) -> bool:
    try:
        needle.decode()
    except UnicodeDecodeError:
        return False
    return True
