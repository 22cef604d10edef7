"""Forget everything of an account, or one project: delete the rows, rewrite the files and return a receipt.

After "forget everything", a stale device cannot bring older rows back: the server rejects them with FORGOTTEN.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
from collections.abc import Collection as Several
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from vademecum.errors import NotYetErased
from vademecum.model.records.paths import user_folder
from vademecum.model.records.store_interface import UserStore, UserStores
from vademecum.model.schema.collections import Collection, Json
from vademecum.model.sync.transaction import WAITING, Transaction
from vademecum.services.data.erase import Eraser, files_below, scan
from vademecum.services.memory.delete import delete_project
from vademecum.services.memory.project_contents import list_project_keys
from vademecum.services.sync.batches import Batch, read_batches
from vademecum.services.sync.stream import Hub

SAMPLE = 400  # the number of pieces of the erased content that are searched for on the disk
PIECE_MIN = 16  # minimum length in characters; shorter pieces would match by chance
CONTENT = (
    "filename",
    "userMessage",
    "aiResponse",
    "feedbackText",
    "instructions",
    "text",
    "value",
    "content",
    "title",
    "name",
    "path",
    "root",
)
# Captures a part of a text without escapes. Records contain the JSON as it was sent, and clients may escape the same
# text differently.
_AS_SENT = re.compile(rb'"(?:%s)":\s*"[^"]{0,200}?([^"\\]{16,64})' % "|".join(CONTENT).encode())


NOTE = (
    "Offline devices delete their copies when they next connect. Existing backups are not changed; after a restore, "
    "the server erases this data again."
)


class Receipt(msgspec.Struct, rename="camel"):
    """The result of forgetting an account or a project.

    `rows`: deleted rows. `bytes`: the size of their stored JSON, including vectors. `files`: rewritten or removed
    files. `checked`: pieces of erased content that were searched for on the disk. `leftovers`: how many of these pieces
    were found, which is 0 after a successful erasure.
    """

    rows: int
    files: int
    bytes: int
    at: str
    checked: int
    leftovers: int
    note: str


async def forget_everything(
    data: Path, users: UserStores, eraser: Eraser, hub: Hub, user_id: str, spooled: Several[Path]
) -> Receipt:
    """Delete and erase everything of an account, and verify the result. Return a receipt.

    `spooled`: the user's spool folders, which the verification also scans.
    """
    await eraser.evict(user_id)  # delete the indexes first, to free space on a full disk
    async with users.open(user_id) as store:
        seen = await _look(store)
        rows, size, at = await store.write(lambda tx: _delete_all_rows(tx, seen.stubs))
        hub.publish_forget(store)
    files, note = 0, NOTE
    try:
        files = await eraser.erase_all(user_id)
    except NotYetErased as error:  # the erase job tries again
        note = f"{error.message} {NOTE}"
    needles = sorted(seen.needles)[:SAMPLE]
    leftovers = await asyncio.to_thread(_count_leftovers, [user_folder(data, user_id), *spooled], needles)
    return Receipt(rows, files, size, at, len(needles), leftovers, note)


async def forget_project(
    data: Path,
    users: UserStores,
    eraser: Eraser,
    user_id: str,
    project_id: str,
    spooled: Several[Path],
    *,
    with_sessions: bool,
) -> Receipt:
    """Delete a project as `delete_project` does, erase it from the disk and verify the result. Return a receipt.

    Raises NotFound for a missing project.
    """
    async with users.open(user_id) as store:
        keys = list_project_keys(store, project_id, with_sessions=with_sessions)
        size = sum(store.row_index.rows[key].size for key in keys if key in store.row_index.rows)
        needles = await _needles(store, keys)
        count, at = await store.write(
            lambda tx: (delete_project(tx, project_id, with_sessions=with_sessions), tx.now)
        )
        needles = await _without_remaining_text(store, needles)
    folder = user_folder(data, user_id)
    files = await asyncio.to_thread(lambda: sum(1 for _ in files_below(folder)))
    note = NOTE
    try:
        await eraser.work(user_id)
    except NotYetErased as error:
        note = f"{error.message} {NOTE}"
    leftovers = await asyncio.to_thread(_count_leftovers, [folder, *spooled], needles)
    return Receipt(count, files, size, at, len(needles), leftovers, note)


def _count_leftovers(folders: Iterable[Path], needles: list[bytes]) -> int:
    return sum(scan(folder, needles) for folder in folders)


async def _needles(store: UserStore, keys: Several[str]) -> list[bytes]:
    """Return a sample of the content of these rows, as byte strings."""
    found: set[bytes] = set()
    async for portion in read_batches(store, sorted(keys)[:: max(1, len(keys) // SAMPLE)]):
        found |= await asyncio.to_thread(_extract_texts, portion)
    return sorted(found)[:SAMPLE]


def _extract_texts(portion: Batch) -> set[bytes]:
    return {piece for _, body in portion for piece in _pieces(msgspec.json.decode(body), body)}


async def _without_remaining_text(store: UserStore, needles: list[bytes]) -> list[bytes]:
    """Return the needles that no stored row contains. Text that a remaining row also contains stays on the disk."""
    remaining = needles
    async for portion in read_batches(store, list(store.row_index.rows)):
        bodies = b"\n".join(body for _, body in portion)
        remaining = await asyncio.to_thread(_absent, remaining, bodies)
    return remaining


def _absent(needles: list[bytes], text: bytes) -> list[bytes]:
    return [needle for needle in needles if needle not in text]


class _Stub(msgspec.Struct, frozen=True):
    """The content of a row's future tombstone (`kept`), and the `seq` and size that the row had when it was read."""

    seq: int
    size: int
    kept: bytes


@dataclass
class _Seen:
    stubs: dict[str, _Stub] = field(default_factory=dict)
    needles: set[bytes] = field(default_factory=set)


async def _look(store: UserStore) -> _Seen:
    """Read all rows in batches. Keep only stubs and a sample of the content, because all rows may take a gigabyte."""
    seen = _Seen()
    seqs = {key: head.seq for key, head in store.row_index.rows.items() if not head.deleted}
    sample = set(list(seqs)[:: max(1, len(seqs) // SAMPLE)])
    async for portion in read_batches(store, seqs):
        await asyncio.to_thread(_note, seen, portion, seqs, sample, store.collections)
    return seen


def _note(
    seen: _Seen,
    portion: Batch,
    seqs: Mapping[str, int],
    sample: set[str],
    collections: Mapping[str, Collection],
) -> None:
    for key, body in portion:
        collection = collections[key.partition("/")[0]]
        row = msgspec.json.decode(body)
        names = (collection.primary_key, "createdAt", "updatedAt", *collection.parents)
        kept = msgspec.json.encode({name: row[name] for name in names if name in row})
        seen.stubs[key] = _Stub(seqs[key], len(body), kept)
        if key in sample:
            seen.needles.update(_pieces(row, body))


def _delete_all_rows(tx: Transaction, stubs: Mapping[str, _Stub]) -> tuple[int, int, str]:
    """Replace all rows with tombstones, and purge waiting rows.

    Return three values: the number of rows, the bytes of their content, and the time. If a row was written after its
    stub was made, the row is read again.
    """
    keys = list(tx.keys())
    size = 0
    for key in keys:
        head = tx.head(key)
        stub = stubs.get(key)
        fresh = stub is not None and head is not None and head.seq == stub.seq
        size += stub.size if stub is not None and fresh else len(tx.body(key))
        if head is not None and head.seq == WAITING:
            tx.purge(key)
        else:
            tx.put_tombstone(
                key, msgspec.json.decode(stub.kept) if stub is not None and fresh else tx.row(key)
            )
    tx.forget_everything(tx.now)
    return len(keys), size, tx.now


def _pieces(row: Json, body: bytes) -> Iterator[bytes]:
    """Yield parts of a row's content in all forms that may be on the disk: text, sent JSON, base64 and vector bytes."""
    for name in CONTENT:
        text = row.get(name)
        if isinstance(text, str) and len(text) >= PIECE_MIN:
            yield text[:64].encode(errors="ignore")
    yield from (found.group(1) for found in _AS_SENT.finditer(body))
    for chunk in row.get("chunks", [])[:1]:
        yield chunk["text"][:64].encode(errors="ignore")
    embedding = row.get("embedding")
    if isinstance(embedding, str):
        yield embedding[:64].encode()
        try:
            yield base64.b64decode(embedding[:64])
        except binascii.Error:
            return
