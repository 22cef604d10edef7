"""Pull: the latest state of a collection's rows after a checkpoint, tombstones included, in the order of `seq`."""

from __future__ import annotations

import msgspec

from vademecum.engines.duckdb.userstore import UserStore
from vademecum.errors import BadRequest, OtherEpoch

LIMIT_MAX = 1000


async def pull(store: UserStore, collection: str, lwt: int, epoch: str, limit: int) -> bytes:
    """The page as JSON bytes: {"documents", "checkpoint"}. Shorter than `limit` means that this is the end."""
    if not 1 <= limit <= LIMIT_MAX:
        raise BadRequest(f"`limit` must be from 1 to {LIMIT_MAX}: a shorter page would read as the end.")
    if lwt < 0:
        raise BadRequest("`lwt` must be 0 or a checkpoint's.")
    check_epoch(store, epoch)
    rows = await store.page(collection, lwt, limit)
    return envelope([body for _, body in rows], rows[-1][0] if rows else lwt, store.epoch)


def check_epoch(store: UserStore, epoch: str) -> None:
    """A checkpoint of before a restore means nothing now. Raises OtherEpoch."""
    if epoch and epoch != store.epoch:
        raise OtherEpoch(
            "This server was restored from a backup since this device last synced. Nothing on the device is lost: "
            "start all collections again from zero and push what the device holds."
        )


def envelope(bodies: list[bytes], seq: int, epoch: str, collection: str | None = None) -> bytes:
    """{"documents": [...], "checkpoint": {...}}; bodies are stored JSON and are joined as they are."""
    named = b'"collection":' + msgspec.json.encode(collection) + b"," if collection is not None else b""
    checkpoint = msgspec.json.encode({"lwt": seq, "id": epoch})
    return b"{" + named + b'"documents":[' + b",".join(bodies) + b'],"checkpoint":' + checkpoint + b"}"
