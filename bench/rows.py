"""Generate the rows to push. All servers get the same rows, generated from a fixed seed before the clock starts."""

from __future__ import annotations

import base64
import itertools
import random
from typing import Any

import msgspec

Row = dict[str, Any]

ROW_BYTES = 1024
DIMS = 384
CHUNKS = 16
CHUNK_CHARACTERS = 500
START_MS = 1_790_000_000_000
TIME = "2026-11-21T03:00:00.000Z"
TEXT = (
    "lease tenant rent deposit notice clause annex signed before after landlord repair window kitchen heating "
    "the a of and to in is that for it as was with be by on not his are or at from this have an which you "
    "quarter invoice payment account statement größer café naïve straße 2026 14.5 percent chapter page table"
)
WORDS = TEXT.split()
VERSION_1 = ("documents", "vectorEmbeddings", "projects", "sessions", "episodes")
DOCUMENT_FIELDS: Row = {"textHash": "", "original": "none", "fileRevision": 1}
SESSION_FIELDS: Row = {"documentScope": "chosen", "memory": "on"}


def sync_path(collection: str) -> str:
    return f"/v1/sync/{collection}/{int(collection in VERSION_1)}"


class Maker:
    """A generator of one user's rows. Ids are in ascending order, like UUIDv7."""

    def __init__(self, user: int) -> None:
        self.user = user
        self._random = random.Random(f"vademecum {user}")
        self._count = itertools.count()
        self.session_id = self._id()
        self.document_id = self._id()

    def _id(self) -> str:
        bits = (START_MS + next(self._count)) << 80 | 7 << 76 | self._random.getrandbits(76)
        bits = bits & ~(3 << 62) | 2 << 62
        digits = f"{bits:032x}"
        return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))

    def _text(self, characters: int) -> str:
        return " ".join(self._random.choices(WORDS, k=characters // 4 + 2))[:characters]

    def session(self) -> Row:
        row = {"id": self.session_id, "title": f"Bench {self.user}", "mode": "analysis", **SESSION_FIELDS}
        return {**row, "createdAt": TIME, "updatedAt": TIME, "_deleted": False}

    def document(self, user_id: str, blocks: int) -> Row:
        """Return the document to which the vector blocks belong. Only our server checks `user_id`, the account's id."""
        return {
            "id": self.document_id,
            "createdAt": TIME,
            "updatedAt": TIME,
            "userId": user_id,
            "originSessionId": self.session_id,
            "activeSessions": [self.session_id],
            "accessCount": 0,
            "lastAccessedAt": TIME,
            "filename": "bench.pdf",
            "mimeType": "application/pdf",
            "size": 1,
            "contentHash": "0" * 64,
            "chunkCount": blocks * CHUNKS,
            "status": "ready",
            **DOCUMENT_FIELDS,
            "_deleted": False,
        }

    def episode(self) -> Row:
        """Return an episode that has about 1 KB as JSON."""
        row = {
            "id": self._id(),
            "createdAt": TIME,
            "updatedAt": TIME,
            "sessionId": self.session_id,
            "userMessage": self._text(160),
            "aiResponse": "",
            "citations": [],
            "status": "done",
            "_deleted": False,
        }
        row["aiResponse"] = self._text(ROW_BYTES - len(msgspec.json.encode(row)))
        return row

    def block(self, number: int) -> Row:
        """Return a block of 16 chunks with their vectors (16 × 384 float32, base64)."""
        chunks = [self._chunk(number * CHUNKS + offset) for offset in range(CHUNKS)]
        numbers = self._random.randbytes(DIMS * CHUNKS * 4)
        return {
            "id": f"{self.document_id}.{number}",
            "createdAt": TIME,
            "updatedAt": TIME,
            "documentId": self.document_id,
            "block": number,
            "textHash": "",
            "model": "b" * 64,
            "dims": DIMS,
            "chunks": chunks,
            "embedding": base64.b64encode(_finite(numbers)).decode(),
            "_deleted": False,
        }

    def _chunk(self, index: int) -> Row:
        text = self._text(CHUNK_CHARACTERS)
        return {"index": index, "start": index * CHUNK_CHARACTERS, "text": text, "tokens": 110, "page": 1}

    def episodes(self, batches: int, size: int) -> list[list[Row]]:
        return [[self.episode() for _ in range(size)] for _ in range(batches)]

    def blocks(self, batches: int, size: int) -> list[list[Row]]:
        numbers = itertools.count()
        return [[self.block(next(numbers)) for _ in range(size)] for _ in range(batches)]


def _finite(raw: bytes) -> bytes:
    """Turn random bytes into small finite float32 values, by setting the last byte (sign and exponent) of each."""
    numbers = bytearray(raw)
    for place in range(3, len(numbers), 4):
        numbers[place] = 0x3D if numbers[place] & 1 else 0xBD
    return bytes(numbers)
