"""Export all data of a user in open formats, as a ZIP of JSON lines and plain text.

Vectors are derived data, but the user owns them, so vectorEmbeddings.jsonl contains them. Every row is the JSON that a
device would pull, so pushing the lines restores the same rows.

The export is streamed, so it is never completely in memory or on the disk. The keys of its rows are listed at the
start, as of one commit. Rows are then read in batches while devices continue to write. The account's database is not
kept open between batches, so a slow client does not block it. Each exported row is complete and occurs once. Rows may
change during the export: of an edited row, the export contains the old or the new version. New rows, and rows that are
deleted before the export reads them, are not included. The spool is read first, so that an event that is ingested
during the export appears as an event and as an observation, rather than not at all. A restore during the export ends
the stream early.
"""

from __future__ import annotations

import asyncio
import re
import zipfile
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

import msgspec

from vademecum.model.documents.chunking import join
from vademecum.model.records.store_interface import UserStores
from vademecum.model.schema.collections import Json
from vademecum.model.schema.lenient_json import join_json_lines
from vademecum.model.sync.transaction import WAITING, RowHead
from vademecum.services.agents import spool_files
from vademecum.services.documents.documents import read_filenames
from vademecum.services.sync.batches import Batch, read_first_batch
from vademecum.services.sync.pull import check_epoch

WAITING_FILE = "waiting.jsonl"
SPOOL_FILE = "agent-events.jsonl"
SPOOL_BATCH = 100  # the number of events that are read before they are sent
README = """This archive contains everything that the server stores about you.

account.json               your account, without secrets
<collection>.jsonl         one row per line, as your devices sync it; observations and roots stay on the server
waiting.jsonl              rows that wait for the row they belong to, such as a message that arrived before its chat:
                           {"collection": its name, "row": the row} per line
documents/<name>.txt       the text of each document
agent-events.jsonl         only in an export of everything: events of agents that are not ingested yet, or that were
                           rejected and are kept for a while: {"file": its path, "event": the event} per line, or
                           "text" if it is not JSON, or "unread" with the reason why the server cannot read it

To import it elsewhere, push each row as `newDocumentState` to /v1/sync/<collection>/<version>/push, with
`"imported": true` beside it, so that no language model is called for old chats. The `userId` of a document must be
the id of the account that it is pushed to.
"""


class _Chunked(msgspec.Struct):
    chunks: list[Json]


_block = msgspec.json.Decoder(_Chunked)


@dataclass
class Contents:
    """The keys of the rows of an export.

    `rows`: maps collections to live rows. `waiting`: waiting rows. `blocks`: maps document ids to blocks, in order.
    """

    rows: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    waiting: list[str] = field(default_factory=list)
    blocks: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))


class _Sink:
    """Buffers the output of the ZIP writer until it is sent.

    A sink cannot seek, so the ZIP writer writes the size of each file after its content.
    """

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._pieces.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Do nothing. The ZIP writer requires this method."""

    def take(self) -> bytes:
        found, self._pieces = b"".join(self._pieces), []
        return found


@dataclass(frozen=True)
class Export:
    """One export of a user's data.

    `only`: keys of the rows to export, or None for all. `spooled`: the user's spool folders, or None to omit them.
    """

    users: UserStores
    user_id: str
    account: dict[str, Any]
    collections: Iterable[str]
    only: Collection[str] | None
    spooled: Sequence[Path] | None

    async def stream(self) -> AsyncIterator[bytes]:
        """Yield the ZIP in pieces."""
        sink = _Sink()
        with zipfile.ZipFile(cast(IO[bytes], sink), "w", zipfile.ZIP_DEFLATED) as archive:
            async for name, content in self._files():
                with archive.open(name, "w", force_zip64=True) as file:
                    async for piece in content:
                        await asyncio.to_thread(file.write, piece)
                        yield sink.take()
        yield sink.take()

    async def _files(self) -> AsyncIterator[tuple[str, AsyncIterator[bytes]]]:
        yield "README.txt", _single_piece(README.encode())
        yield "account.json", _single_piece(msgspec.json.format(msgspec.json.encode(self.account), indent=2))
        if self.spooled is not None:
            yield SPOOL_FILE, _spooled_lines(self.spooled)
        async with self.users.open(self.user_id) as store:
            rows = list(store.row_index.rows.items())
            contents = await asyncio.to_thread(self._contents, rows)
            names = await read_filenames(store, contents.blocks)
            epoch = store.epoch
        for collection in self.collections:
            yield f"{collection}.jsonl", self._lines(contents.rows[collection], epoch, _line)
        yield WAITING_FILE, self._lines(contents.waiting, epoch, _waiting_line)
        for document_id, keys in contents.blocks.items():
            if document_id in names:
                name = f"documents/{_safe(names[document_id])} ({document_id}).txt"
                yield name, self._text(keys, epoch)

    def _contents(self, rows: list[tuple[str, RowHead]]) -> Contents:
        return settle([(key, head) for key, head in rows if self.only is None or key in self.only])

    async def _portions(self, keys: Sequence[str], epoch: str) -> AsyncIterator[Batch]:
        """Yield the rows that are still live, in batches. Raises OtherEpoch after a restore."""
        while keys:
            async with self.users.open(self.user_id) as store:
                check_epoch(store, epoch)
                portion, keys = await read_first_batch(store, keys)
            yield portion

    async def _lines(
        self, keys: Sequence[str], epoch: str, line: Callable[[str, bytes], bytes]
    ) -> AsyncIterator[bytes]:
        def lines(portion: Batch) -> bytes:
            return b"".join([line(key, body) + b"\n" for key, body in portion])

        async for portion in self._portions(keys, epoch):
            yield await asyncio.to_thread(lines, portion)

    async def _text(self, keys: Sequence[str], epoch: str) -> AsyncIterator[bytes]:
        """Yield the text of one document, joined from its blocks."""

        def text(portion: Batch, last: Json | None) -> tuple[bytes, Json | None]:
            chunks = [chunk for _, body in portion for chunk in _block.decode(body).chunks]
            return join(chunks, last).encode(), chunks[-1] if chunks else last

        last: Json | None = None
        async for portion in self._portions(keys, epoch):
            piece, last = await asyncio.to_thread(text, portion, last)
            yield piece


async def _single_piece(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def _spooled_lines(folders: Sequence[Path]) -> AsyncIterator[bytes]:
    lines = _iterate_spooled_lines(folders)
    while piece := await asyncio.to_thread(lambda: b"".join(islice(lines, SPOOL_BATCH))):
        yield piece


def _iterate_spooled_lines(folders: Sequence[Path]) -> Iterator[bytes]:
    for folder in folders:
        try:
            for path in spool_files.list_contents(folder):
                yield _spooled_line(path)
        except OSError as error:
            yield _encode_spool_line(folder.parts[-2:], unread=_error_text(error))


def _spooled_line(path: Path) -> bytes:
    path_parts = path.parts[-3:]
    try:
        content = spool_files.read_content(path, truncate=True)
    except FileNotFoundError:  # the event has already been ingested
        return b""
    except OSError as error:
        return _encode_spool_line(path_parts, unread=_error_text(error))
    try:
        return _encode_spool_line(path_parts, event=msgspec.json.decode(content))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return _encode_spool_line(path_parts, text=content.decode(errors="replace"))


def _error_text(error: OSError) -> str:
    return error.strerror or type(error).__name__


def _encode_spool_line(path_parts: Sequence[str], **content: Any) -> bytes:
    return msgspec.json.encode({"file": "/".join(path_parts)} | content) + b"\n"


def settle(heads: list[tuple[str, RowHead]]) -> Contents:
    """Return the contents of an export: all rows except tombstones, in the order of `seq`."""
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


def _line(key: str, body: bytes) -> bytes:
    """Return a row as a client sent it, on one line."""
    return join_json_lines(body)


def _waiting_line(key: str, body: bytes) -> bytes:
    return b'{"collection":"%s","row":%s}' % (key.partition("/")[0].encode(), _line(key, body))


def _safe(filename: str) -> str:
    """Return a filename that is safe inside a ZIP: without path separators and at most 120 bytes.

    File systems limit a name to 255 bytes, and the caller appends the document's id and the extension.
    """
    return re.sub(r"[^\w. -]", "_", filename).encode()[:120].decode(errors="ignore")
