"""Export: all of one's data in open formats, as a ZIP of JSON lines and plain text. Vectors are derived, yet they are
yours, so they are in it too (inside vectorEmbeddings.jsonl).

Every row is the JSON that a device would pull, so pushing the lines gives the same rows again.

What is in it is settled at the start, by the rows as one commit left them. Their content is read a portion at a time
while devices go on writing: each row is there once and whole, but one edited meanwhile may be there as edited, one
deleted meanwhile is left out, and one that came meanwhile is not in it. The spool is read before that, so that what is
taken up meanwhile is there twice rather than not at all.
"""

from __future__ import annotations

import asyncio
import re
import zipfile
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import msgspec

from vademecum.engines.duckdb.userstore import UserStore
from vademecum.model.chunk import join
from vademecum.model.collections import Json
from vademecum.model.draft import WAITING, Head
from vademecum.model.jsontext import on_one_line
from vademecum.services import spool_files
from vademecum.services.documents import filenames
from vademecum.services.portions import Portion, portions

WAITING_FILE = "waiting.jsonl"
SPOOL_FILE = "agent-events.jsonl"
README = """This is everything the server keeps of you.

account.json               your account (no secrets)
<collection>.jsonl         one row a line, as your devices sync it; observations and roots stay on the server
waiting.jsonl              rows that came before what they belong to (as a message before its session) and wait for
                           it: {"collection": its name, "row": the row} a line
documents/<name>.txt       the text of each document
agent-events.jsonl         with everything: what agents did that waits to be taken up, or was no event and is kept aside
                           for a while: {"file": where it lies, "event": it} a line, or "text" of what is no JSON,
                           or "unread": why the server cannot read it

To take it in elsewhere, push each row as `newDocumentState` to /v1/sync/<collection>/0/push. The `userId` of a
document must be the id of the account that it is pushed to.
"""


class _Chunked(msgspec.Struct):
    chunks: list[Json]


_block = msgspec.json.Decoder(_Chunked)


@dataclass
class Contents:
    """Keys of the rows of an export. `blocks`: of each document, in their order."""

    rows: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    waiting: list[str] = field(default_factory=list)
    blocks: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))


async def export(
    store: UserStore,
    account: dict[str, Any],
    collections: Iterable[str],
    target: IO[bytes],
    only: Collection[str] | None,
    spooled: Sequence[Path] | None,
) -> None:
    """Write the ZIP to `target`. In memory is a portion of the rows at a time, and their keys. `only`: the keys of what
    is to be in it, if it is not everything; `spooled`: the user's folders of the spool, if they are to be in it."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        if spooled is not None:
            await asyncio.to_thread(_write_spooled, archive, spooled)
        heads = [(key, head) for key, head in store.heads.rows.items() if only is None or key in only]
        contents = await asyncio.to_thread(settle, heads)
        archive.writestr("README.txt", README)
        archive.writestr("account.json", msgspec.json.format(msgspec.json.encode(account), indent=2))
        for collection in collections:
            await _write(store, archive, f"{collection}.jsonl", contents.rows[collection], _line)
        await _write(store, archive, WAITING_FILE, contents.waiting, _waiting_line)
        names = await filenames(store, contents.blocks)
        for document_id, keys in contents.blocks.items():
            if document_id in names:
                name = f"documents/{_safe(names[document_id])} ({document_id}).txt"
                await _write_text(store, archive, name, keys)


def _write_spooled(archive: zipfile.ZipFile, folders: Sequence[Path]) -> None:
    with archive.open(SPOOL_FILE, "w", force_zip64=True) as file:
        for folder in folders:
            try:
                for path in spool_files.everything(folder):
                    file.write(_spooled_line(path))
            except OSError as error:
                file.write(_said(folder.parts[-2:], unread=_why(error)))


def _spooled_line(path: Path) -> bytes:
    where = path.parts[-3:]
    try:
        content = spool_files.content(path, whole=False)
    except FileNotFoundError:  # it was taken up meanwhile
        return b""
    except OSError as error:
        return _said(where, unread=_why(error))
    try:
        return _said(where, event=msgspec.json.decode(content))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return _said(where, text=content.decode(errors="replace"))


def _why(error: OSError) -> str:
    return error.strerror or type(error).__name__


def _said(where: Sequence[str], **what: Any) -> bytes:
    return msgspec.json.encode({"file": "/".join(where)} | what) + b"\n"


def settle(heads: list[tuple[str, Head]]) -> Contents:
    """What an export is made of: all but the tombstones, in the order of `seq`."""
    contents = Contents()
    for seq, key in sorted((head.seq, key) for key, head in heads if not head.deleted):
        collection, _, row_id = key.partition("/")
        if seq == WAITING:
            contents.waiting.append(key)
            continue
        contents.rows[collection].append(key)
        if collection == "vectorEmbeddings":
            contents.blocks[row_id.rpartition(".")[0]].append(key)
    for keys in contents.blocks.values():
        keys.sort(key=lambda key: int(key.rpartition(".")[2]))
    return contents


async def _write(
    store: UserStore,
    archive: zipfile.ZipFile,
    name: str,
    keys: Iterable[str],
    line: Callable[[str, bytes], bytes],
) -> None:
    def write(portion: Portion) -> None:
        for key, body in portion:
            file.write(line(key, body) + b"\n")

    with archive.open(name, "w", force_zip64=True) as file:
        async for portion in portions(store, keys):
            await asyncio.to_thread(write, portion)


def _line(key: str, body: bytes) -> bytes:
    """A row as it was sent."""
    return on_one_line(body)


def _waiting_line(key: str, body: bytes) -> bytes:
    return b'{"collection":"%s","row":%s}' % (key.partition("/")[0].encode(), _line(key, body))


async def _write_text(store: UserStore, archive: zipfile.ZipFile, name: str, keys: Iterable[str]) -> None:
    """The text of one document, from its blocks."""

    def write(portion: Portion, last: Json | None) -> Json | None:
        chunks = [chunk for _, body in portion for chunk in _block.decode(body).chunks]
        file.write(join(chunks, last).encode())
        return chunks[-1] if chunks else last

    last: Json | None = None
    with archive.open(name, "w", force_zip64=True) as file:
        async for portion in portions(store, keys):
            last = await asyncio.to_thread(write, portion, last)


def _safe(filename: str) -> str:
    """As the name of a file: without what leads elsewhere, and short, as file systems count bytes, 255 with the id."""
    return re.sub(r"[^\w. -]", "_", filename).encode()[:120].decode(errors="ignore")
