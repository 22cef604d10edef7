"""What an account may hold. Checked for each row inside the transaction that would add it.

Deletes always pass, and so do an edit that does not grow what it edits, and a borrow.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from vademecum.model.schema.collections import Json
from vademecum.model.text.sanitize import short_name

Tier = Literal["FREE", "JIVE", "JIGGA"]
DOCUMENTS = 100
WARN_FROM = 90
BORROWED = {
    "activeSessions",
    "accessCount",
    "lastAccessedAt",
    "updatedAt",
}  # what a borrow changes of a document
TOMBSTONES_FREE = 100_000
TOMBSTONE_BYTES = 256  # about what the blanked row takes
REFERENCES_FREE = 100_000
REFERENCE_BYTES = 256  # half of what one takes in memory; on the disk it takes hardly any


class Limits(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Bounds of one account: counts, and bytes. The defaults are those of JIGGA; the other tiers are in `settings`."""

    documents: int = DOCUMENTS
    file_bytes: int = 25 * 2**20
    storage_bytes: int = 250 * 2**20
    row_bytes: int = 2**20
    authoritative: bool = True
    searches_documents: bool = True


class Usage(msgspec.Struct, frozen=True, rename="camel"):
    documents: int
    bytes: int


class QuotaExceeded(msgspec.Struct, frozen=True):
    """`message`: for who pushed the row, whose device keeps it."""

    code: str
    message: str


def message_for_api_client(message: str) -> str:
    """The message of a refusal for who writes by a route: no device keeps what they sent."""
    return message.replace("stays on this device", "was not stored")


def charged_bytes(collection: str, row: Json, body_bytes: int) -> int:
    """Bytes a row counts for. Vectors are derived and not charged, up to four times the text they stand for."""
    if collection != "vectorEmbeddings" or not row.get("embedding"):
        return body_bytes
    text = sum(len(chunk["text"]) for chunk in row["chunks"])
    return body_bytes - min(len(row["embedding"]), 4 * text)


def has_free_tombstone(count: int) -> bool:
    """Whether an account with `count` tombstones may have another that is not charged."""
    return count < TOMBSTONES_FREE


def charged_tombstones(count: int) -> int:
    """Bytes `count` tombstones are charged. They are kept for ever, so to write and delete must not be free for ever."""
    return max(0, count - TOMBSTONES_FREE) * TOMBSTONE_BYTES


def charged_references(count: int) -> int:
    """Bytes `count` references of rows to others are charged: memory holds each, and a row may have ten thousand."""
    return max(0, count - REFERENCES_FREE) * REFERENCE_BYTES


def check_quota(
    collection: str,
    before: Json | None,
    after: Json,
    growth: int,
    body_bytes: int,
    usage: Usage,
    limits: Limits,
) -> QuotaExceeded | None:
    """Why `after` may not be stored in place of the live row `before` (None: it becomes live), or None.

    `growth`: bytes it adds to `usage.bytes`; `body_bytes`: its own length.
    """
    if body_bytes > limits.row_bytes and growth > 0:
        return QuotaExceeded(
            "TOO_LARGE", f"This entry is larger than {_size(limits.row_bytes)}. It stays on this device."
        )
    if collection == "documents":
        if before is None and usage.documents >= limits.documents:
            return QuotaExceeded(
                "DOCUMENT_LIMIT",
                f"You have {usage.documents} documents, which is the most. {short_name(after['filename'])} stays on this device. "
                "Delete one and try again.",
            )
        if after["size"] > limits.file_bytes and (before is None or after["size"] > before["size"]):
            return QuotaExceeded(
                "TOO_LARGE",
                f"{short_name(after['filename'])} is larger than the {_size(limits.file_bytes)} a file may have. "
                "It stays on this device.",
            )
    if (
        collection == "sessions"
        and after["mode"] == "authoritative"
        and not limits.authoritative
        and (before is None or before["mode"] != "authoritative")
    ):
        return QuotaExceeded(
            "TIER", "Authoritative mode belongs to JIGGA accounts. The change stays on this device."
        )
    if collection == "documents" and before is not None and _is_borrow(before, after):
        return None  # a full account borrows, too; how large the row may get was asked above
    return check_storage_quota(usage.bytes, usage.bytes + growth, limits)


def _is_borrow(before: Json, after: Json) -> bool:
    fields = {*before, *after} - BORROWED
    return all(before.get(field) == after.get(field) for field in fields)


def check_storage_quota(before: int, after: int, limits: Limits) -> QuotaExceeded | None:
    """Why an account's bytes may not become `after`, or None."""
    if after > before and after > limits.storage_bytes:
        return QuotaExceeded(
            "STORAGE_LIMIT",
            f"Your {_size(limits.storage_bytes)} are full. This stays on this device. "
            "Delete something you no longer need and try again.",
        )
    return None


def _size(count: int) -> str:
    return f"{count / 2**20:.0f} MB" if count >= 2**20 else f"{count} bytes"
