"""Read many rows in bounded batches.

A row may have a megabyte and a user hundreds of them. Callers decode each batch in a thread, so memory stays bounded
and the event loop is not blocked.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence

from vademecum.model.records.store_interface import UserStore

BATCH_BYTES = (
    2**20
)  # as counted for the quota; vectors are not counted and make a batch at most five times larger
BATCH_ROWS = 500

Batch = list[tuple[str, bytes]]


async def read_batches(store: UserStore, keys: Iterable[str]) -> AsyncIterator[Batch]:
    """Yield key and body of the rows `keys` in order, as they are when their batch is read; omit deleted rows."""
    for some in split_into_batches(store, keys):
        found = await store.read_bodies(some)
        yield [(key, found[key]) for key in some if key in found and _is_alive(store, key)]


async def read_first_batch(store: UserStore, keys: Sequence[str]) -> tuple[Batch, Sequence[str]]:
    """Return the first batch of the rows `keys`, as `read_batches` yields it, and the remaining keys."""
    some = next(split_into_batches(store, keys), [])
    rest = keys[keys.index(some[-1]) + 1 :] if some else ()
    found = await store.read_bodies(some)
    return [(key, found[key]) for key in some if key in found and _is_alive(store, key)], rest


def _is_alive(store: UserStore, key: str) -> bool:
    """Return whether the row is live, or waiting for its parent."""
    head = store.row_index.rows.get(key)
    return head is not None and not head.deleted


def list_live_children(store: UserStore, parent: str, collection: str) -> list[str]:
    """Return the keys of the live rows of a collection that refer to the row `parent`, unordered."""
    named = store.row_index.dependents.get(parent, ())
    return [key for key in named if key.startswith(f"{collection}/") and store.is_live(key)]


async def list_live_keys(store: UserStore, collection: str) -> list[str]:
    """Return the keys of the live rows of a collection."""
    keys = list(store.row_index.rows)  # a copy: a commit may change the rows while the thread reads
    prefix = f"{collection}/"
    return await asyncio.to_thread(
        lambda: [key for key in keys if key.startswith(prefix) and store.is_live(key)]
    )


def split_into_batches(store: UserStore, keys: Iterable[str]) -> Iterator[list[str]]:
    """Yield the keys of existing rows in batches of at most BATCH_ROWS rows and about BATCH_BYTES bytes."""
    some: list[str] = []
    size = 0
    for key in keys:
        head = store.row_index.rows.get(key)
        if head is None:
            continue
        if some and (size + head.size > BATCH_BYTES or len(some) == BATCH_ROWS):
            yield some
            some, size = [], 0
        some.append(key)
        size += head.size
    if some:
        yield some
