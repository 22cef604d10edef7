"""Store an uploaded file as a document and its blocks of text. The file itself is not kept.

A subprocess parses the file. Document and blocks are stored in one transaction. A background job computes vectors.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Sequence
from pathlib import PurePath
from tempfile import SpooledTemporaryFile

import msgspec

from vademecum.engines.files.result import SECTION_MAX, Parsed, Unreadable
from vademecum.engines.files.subprocess_runner import parse
from vademecum.errors import BadRequest, Conflict, Gone, LimitReached, TooLarge, UnreadableFile
from vademecum.model.documents.chunking import Chunk, chunk, document_text
from vademecum.model.records.store_interface import UserStores
from vademecum.model.schema.collections import BLOCK_CHUNKS, DocumentId, Json
from vademecum.model.sync.cascade import delete_with_dependents
from vademecum.model.sync.quotas import Limits
from vademecum.model.sync.transaction import Transaction
from vademecum.model.text.display_text import short_name
from vademecum.services.documents.borrow import borrow, check_session
from vademecum.services.documents.documents import find_same_content, is_complete, list_block_keys
from vademecum.services.models.active_model import Inference
from vademecum.services.runtime.concurrency_limits import UploadLimit
from vademecum.services.runtime.ids import new_id
from vademecum.services.sync import row_operations


class Uploaded(msgspec.Struct):
    """The result of an upload.

    `existing`: a document of an identical file already existed, and the session borrowed it.
    """

    document: Json
    existing: bool


class UploadedFile(msgspec.Struct, frozen=True):
    """A file to upload. `content`: the open file, which is on disk and is never read into memory as a whole.

    `document_id`: an id chosen by the client, so that repeating an upload after a lost response creates no second
    document.
    """

    name: str
    content: SpooledTemporaryFile[bytes]
    session_id: str | None = None
    document_id: str | None = None

    @property
    def shown(self) -> str:
        """Return the filename, shortened for a message."""
        return short_name(sanitize_filename(self.name))


class UploadService:
    def __init__(self, users: UserStores, inference: Inference) -> None:
        self._users = users
        self._inference = inference
        self.limit = UploadLimit()

    async def upload(self, user_id: str, file: UploadedFile, limits: Limits) -> Uploaded:
        """Store a file as a document.

        Raises BadRequest, Busy, Conflict, Gone, TooLarge, UnreadableFile or LimitReached, storing nothing.
        """
        if file.document_id is not None:
            _check_id(file.document_id)
        with self.limit.hold(user_id, file.shown):
            return await self._upload(user_id, file, limits)

    async def _upload(self, user_id: str, file: UploadedFile, limits: Limits) -> Uploaded:
        content_hash, size = await asyncio.to_thread(_hash, file.content)
        check_file_size(file.name, size, limits)
        async with self._users.open(user_id) as store:
            same_content, forgotten_at = await store.write(
                lambda tx: (
                    _borrow_same_content(tx, content_hash, file.session_id, file.document_id),
                    tx.meta.forgotten_at,
                )
            )
            document_count = store.usage.documents
        if same_content is not None and same_content.whole:
            return Uploaded(same_content.row, existing=True)
        if same_content is None and document_count >= limits.documents:
            raise _full(file, limits)  # without parsing the file; the transaction checks the limit again
        parsed, chunks, text_hash = await _read(file)
        document = {
            **_unread(user_id, file),
            "mimeType": parsed.mime_type,
            "size": size,
            "contentHash": content_hash,
            "chunkCount": len(chunks),
            **({"pageCount": parsed.page_count} if parsed.page_count is not None else {}),
            "status": "pending",
            "textHash": text_hash,
            "original": "none",
            "fileRevision": 1,
        }
        tokens = await self._inference.count_tokens([c.text for c in chunks])

        def store_document(tx: Transaction) -> Uploaded:
            if tx.meta.forgotten_at != forgotten_at:
                raise Gone(
                    f"All your data was deleted while {file.shown} was being read. The file was not stored."
                )
            return _store(tx, _without_dead_session(tx, document), chunks, tokens, limits)

        async with self._users.open(user_id) as store:
            return await store.write(store_document)


def _hash(file: SpooledTemporaryFile[bytes]) -> tuple[str, int]:
    """Return the SHA-256 hash and the size of a file."""
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest(), file.seek(0, os.SEEK_END)


def check_file_size(name: str, size: int, limits: Limits) -> None:
    """Raise TooLarge if a file of `size` bytes is larger than the account allows."""
    if size > limits.file_bytes:
        raise TooLarge(
            f"{short_name(sanitize_filename(name))} is larger than the limit of {limits.file_bytes // 2**20} MB for a file. "
            "Nothing was stored."
        )


async def _read(file: UploadedFile) -> tuple[Parsed, list[Chunk], str]:
    """Return three values: the parsed file, its chunks, and the SHA-256 of its normalized text."""
    try:
        parsed = await parse(file.content.fileno(), file.name)
        chunks, text_hash = await asyncio.to_thread(lambda: (chunk(parsed.parts), _text_hash(parsed)))
        if not chunks:
            raise Unreadable("EMPTY")
    except Unreadable as error:
        raise UnreadableFile(error.message, code=error.code) from error
    return parsed, chunks, text_hash


def _text_hash(parsed: Parsed) -> str:
    return hashlib.sha256(document_text(parsed.parts).encode()).hexdigest()


def _unread(user_id: str, file: UploadedFile) -> Json:
    """Return the fields of the document that are known before its file is parsed."""
    return {
        "id": file.document_id or new_id(),
        "userId": user_id,
        "originSessionId": file.session_id or "",
        "activeSessions": [file.session_id] if file.session_id else [],
        "accessCount": 0,
        "filename": sanitize_filename(file.name),
    }


def _without_dead_session(tx: Transaction, document: Json) -> Json:
    """Return the document without a session that was deleted while the file was parsed."""
    sessions = [s for s in document["activeSessions"] if tx.row_state(f"sessions/{s}") != "deleted"]
    return {**document, "activeSessions": sessions}


def _check_id(document_id: str) -> None:
    try:
        msgspec.convert(document_id, DocumentId)
    except msgspec.ValidationError as error:
        raise BadRequest("`id` is not the id of a document. Nothing was stored.") from error


def sanitize_filename(filename: str) -> str:
    """Return the last part of a path without unprintable characters, cut to its last 255 characters."""
    name = PurePath(filename.replace("\\", "/")).name
    return "".join(c for c in name if c.isprintable()).strip()[-255:] or "document"


def _full(file: UploadedFile, limits: Limits) -> LimitReached:
    return LimitReached(
        f"You have {limits.documents} documents, which is the maximum. {file.shown} was not stored. "
        "Delete one and try again.",
        code="DOCUMENT_LIMIT",
    )


class _SameBytes(msgspec.Struct):
    """A document that was made from identical bytes. If it is not `whole`, it is incomplete and cannot be borrowed."""

    row: Json
    whole: bool


def _borrow_same_content(
    tx: Transaction, content_hash: str, session_id: str | None, document_id: str | None
) -> _SameBytes | None:
    """Return the document with the same content, or None. If it is complete, let the session borrow it.

    Raises Conflict if `document_id` belongs to another file, and Gone if the document with this id was deleted.
    """
    if session_id is not None:
        check_session(tx, session_id)
    if document_id is not None:
        _check_free(tx, document_id, content_hash)
    row = find_same_content(tx, content_hash)
    if row is None:
        return None
    whole = is_complete(tx, row)
    return _SameBytes(borrow(tx, row["id"], session_id) if whole and session_id is not None else row, whole)


def _check_free(tx: Transaction, document_id: str, content_hash: str) -> None:
    """Raise Gone if the document with this id was deleted, or Conflict if the id belongs to another file."""
    key = f"documents/{document_id}"
    life = tx.row_state(key)
    if life == "deleted":
        raise Gone("This document was deleted during the upload. Nothing was stored.")
    if life == "live" and tx.row(key)["contentHash"] != content_hash:
        raise Conflict("This id belongs to a document with different content. Nothing was stored.")


def _store(
    tx: Transaction, document: Json, chunks: Sequence[Chunk], tokens: Sequence[int], limits: Limits
) -> Uploaded:
    session_id = next(iter(document["activeSessions"]), None)
    known = _borrow_same_content(tx, document["contentHash"], session_id, document["id"])
    if known is not None and known.whole:  # a concurrent upload of the same bytes finished first
        return Uploaded(known.row, existing=True)
    now = max(tx.now, tx.meta.forgotten_at)  # the clock may have been set back
    times = {"createdAt": now, "updatedAt": now, "_deleted": False}
    row = {**document, **times, "lastAccessedAt": now}
    if known is not None:
        row = _completed(tx, known.row, row)
    blocks = _blocks(row, chunks, tokens, times)
    for key in set(list_block_keys(tx, row["id"])) - {f"vectorEmbeddings/{block['id']}" for block in blocks}:
        delete_with_dependents(tx, key)
    row = row_operations.put(tx, "documents", row, limits)
    for block in blocks:
        row_operations.put(tx, "vectorEmbeddings", block, limits)
    return Uploaded(row, existing=False)


def _completed(tx: Transaction, before: Json, read: Json) -> Json:
    """Complete the document `before` with the file fields of `read` (type, size, counts, status).

    Keep its id and name. Unite the sessions of both.
    """
    for session_id in read["activeSessions"]:
        before = borrow(tx, before["id"], session_id)
    of_the_file = ("mimeType", "size", "textHash", "chunkCount", "pageCount", "status", "updatedAt")
    old = {name: value for name, value in before.items() if name not in ("pageCount", "statusDetail")}
    return old | {name: read[name] for name in of_the_file if name in read}


def _blocks(document: Json, chunks: Sequence[Chunk], tokens: Sequence[int], times: Json) -> list[Json]:
    blocks = []
    pairs = list(zip(chunks, tokens, strict=True))
    for number, first in enumerate(range(0, len(pairs), BLOCK_CHUNKS)):
        block = {
            "id": f"{document['id']}.{number}",
            "documentId": document["id"],
            "block": number,
            "textHash": document["textHash"],
            "model": "",
            "dims": 0,
            "chunks": [_wire_chunk(c, n) for c, n in pairs[first : first + BLOCK_CHUNKS]],
            "embedding": None,
            **times,
        }
        blocks.append(block)
    return blocks


def _wire_chunk(piece: Chunk, tokens: int) -> Json:
    row: Json = {"index": piece.index, "start": piece.start, "text": piece.text, "tokens": tokens}
    if piece.page is not None:
        row["page"] = piece.page
    if piece.section is not None:
        row["section"] = piece.section[:SECTION_MAX]
    return row
