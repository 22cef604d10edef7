"""List documents, find them by name or content, and suggest which to delete.

Rows are returned as stored. They are read in batches and decoded in a thread: a hundred documents that thousands of
sessions have borrowed are a hundred megabytes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from weakref import WeakKeyDictionary

import msgspec

from vademecum.errors import BadRequest
from vademecum.model.documents.cleanup_candidates import Candidate, cleanup
from vademecum.model.documents.filename_match import match
from vademecum.model.records.store_interface import UserStore
from vademecum.model.schema.collections import Id, Json
from vademecum.model.sync.transaction import Transaction
from vademecum.services.sync.batches import Batch, list_live_keys, read_batches


class DocumentEntry(msgspec.Struct, frozen=True, rename="camel"):
    """The short fields by which documents are sorted and matched."""

    id: str
    created_at: str
    last_accessed_at: str
    access_count: int
    filename: str
    status: str


# By store and key, with the row's `seq`.
_named: WeakKeyDictionary[UserStore, dict[str, tuple[int, str]]] = WeakKeyDictionary()
_card = msgspec.json.Decoder(DocumentEntry)


async def read_documents(store: UserStore, keys: Iterable[str]) -> AsyncIterator[tuple[DocumentEntry, bytes]]:
    """Yield the documents `keys`, each with its body; omit documents deleted meanwhile."""
    async for portion in read_batches(store, keys):
        for card, body in await asyncio.to_thread(_cards, portion):
            yield card, body


def _cards(portion: Batch) -> list[tuple[DocumentEntry, bytes]]:
    return [(_card.decode(body), body) for _, body in portion]


def check_session_id(session_id: str) -> None:
    """Raise BadRequest unless this is a valid session id."""
    try:
        msgspec.convert(session_id, Id)
    except msgspec.ValidationError as error:
        raise BadRequest("`sessionId` is not an id.") from error


def list_borrowed_ids(store: UserStore, session_id: str) -> set[str]:
    """Return the ids of the documents whose `activeSessions` contain this session."""
    named = store.row_index.dependents.get(f"sessions/{session_id}", ())
    return {key.partition("/")[2] for key in named if key.startswith("documents/") and store.is_live(key)}


async def read_filenames(store: UserStore, ids: Iterable[str]) -> dict[str, str]:
    """Return filenames by id, of the live documents among `ids`.

    Every search calls this, so only rows that changed since the last call are read.
    """
    known = _named.setdefault(store, {})
    heads = store.row_index.rows
    seqs = {key: heads[key].seq for key in _keys(ids) if store.is_live(key)}
    unknown = [key for key, seq in seqs.items() if known.get(key, (0, ""))[0] != seq]
    async for card, _ in read_documents(store, unknown):
        key = f"documents/{card.id}"
        known[key] = seqs[key], card.filename
    for key in [key for key in known if not store.is_live(key)]:
        del known[key]
    return {key.partition("/")[2]: known[key][1] for key in seqs if key in known}


async def list_documents(store: UserStore) -> list[bytes]:
    """Return all live documents as JSON, newest first."""
    found = [pair async for pair in read_documents(store, await list_live_keys(store, "documents"))]
    return [body for _, body in sorted(found, key=lambda pair: _age(pair[0]), reverse=True)]


async def find_by_name(store: UserStore, name: str, session_id: str) -> list[bytes]:
    """Return documents whose name occurs in `name` (a name or a whole message) and that the session has not borrowed."""
    known = [card async for card, _ in read_documents(store, await list_live_keys(store, "documents"))]
    active = list_borrowed_ids(store, session_id)
    pool = [card for card in sorted(known, key=_age, reverse=True) if card.id not in active]
    return await _bodies(store, await asyncio.to_thread(match, name, [(c.id, c.filename) for c in pool]))


async def suggest_cleanup(store: UserStore, limit: int) -> list[bytes]:
    """Return up to `limit` cleanup candidates as JSON, the least used first."""
    known = [card async for card, _ in read_documents(store, await list_live_keys(store, "documents"))]
    return await _bodies(store, cleanup([_candidate(store, card) for card in known], limit))


def _candidate(store: UserStore, card: DocumentEntry) -> Candidate:
    head = store.row_index.rows.get(f"documents/{card.id}")
    borrowed = head is not None and bool(head.references)  # to the sessions it is active in
    return Candidate(card.id, borrowed, card.last_accessed_at, card.access_count)


def _age(card: DocumentEntry) -> tuple[str, str]:
    return card.created_at, card.id


def _keys(ids: Iterable[str]) -> list[str]:
    return [f"documents/{document_id}" for document_id in ids]


async def _bodies(store: UserStore, ids: Iterable[str]) -> list[bytes]:
    return [body async for portion in read_batches(store, _keys(ids)) for _, body in portion]


def find_same_content(tx: Transaction, content_hash: str) -> Json | None:
    """Return the live document made from an identical file, preferring a complete one, or None."""
    keys = [k for k in tx.keys("documents") if tx.row_state(k) == "live"]
    tx.prefetch(keys)
    rows: Iterable[Json] = (tx.row(k) for k in keys)
    return max(
        (row for row in rows if row["contentHash"] == content_hash),
        key=lambda row: is_complete(tx, row),
        default=None,
    )


def is_complete(tx: Transaction, document: Json) -> bool:
    """Return whether all chunks of the document are stored and its processing has not failed."""
    heads = [tx.head(key) for key in list_block_keys(tx, document["id"])]
    here = sum(head.chunks for head in heads if head is not None)
    return document["status"] != "failed" and bool(here >= document["chunkCount"] > 0)


def list_block_keys(tx: Transaction, document_id: str) -> list[str]:
    """Return the keys of the stored blocks of a document."""
    return [k for k in tx.dependents(f"documents/{document_id}") if k.startswith("vectorEmbeddings/")]
