"""Define the reasons for rejecting rows, their messages for people, and the `syncError` of a returned row.

| code | reason | decided in |
|---|---|---|
| INVALID | the row, or its merge with changes of other devices, does not fit the schema | `push_decoding`, `row_writer` |
| DUPLICATE | another live row has the same unique value | `row_writer` |
| FORGOTTEN | the row was created before "forget everything" | `conflict_rules` |
| DOCUMENT_LIMIT, STORAGE_LIMIT, TOO_LARGE, TIER | a limit of the account | `quotas` |
"""

from __future__ import annotations

from vademecum.model.schema.collections import Json

FORGOTTEN_MESSAGE = (
    "All data was deleted after this was written. This stays on this device only. To sync it, save it again."
)


def duplicate_message(collection: str, field: str) -> str:
    """Return the message for a row whose unique `field` has the value of another row."""
    return f"Another of your {collection} already has this {field}."


def merge_message(problem: object) -> str:
    """Return the message for a row that is valid by itself but not after a merge with changes of other devices."""
    return f"After a merge with the changes of another device, the row is invalid: {problem}"


def without_sync_error(row: Json) -> Json:
    """Return the row without `syncError`. Return the same object if it has none."""
    return {k: v for k, v in row.items() if k != "syncError"} if "syncError" in row else row


def is_repeated_rejection(new: Json, assumed: Json | None) -> bool:
    """Return whether RxDB sent a rejected row again that the user has not edited since the rejection."""
    if assumed is None or "syncError" not in new or "syncError" not in assumed:
        return False
    return without_sync_error(new) == without_sync_error(assumed)


def with_sync_error(row: Json, code: str, message: str, at: str, base: str | None) -> Json:
    """Return a rejected row with its `syncError`. The device keeps it until the user edits it."""
    mark: Json = {"code": code, "message": message, "at": at}
    if base is not None:
        mark["base"] = base
    return {**without_sync_error(row), "syncError": mark}
