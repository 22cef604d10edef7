"""Erase: what was deleted leaves the disk. A DuckDB file and a Lance folder keep bytes until they are rewritten.

A delete takes the content out of the row at once; this follows `erase_delay_s` later, and at once for "forget
everything". `scan` proves it on the uncompressed bytes.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterable
from pathlib import Path

import msgspec

from vademecum.engines.duckdb.users import Users, user_folder
from vademecum.model.draft import Change
from vademecum.services.index import Indexer, Indexes

NEEDLE_MIN = 8  # bytes; shorter ones are found by chance


class Erasure(msgspec.Struct, rename="camel"):
    """What a rewriting took off the disk: bytes that the user's folder is smaller by, and files written anew."""

    files: int
    bytes: int


class Eraser:
    def __init__(self, data: Path, users: Users, indexes: Indexes, indexer: Indexer) -> None:
        self._data = data
        self._users = users
        self._indexes = indexes
        self._indexer = indexer

    async def work(self, user_id: str) -> None:
        await self.erase(user_id)

    async def erase(self, user_id: str) -> Erasure:
        """Rewrite the user's records and index without what was deleted."""
        folder = user_folder(self._data, user_id)
        before = await asyncio.to_thread(_measure, folder)
        await self._users.rewrite(user_id)
        await self._indexer.work(user_id)
        await self._indexes.write(user_id, lambda index: index.erase())
        after = await asyncio.to_thread(_measure, folder)
        return Erasure(files=before[0], bytes=max(0, before[1] - after[1]))

    async def erase_all(self, user_id: str) -> Erasure:
        """As `erase`, when nothing is left alive: the index folder goes as a whole."""
        folder = user_folder(self._data, user_id)
        before = await asyncio.to_thread(_measure, folder)
        await self._users.rewrite(user_id)
        await self._indexes.drop(user_id)
        self._indexer.forget(user_id)
        await asyncio.to_thread(shutil.rmtree, folder / "vectors", ignore_errors=True)
        after = await asyncio.to_thread(_measure, folder)
        return Erasure(files=before[0], bytes=max(0, before[1] - after[1]))


def leaves_bytes(changes: Iterable[Change]) -> bool:
    """Did a commit bury something that had content?"""
    return any(
        c.before is not None and not c.before.deleted and (c.head is None or c.head.deleted) for c in changes
    )


def _measure(folder: Path) -> tuple[int, int]:
    """(files, bytes) below a folder."""
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    return len(sizes), sum(sizes)


def scan(folder: Path, needles: Iterable[bytes]) -> int:
    """How many of the needles still stand in any file below the folder, as they are or as UTF-16."""
    wanted = {n for n in needles if len(n) >= NEEDLE_MIN}
    wanted |= {n.decode().encode("utf-16-le") for n in wanted if _is_text(n)}
    found: set[bytes] = set()
    for path in folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            found |= {n for n in wanted - found if n in data}
    return len(found)


def _is_text(needle: bytes) -> bool:
    try:
        needle.decode()
    except UnicodeDecodeError:
        return False
    return True
