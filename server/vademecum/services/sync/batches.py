"""Many rows, a portion at a time: so that neither memory nor the event loop feels how many there are.

A row may have a megabyte and a user hundreds of them. Whoever looks at more than a few reads them here, and decodes
each portion in a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence

from vademecum.engines.duckdb.user_store import UserStore

BATCH_BYTES = 2**20  # as charged; with vectors, which are not, at most five times that
BATCH_ROWS = 500

Batch = list[tuple[str, bytes]]


async def read_batches(store: UserStore, keys: Iterable[str]) -> AsyncIterator[Batch]:
    """Key and body of the rows `keys`, in that order, as they are when it is their turn; without the dead."""
    for some in split_into_batches(store, keys):
        found = await store.bodies(some)
        yield [(key, found[key]) for key in some if key in found and _is_alive(store, key)]


async def read_first_batch(store: UserStore, keys: Sequence[str]) -> tuple[Batch, Sequence[str]]:
    """Return the first portion of the rows `keys`, as `portions` yields it, and the keys that are left."""
    some = next(split_into_batches(store, keys), [])
    rest = keys[keys.index(some[-1]) + 1 :] if some else ()
    found = await store.bodies(some)
    return [(key, found[key]) for key in some if key in found and _is_alive(store, key)], rest


def _is_alive(store: UserStore, key: str) -> bool:
    """Live, or waiting for its parent."""
    head = store.row_index.rows.get(key)
    return head is not None and not head.deleted


def list_live_children(store: UserStore, parent: str, collection: str) -> list[str]:
    """Keys of the live rows of a collection that name the row `parent`, in no order."""
    named = store.row_index.dependents.get(parent, ())
    return [key for key in named if key.startswith(f"{collection}/") and store.live(key)]


async def list_live_keys(store: UserStore, collection: str) -> list[str]:
    """Keys of the live rows of a collection."""
    keys = list(store.row_index.rows)  # a copy: while the thread looks, a commit may change the rows
    prefix = f"{collection}/"
    return await asyncio.to_thread(
        lambda: [key for key in keys if key.startswith(prefix) and store.live(key)]
    )


def split_into_batches(store: UserStore, keys: Iterable[str]) -> Iterator[list[str]]:
    """The keys that have a head, a portion at a time."""
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
