"""List rows in pages, newest first.

A page starts where the previous page ended, even if rows were written in between.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Iterable
from weakref import WeakKeyDictionary

import msgspec

from vademecum.errors import BadRequest
from vademecum.model.records.store_interface import UserStore
from vademecum.services.sync.batches import read_batches

# The maximum size of a page in bytes. A thousand rows may have a gigabyte, so a page of large rows has fewer than
# `limit` rows.
PAGE_BYTES = 8 * 2**20
Position = tuple[str, str]  # `createdAt` and id of a row, by which every list is sorted


class ListEntry(msgspec.Struct, frozen=True, rename="camel"):
    """The fields of a row that lists sort and filter by."""

    id: str
    created_at: str
    type: str = ""
    superseded_by: str | None = None
    kind: str = ""
    path: str = ""
    agent_session: str = ""
    pinned: bool = False
    updated_at: str = ""


class PageRequest(msgspec.Struct, frozen=True):
    """A request for at most `limit` rows that are older than the position `before`, or else for the newest rows."""

    limit: int
    before: Position | None = None


class Page(msgspec.Struct, frozen=True):
    """One page of stored rows. `next`: the cursor of the next page, or None on the last page."""

    rows: list[bytes]
    next: str | None


ListEntries = dict[str, tuple[int, ListEntry]]  # maps keys to (`seq` of the row when it was read, entry)

_entry_decoder = msgspec.json.Decoder(ListEntry)
# Caches entries while the user's store is open. The cached entry of a deleted row may stay until the store is closed.
_cache: WeakKeyDictionary[UserStore, ListEntries] = WeakKeyDictionary()
_position_decoder: msgspec.json.Decoder[Position] = msgspec.json.Decoder(Position)


def parse_page_request(limit: int, cursor: str) -> PageRequest:
    """Return the page request of a query string. Raises BadRequest for an invalid cursor."""
    return PageRequest(limit, _decode_cursor(cursor) if cursor else None)


def _decode_cursor(cursor: str) -> Position:
    try:
        return _position_decoder.decode(base64.b64decode(cursor, altchars=b"-_", validate=True))
    except (ValueError, msgspec.DecodeError) as error:
        raise BadRequest("`cursor` must be the `next` of an earlier page, or empty to begin.") from error


def _encode_cursor(position: Position) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(position)).decode()


async def list_newest(
    store: UserStore,
    keys: Iterable[str],
    request: PageRequest,
    matches: Callable[[ListEntry], bool] = lambda _: True,
) -> Page:
    """Return the requested page of those rows among `keys` for which `matches` is true, newest first."""
    entries = await read_list_entries(store, list(keys))
    positions = await asyncio.to_thread(_sort_newest, entries, request, matches)
    page = positions[: count_fitting(store, [key for _, key in positions[: request.limit]])]
    bodies = await store.read_bodies([key for _, key in page])
    rows = [bodies[key] for _, key in page if key in bodies and store.is_live(key)]
    return Page(rows, _encode_cursor(page[-1][0]) if len(page) < len(positions) else None)


async def sort_by_time(store: UserStore, keys: list[str]) -> list[str]:
    """Return the keys sorted by the creation time of their rows, oldest first."""
    entries = await read_list_entries(store, keys)
    return sorted(entries, key=lambda key: (entries[key].created_at, entries[key].id))


async def read_list_entries(store: UserStore, keys: list[str]) -> dict[str, ListEntry]:
    """Map keys to the list entries of their rows. Only rows that changed since the last call are read."""
    cached = _cache.setdefault(store, {})
    uncached = await asyncio.to_thread(_find_uncached, store, cached, keys)
    async for batch in read_batches(store, uncached):
        entries = await asyncio.to_thread(
            lambda rows: [(key, _entry_decoder.decode(body)) for key, body in rows], batch
        )
        # A row written since `uncached` was computed has a higher `seq` and is read again next time.
        cached |= {key: (uncached[key], entry) for key, entry in entries}
    return await asyncio.to_thread(lambda: {key: cached[key][1] for key in keys if key in cached})


def _find_uncached(store: UserStore, cached: ListEntries, keys: list[str]) -> dict[str, int]:
    """Map the keys of rows without a cached entry to their `seq`, in the order of `seq`.

    In this order, rows of one segment are read together, so that each segment is read once instead of once per batch.
    """
    heads = store.row_index.rows
    seqs = {key: heads[key].seq for key in keys if key in heads}
    uncached = [key for key, seq in seqs.items() if key not in cached or cached[key][0] != seq]
    return {key: seqs[key] for key in sorted(uncached, key=seqs.__getitem__)}


def _sort_newest(
    entries: dict[str, ListEntry], request: PageRequest, matches: Callable[[ListEntry], bool]
) -> list[tuple[Position, str]]:
    """Return position and key of the rows on this page and on later pages, newest first."""
    rows = [((entry.created_at, entry.id), key) for key, entry in entries.items() if matches(entry)]
    return sorted((row for row in rows if request.before is None or row[0] < request.before), reverse=True)


def count_fitting(store: UserStore, keys: list[str]) -> int:
    """Return how many of the first rows fit into a page, at least one."""
    size = 0
    for count, key in enumerate(keys):
        head = store.row_index.rows.get(key)
        size += head.size if head is not None else 0
        if count and size > PAGE_BYTES:
            return count
    return len(keys)
