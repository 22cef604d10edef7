"""Forget everything: every row of all collections dies, the disk is rewritten, and a receipt says what was done.

What was written before this moment never comes back from a stale device: its pushes are refused FORGOTTEN.
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

SAMPLE = 400  # pieces of content that are looked for afterwards
PIECE_MIN = 16  # characters; shorter ones are found by chance
CONTENT = (
    "filename",
    "userMessage",
    "aiResponse",
    "text",
    "value",
    "content",
    "title",
    "name",
    "path",
    "root",
)
# The first stretch of a text without an escape: records hold the JSON that was sent, escapes and all.
_AS_SENT = re.compile(rb'"(?:%s)":\s*"[^"]{0,200}?([^"\\]{16,64})' % "|".join(CONTENT).encode())


NOTE = (
    "Devices that were offline will be cleaned when they connect. Backups made before are not changed; restoring one "
    "forgets again what was forgotten here."
)


class Receipt(msgspec.Struct, rename="camel"):
    """`rows`, the `bytes` of their JSON as it was stored (vectors too), `files` rewritten or removed. `leftovers`: of
    `checked` pieces of what was erased, how many a scan of the user's folders still found: 0."""

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
    """Returns when it is done and checked. `spooled`: the user's folders of the spool, which are looked through too."""
    await eraser.evict(user_id)  # unlinks before anything is written: on a full disk that makes room
    async with users.open(user_id) as store:
        seen = await _look(store)
        rows, size, at = await store.write(lambda tx: _bury_all(tx, seen.stubs))
        hub.publish_forget(store)
    files, note = 0, NOTE
    try:
        files = await eraser.erase_all(user_id)
    except NotYetErased as error:  # its job tries again
        note = f"{error.message} {NOTE}"
    needles = sorted(seen.needles)[:SAMPLE]
    leftovers = await asyncio.to_thread(_left, [user_folder(data, user_id), *spooled], needles)
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
    """As `delete_project`, and returns when the disk is rid of it and that is checked. Raises NotFound."""
    async with users.open(user_id) as store:
        keys = list_project_keys(store, project_id, with_sessions=with_sessions)
        size = sum(store.row_index.rows[key].size for key in keys if key in store.row_index.rows)
        needles = await _needles(store, keys)
        count, at = await store.write(
            lambda tx: (delete_project(tx, project_id, with_sessions=with_sessions), tx.now)
        )
        needles = await _only_there(store, needles)
    folder = user_folder(data, user_id)
    files = await asyncio.to_thread(lambda: sum(1 for _ in files_below(folder)))
    note = NOTE
    try:
        await eraser.work(user_id)
    except NotYetErased as error:
        note = f"{error.message} {NOTE}"
    leftovers = await asyncio.to_thread(_left, [folder, *spooled], needles)
    return Receipt(count, files, size, at, len(needles), leftovers, note)


def _left(folders: Iterable[Path], needles: list[bytes]) -> int:
    return sum(scan(folder, needles) for folder in folders)


async def _needles(store: UserStore, keys: Several[str]) -> list[bytes]:
    """Pieces of what these rows say."""
    found: set[bytes] = set()
    async for portion in read_batches(store, sorted(keys)[:: max(1, len(keys) // SAMPLE)]):
        found |= await asyncio.to_thread(_said, portion)
    return sorted(found)[:SAMPLE]


def _said(portion: Batch) -> set[bytes]:
    return {piece for _, body in portion for piece in _pieces(msgspec.json.decode(body), body)}


async def _only_there(store: UserStore, needles: list[bytes]) -> list[bytes]:
    """The needles that no living row holds: what is said elsewhere, too, stays there."""
    left = needles
    async for portion in read_batches(store, list(store.row_index.rows)):
        bodies = b"\n".join(body for _, body in portion)
        left = await asyncio.to_thread(_absent, left, bodies)
    return left


def _absent(needles: list[bytes], text: bytes) -> list[bytes]:
    return [needle for needle in needles if needle not in text]


class _Stub(msgspec.Struct, frozen=True):
    """What a row's tombstone is made of, and which state of the row it was taken from."""

    seq: int
    size: int
    kept: bytes


@dataclass
class _Seen:
    stubs: dict[str, _Stub] = field(default_factory=dict)
    needles: set[bytes] = field(default_factory=set)


async def _look(store: UserStore) -> _Seen:
    """Read all rows, a portion at a time: together they may have a gigabyte, what is kept of them has little."""
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


def _bury_all(tx: Transaction, stubs: Mapping[str, _Stub]) -> tuple[int, int, str]:
    """(rows, bytes of their content, the moment). What was written since the look is read now."""
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
    """Stretches of a row's content as they stand on a disk: as it was sent, as text, base64, and a vector's bytes."""
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
