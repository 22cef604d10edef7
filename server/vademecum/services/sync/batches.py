"""Read many rows in bounded batches.

A row may have a megabyte, and a user may have hundreds of such rows. Batches bound the memory. Callers decode each
batch in a thread, so that the event loop is not blocked.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence

from vademecum.model.records.store_interface import UserStore

BATCH_BYTES = 2**20  # in charged bytes; vectors are not charged and may make a batch five times larger
BATCH_ROWS = 500

Batch = list[tuple[str, bytes]]


async def read_batches(store: UserStore, keys: Iterable[str]) -> AsyncIterator[Batch]:
    """Yield batches of (key, body) of the rows with these keys, in order, without deleted rows.

    Each row is returned as it is when its batch is read.
    """
    for batch in split_into_batches(store, keys):
        yield await _read_batch(store, batch)


async def read_first_batch(store: UserStore, keys: Sequence[str]) -> tuple[Batch, Sequence[str]]:
    """Return the first batch that `read_batches` would yield for these keys, and the remaining keys."""
    batch = next(split_into_batches(store, keys), [])
    rest = keys[keys.index(batch[-1]) + 1 :] if batch else ()
    return await _read_batch(store, batch), rest


async def _read_batch(store: UserStore, keys: Sequence[str]) -> Batch:
    bodies = await store.read_bodies(keys)
    return [(key, bodies[key]) for key in keys if key in bodies and _is_alive(store, key)]


def _is_alive(store: UserStore, key: str) -> bool:
    """Return whether the row is live, or waiting for its parent."""
    head = store.row_index.rows.get(key)
    return head is not None and not head.deleted


def list_live_children(store: UserStore, parent: str, collection: str) -> list[str]:
    """Return the keys of the live rows of a collection that refer to the row `parent`, unordered."""
    dependents = store.row_index.dependents.get(parent, ())
    return [key for key in dependents if key.startswith(f"{collection}/") and store.is_live(key)]


async def list_live_keys(store: UserStore, collection: str) -> list[str]:
    """Return the keys of the live rows of a collection."""
    keys = list(store.row_index.rows)  # copied, because a commit may change the index while the thread runs
    prefix = f"{collection}/"
    return await asyncio.to_thread(
        lambda: [key for key in keys if key.startswith(prefix) and store.is_live(key)]
    )


def split_into_batches(store: UserStore, keys: Iterable[str]) -> Iterator[list[str]]:
    """Yield the keys of existing rows in batches of at most BATCH_ROWS rows and about BATCH_BYTES bytes."""
    batch: list[str] = []
    size = 0
    for key in keys:
        head = store.row_index.rows.get(key)
        if head is None:
            continue
        if batch and (size + head.size > BATCH_BYTES or len(batch) == BATCH_ROWS):
            yield batch
            batch, size = [], 0
        batch.append(key)
        size += head.size
    if batch:
        yield batch
