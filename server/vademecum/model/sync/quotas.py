"""Check the quotas of an account, for each row, inside the transaction that would store it.

Deletes, borrows and edits that do not enlarge the row are always allowed.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from vademecum.model.schema.collections import Json
from vademecum.model.text.display_text import short_name

Tier = Literal["FREE", "JIVE", "JIGGA"]
DOCUMENTS = 100
WARN_FROM = 90  # the number of documents from which the app warns the user
# The fields of a document that a borrow changes.
BORROW_FIELDS = {
    "activeSessions",
    "accessCount",
    "lastAccessedAt",
    "updatedAt",
}
TOMBSTONES_FREE = 100_000
TOMBSTONE_BYTES = 256  # the approximate size of a stored tombstone
REFERENCES_FREE = 100_000
REFERENCE_BYTES = 256  # half of the memory that a reference takes; its disk space is negligible


class Limits(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The limits of an account, as counts and bytes. The defaults are for JIGGA; `settings` has the other tiers."""

    documents: int = DOCUMENTS
    file_bytes: int = 25 * 2**20
    storage_bytes: int = 250 * 2**20
    row_bytes: int = 2**20
    authoritative: bool = True
    searches_documents: bool = True


class Usage(msgspec.Struct, frozen=True, rename="camel"):
    """The live documents and the charged bytes of an account."""

    documents: int
    bytes: int


class QuotaExceeded(msgspec.Struct, frozen=True):
    """An exceeded limit. `subject`: a name for the rejected row. `advice`: a sentence about what the user can do."""

    code: str
    reason: str
    subject: str = "It"
    advice: str = ""

    @property
    def message_for_device(self) -> str:
        """Return the message for a device, which keeps the rejected row."""
        return self.message(f"{self.subject} stays on this device.")

    @property
    def message_for_api(self) -> str:
        """Return the message for other API clients, which keep no copy of the row."""
        return self.message(f"{self.subject} was not stored.")

    def message(self, consequence: str) -> str:
        """Return the message: the reason, the `consequence` and the advice."""
        return " ".join(filter(None, (self.reason, consequence, self.advice)))


def charged_bytes(collection: str, row: Json, body_bytes: int) -> int:
    """Return the bytes charged for a row. Vectors are free up to four times the length of their text."""
    if collection != "vectorEmbeddings" or not row.get("embedding"):
        return body_bytes
    text = sum(len(chunk["text"]) for chunk in row["chunks"])
    return body_bytes - min(len(row["embedding"]), 4 * text)


def has_free_tombstone(count: int) -> bool:
    """Return whether the next tombstone of an account with `count` tombstones is free."""
    return count < TOMBSTONES_FREE


def charged_tombstones(count: int) -> int:
    """Return the bytes charged for `count` tombstones.

    These tombstones are never removed, so the quota must bound their number.
    """
    return max(0, count - TOMBSTONES_FREE) * TOMBSTONE_BYTES


def charged_references(count: int) -> int:
    """Return the bytes charged for `count` references.

    All references are in memory, and a row may have ten thousand.
    """
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
    """Return the limit that storing the row `after` would exceed, or None.

    `before`: the live row that `after` replaces, or None. `growth`: bytes added to `usage.bytes`. `body_bytes`: length
    of the JSON of `after`.
    """
    if body_bytes > limits.row_bytes and growth > 0:
        return QuotaExceeded("TOO_LARGE", f"This entry is larger than {_size(limits.row_bytes)}.")
    if collection == "documents":
        if before is None and usage.documents >= limits.documents:
            return QuotaExceeded(
                "DOCUMENT_LIMIT",
                f"You have {usage.documents} documents, which is the maximum.",
                short_name(after["filename"]),
                "Delete one and try again.",
            )
        if after["size"] > limits.file_bytes and (before is None or after["size"] > before["size"]):
            return QuotaExceeded(
                "TOO_LARGE",
                f"{short_name(after['filename'])} is larger than the limit of {_size(limits.file_bytes)} for a file.",
            )
    if (
        collection == "sessions"
        and after["mode"] == "authoritative"
        and not limits.authoritative
        and (before is None or before["mode"] != "authoritative")
    ):
        return QuotaExceeded("TIER", "Authoritative mode requires a JIGGA account.", "The change")
    if collection == "documents" and before is not None and _is_borrow(before, after):
        return None  # an account with full storage may still borrow documents; the row size was checked above
    return check_storage_quota(usage.bytes, usage.bytes + growth, limits)


def _is_borrow(before: Json, after: Json) -> bool:
    fields = {*before, *after} - BORROW_FIELDS
    return all(before.get(field) == after.get(field) for field in fields)


def check_storage_quota(before: int, after: int, limits: Limits) -> QuotaExceeded | None:
    """Return the exceeded limit if the charged bytes must not grow from `before` to `after`, else None."""
    if after > before and after > limits.storage_bytes:
        return QuotaExceeded(
            "STORAGE_LIMIT",
            f"Your storage of {_size(limits.storage_bytes)} is full.",
            "This",
            "Delete something you no longer need and try again.",
        )
    return None


def _size(count: int) -> str:
    return f"{count / 2**20:.0f} MB" if count >= 2**20 else f"{count} bytes"
