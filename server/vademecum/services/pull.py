"""Pull: the latest state of a collection's rows after a checkpoint, tombstones included, in the order of `seq`."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec

from vademecum.engines.duckdb.users import Users
from vademecum.engines.duckdb.userstore import UserStore
from vademecum.errors import BadRequest, OtherEpoch
from vademecum.services.portions import PORTION_BYTES, cut


async def pull(
    users: Users, user_id: str, collection: str, lwt: int, epoch: str, limit: int
) -> bytes | AsyncIterator[bytes]:
    """The page as JSON (see `envelope`). Shorter than `limit` means that this is the end.

    A large one comes in pieces: 1,000 rows may have hundreds of megabytes.
    """
    if lwt < 0:
        raise BadRequest("`lwt` must be 0 or a checkpoint's.")
    async with users.open(user_id) as store:
        check_epoch(store, epoch)
        entries = store.after(collection, lwt, limit)
        keys, seq = [key for _, key in entries], entries[-1][0] if entries else lwt
        if sum(store.heads.rows[key].size for key in keys) > PORTION_BYTES:
            return _pieces(users, user_id, list(cut(store, keys)), _closing(store, seq), store.epoch)
        found = await store.bodies(keys)
        return envelope(store, [found[key] for key in keys], seq)


async def _pieces(
    users: Users, user_id: str, portions: list[list[str]], closing: bytes, epoch: str
) -> AsyncIterator[bytes]:
    """Between two pieces nobody holds the user's file, however slowly the client reads. A restore in between ends the
    answer before its end, and the client asks again."""
    yield _opening(None)
    for number, keys in enumerate(portions):
        async with users.open(user_id) as store:
            check_epoch(store, epoch)
            found = await store.bodies(keys)
        yield (b"," if number else b"") + b",".join([found[key] for key in keys])
    yield closing


def check_epoch(store: UserStore, epoch: str) -> None:
    """A checkpoint of before a restore means nothing now. Raises OtherEpoch."""
    if epoch and epoch != store.epoch:
        raise OtherEpoch(
            "This server was restored from a backup since this device last synced. Nothing on the device is lost: "
            "start all collections again from zero and push what the device holds."
        )


def envelope(store: UserStore, bodies: list[bytes], seq: int, collection: str | None = None) -> bytes:
    """{"documents": [...], "checkpoint": {...}}; bodies are stored JSON and are joined as they are.

    `forgottenAt` stands beside them after a "forget everything": rows that were refused have no tombstone here that
    could tell a device to drop them.
    """
    return _opening(collection) + b",".join(bodies) + _closing(store, seq)


def _opening(collection: str | None) -> bytes:
    named = b'"collection":' + msgspec.json.encode(collection) + b"," if collection is not None else b""
    return b"{" + named + b'"documents":['


def _closing(store: UserStore, seq: int) -> bytes:
    checkpoint = b'],"checkpoint":' + msgspec.json.encode({"lwt": seq, "id": store.epoch})
    forgotten = b',"forgottenAt":' + msgspec.json.encode(store.forgotten_at) if store.forgotten_at else b""
    return checkpoint + forgotten + b"}"
