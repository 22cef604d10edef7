"""Forget everything: every row of all collections dies, the disk is rewritten, and a receipt says what was done.

What was written before this moment never comes back from a stale device: its pushes are refused FORGOTTEN.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from vademecum.engines.duckdb.users import Users, user_folder
from vademecum.model.collections import Json
from vademecum.model.draft import WAITING, Draft
from vademecum.services.erase import Eraser, scan

SAMPLE = 400  # pieces of content that are looked for afterwards
PIECE_MIN = 16  # characters; shorter ones are found by chance
CONTENT = ("filename", "userMessage", "aiResponse", "text", "value", "content", "title", "name")
# The first stretch of a text without an escape: records hold the JSON that was sent, escapes and all.
_AS_SENT = re.compile(rb'"(?:%s)":\s*"[^"]{0,200}?([^"\\]{16,64})' % "|".join(CONTENT).encode())


class Receipt(msgspec.Struct, rename="camel"):
    """`rows` and `bytes` of content, `files` rewritten or removed. `leftovers`: of `checked` pieces of what was erased, how many a scan of the user's folder still found: 0."""

    rows: int
    files: int
    bytes: int
    at: str
    checked: int
    leftovers: int
    note: str = (
        "Devices that were offline will be cleaned when they connect. Backups made before are not changed; restoring "
        "one forgets again what was forgotten here."
    )


async def forget_everything(data: Path, users: Users, eraser: Eraser, user_id: str) -> Receipt:
    """Returns when it is done and checked."""
    async with users.open(user_id) as store:
        rows, size, needles, at = await store.write(_bury_all)
    files = await eraser.erase_all(user_id)
    leftovers = await asyncio.to_thread(scan, user_folder(data, user_id), needles)
    return Receipt(rows, files, size, at, len(needles), leftovers)


def _bury_all(draft: Draft) -> tuple[int, int, list[bytes], str]:
    """(rows, bytes of their content, pieces of it to look for afterwards, the moment)."""
    keys = list(draft.keys())
    draft.prefetch(keys)
    needles: set[bytes] = set()
    size = 0
    step = max(1, len(keys) // SAMPLE)
    for position, key in enumerate(keys):
        row = draft.row(key)
        size += len(draft.body(key))
        if position % step == 0 and len(needles) < SAMPLE:
            needles.update(_pieces(row, draft.body(key)))
        head = draft.head(key)
        if head is not None and head.seq == WAITING:
            draft.erase_waiting(key)
        else:
            draft.bury(key, row)
    draft.forgotten_at = draft.now
    return len(keys), size, sorted(needles)[:SAMPLE], draft.now


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
