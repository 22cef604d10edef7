"""List documents, find them by name or content, and suggest documents to delete.

Rows are returned as stored. The rows are read in batches and decoded in a thread, because a hundred documents that
thousands of sessions have borrowed take a hundred megabytes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from weakref import WeakKeyDictionary

import msgspec

from vademecum.errors import BadRequest
from vademecum.model.documents.cleanup_candidates import Candidate, cleanup
from vademecum.model.documents.filename_match import match_filenames
from vademecum.model.records.store_interface import UserStore
from vademecum.model.schema.collections import Id, Json
from vademecum.model.sync.transaction import Transaction
from vademecum.services.sync.batches import Batch, list_live_children, list_live_keys, read_batches


class DocumentEntry(msgspec.Struct, frozen=True, rename="camel"):
    """The short fields by which documents are sorted and matched."""

    id: str
    created_at: str
    last_accessed_at: str
    access_count: int
    filename: str
    status: str


# For each store: maps document keys to the `seq` of the row and the filename.
_filename_cache: WeakKeyDictionary[UserStore, dict[str, tuple[int, str]]] = WeakKeyDictionary()
_entry_decoder = msgspec.json.Decoder(DocumentEntry)


async def read_documents(store: UserStore, keys: Iterable[str]) -> AsyncIterator[tuple[DocumentEntry, bytes]]:
    """Yield the live documents with these keys, each with its body."""
    async for batch in read_batches(store, keys):
        for entry, body in await asyncio.to_thread(_decode_entries, batch):
            yield entry, body


def _decode_entries(batch: Batch) -> list[tuple[DocumentEntry, bytes]]:
    return [(_entry_decoder.decode(body), body) for _, body in batch]


def check_session_id(session_id: str) -> None:
    """Raise BadRequest unless this is a valid session id."""
    try:
        msgspec.convert(session_id, Id)
    except msgspec.ValidationError as error:
        raise BadRequest("`sessionId` is not an id.") from error


def list_borrowed_ids(store: UserStore, session_id: str) -> set[str]:
    """Return the ids of the documents whose `activeSessions` contain this session."""
    keys = list_live_children(store, f"sessions/{session_id}", "documents")
    return {key.partition("/")[2] for key in keys}


async def read_filenames(store: UserStore, ids: Iterable[str]) -> dict[str, str]:
    """Map the ids of the live documents among `ids` to their filenames.

    Every search calls this function, so filenames are cached and only rows that changed since the last call are read.
    """
    cached = _filename_cache.setdefault(store, {})
    heads = store.row_index.rows
    seqs = {key: heads[key].seq for key in _keys_of(ids) if store.is_live(key)}
    uncached = [key for key, seq in seqs.items() if cached.get(key, (0, ""))[0] != seq]
    async for entry, _ in read_documents(store, uncached):
        key = f"documents/{entry.id}"
        cached[key] = seqs[key], entry.filename
    for key in [key for key in cached if not store.is_live(key)]:
        del cached[key]
    return {key.partition("/")[2]: cached[key][1] for key in seqs if key in cached}


async def list_documents(store: UserStore) -> list[bytes]:
    """Return all live documents as JSON, newest first."""
    entries = [pair async for pair in read_documents(store, await list_live_keys(store, "documents"))]
    return [body for _, body in sorted(entries, key=lambda pair: _creation_order(pair[0]), reverse=True)]


async def find_by_name(store: UserStore, name: str, session_id: str) -> list[bytes]:
    """Return the documents that `name` names, best match first, without documents that the session has borrowed.

    `name`: a filename or a whole message.
    """
    active = list_borrowed_ids(store, session_id)
    entries = sorted(await _read_live_entries(store), key=_creation_order, reverse=True)
    pool = [(entry.id, entry.filename) for entry in entries if entry.id not in active]
    return await _read_in_order(store, await asyncio.to_thread(match_filenames, name, pool))


async def suggest_cleanup(store: UserStore, limit: int) -> list[bytes]:
    """Return up to `limit` documents to suggest for deletion, as JSON, the least used first."""
    candidates = [_candidate(store, entry) for entry in await _read_live_entries(store)]
    return await _read_in_order(store, cleanup(candidates, limit))


async def _read_live_entries(store: UserStore) -> list[DocumentEntry]:
    return [entry async for entry, _ in read_documents(store, await list_live_keys(store, "documents"))]


def _candidate(store: UserStore, entry: DocumentEntry) -> Candidate:
    head = store.row_index.rows.get(f"documents/{entry.id}")
    is_borrowed = head is not None and bool(head.references)  # references of a document are its sessions
    return Candidate(entry.id, is_borrowed, entry.last_accessed_at, entry.access_count)


def _creation_order(entry: DocumentEntry) -> tuple[str, str]:
    return entry.created_at, entry.id


def _keys_of(ids: Iterable[str]) -> list[str]:
    return [f"documents/{document_id}" for document_id in ids]


async def _read_in_order(store: UserStore, ids: Iterable[str]) -> list[bytes]:
    return [body async for batch in read_batches(store, _keys_of(ids)) for _, body in batch]


def find_same_content(tx: Transaction, content_hash: str) -> Json | None:
    """Return the live document that was made from an identical file, or None. Prefer a complete document."""
    keys = [key for key in tx.keys("documents") if tx.row_state(key) == "live"]
    tx.prefetch(keys)
    same = [row for row in map(tx.row, keys) if row["contentHash"] == content_hash]
    return max(same, key=lambda row: is_complete(tx, row), default=None)


def is_complete(tx: Transaction, document: Json) -> bool:
    """Return whether all chunks of the document are stored and its processing has not failed."""
    heads = [tx.head(key) for key in list_block_keys(tx, document["id"])]
    chunks = sum(head.chunks for head in heads if head is not None)
    return document["status"] != "failed" and bool(chunks >= document["chunkCount"] > 0)


def list_block_keys(tx: Transaction, document_id: str) -> list[str]:
    """Return the keys of the stored blocks of a document."""
    dependents = tx.dependents(f"documents/{document_id}")
    return [key for key in dependents if key.startswith("vectorEmbeddings/")]
