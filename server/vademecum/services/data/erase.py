"""Erase deleted content from the disk. A DuckDB file and a Lance folder keep deleted bytes until they are rewritten.

A delete blanks the row at once. The row's bytes are erased after `erasure_delay`, or at once for "forget everything".
After an edit, the old text stays in its segment until the segment is rewritten. `scan` checks the result on the
uncompressed bytes.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from vademecum.errors import Broken, Busy, NotFound, NotYetErased, Stopping, VademecumError, lacks_room
from vademecum.model.records.paths import user_folder
from vademecum.model.records.store_interface import UserStores
from vademecum.model.sync.transaction import Change, deletes_content, replaces_text
from vademecum.services.runtime.job_queue import JobQueue
from vademecum.services.search.indexing import Indexer
from vademecum.settings import Settings

NEEDLE_MIN = 8  # minimum length of a needle in bytes; shorter ones would match by chance
PIECE = 2**20  # the number of bytes that a scan reads at a time, because a file may exceed the memory


def erasure_delay(changes: Sequence[Change], settings: Settings) -> float | None:
    """Return the seconds from a commit to the erasure of the text that it removes. Return None if it removes none.

    The delay after an edit is longer, so that a day of edits causes one rewrite. The erasure after a delete also removes
    the old texts of edits.
    """
    if deletes_content(changes):
        return settings.erase_delay_s
    return settings.edited_text_erase_delay_s if replaces_text(changes) else None


class Eraser:
    """Erases the deleted content of users. `prune`: erases a user's staged vectors for deleted or changed blocks."""

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
        """Rewrite the user's records and indexes without deleted content."""
        await self._prune(user_id)
        await self._rewrite(user_id)
        for indexer in self._indexers:
            await indexer.erase(user_id)

    async def erase_all(self, user_id: str) -> int:
        """Erase all content of a user who has no live rows any more. Delete the indexes instead of rewriting them.

        Return the number of files that the user's folder had before.
        """
        folder = user_folder(self._data, user_id)
        files = await asyncio.to_thread(lambda: sum(1 for _ in files_below(folder)))
        await self._rewrite(user_id)
        await self.evict(user_id)
        return files

    async def evict(self, user_id: str) -> None:
        """Delete derived data: staged vectors and the indexes. A search or the next commit rebuilds the indexes."""
        await self._prune(user_id)
        for indexer in self._indexers:
            await indexer.drop(user_id)

    async def _rewrite(self, user_id: str) -> None:
        """Rewrite the records. On a full disk, delete derived data first.

        Raises NotYetErased if the disk still lacks space.
        """
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
    """Erase deleted content and copies of damaged write-ahead logs now, without the delay.

    Return the number of accounts with such content. `emails`: maps the ids of the accounts to check to their emails. If
    the erasure fails for some accounts, the others are still erased. Then the method raises Broken or Busy, which names
    the failed accounts. Their erasure is retried later.
    """
    due = [user_id for user_id in emails if job.is_pending(user_id) or _has_damaged_log(data, user_id)]
    failures: list[tuple[str, VademecumError]] = []
    for user_id in due:
        try:
            await job.run_and_wait(user_id)
        except NotFound:  # the account has already been deleted
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
    """Return how many of the needles still occur in files below the folder, unchanged or encoded in UTF-16."""
    patterns = {n for n in needles if len(n) >= NEEDLE_MIN}
    patterns |= {n.decode().encode("utf-16-le") for n in patterns if _is_text(n)}
    found: set[bytes] = set()
    for path in files_below(folder):
        try:
            for piece in _pieces(path, max(map(len, patterns), default=1)):
                found |= {n for n in patterns - found if n in piece}
        except FileNotFoundError:
            continue  # an index has replaced this file by one that was written after the erasure
    return len(found)


def _pieces(path: Path, longest: int) -> Iterator[bytes]:
    """Yield overlapping pieces of a file, so that each run of `longest` bytes is complete in one piece.

    The file is not memory-mapped, because DuckDB may truncate it during the scan. Reading a missing page would then
    crash the process.
    """
    with path.open("rb") as file:
        piece = b""
        while more := file.read(PIECE):
            piece = piece[max(0, len(piece) - longest + 1) :] + more
            yield piece


def files_below(folder: Path) -> Iterator[Path]:
    """Yield all files below a folder. Unlike `rglob`, `os.walk` skips folders that are deleted during the walk."""
    for top, _, names in os.walk(folder):
        yield from (Path(top) / name for name in names)


def _is_text(needle: bytes) -> bool:
    try:
        needle.decode()
    except UnicodeDecodeError:
        return False
    return True
