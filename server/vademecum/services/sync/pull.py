"""Serve pulls. A pull returns a collection's rows and tombstones after a checkpoint, each in its latest state."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec

from vademecum.errors import BadRequest, OtherEpoch
from vademecum.model.records.store_interface import UserStore, UserStores
from vademecum.services.sync.batches import BATCH_BYTES, split_into_batches

START_FROM_ZERO = (
    "Nothing on the device is lost. Keep its rows, drop the checkpoints of all collections (with RxDB: start each "
    "replication under a new `replicationIdentifier`), pull from `lwt=0` without `id`, and push every row of the "
    "device. Once the device has merged its row with the pulled one, send the pulled row as `assumedMasterState`. "
    "Without it, the server merges a restored row with the pushed one. Send `epoch` of this response as `?epoch=`."
)


class RollbackDetected(Exception):
    """Raised if a signed checkpoint proves that this server has lost records that it served earlier in `epoch`."""

    def __init__(self, epoch: str) -> None:
        super().__init__(epoch)
        self.epoch = epoch


async def pull(
    users: UserStores, user_id: str, collection: str, lwt: int, checkpoint_id: str, limit: int
) -> bytes | AsyncIterator[bytes]:
    """Return a page as JSON (see `encode_page`). A page with fewer than `limit` rows is the last one.

    A large page is streamed in pieces, because 1,000 rows may have hundreds of megabytes. Raises RollbackDetected, or
    OtherEpoch for a checkpoint that this server cannot have issued.
    """
    if lwt < 0:
        raise BadRequest("`lwt` must be 0 or a checkpoint's.")
    async with users.open(user_id) as store:
        check_epoch(store, checkpoint_id)
        if store.proves_rollback(lwt, checkpoint_id):
            raise RollbackDetected(store.epoch)
        if lwt > store.seq:
            if checkpoint_id:
                if checkpoint_id == store.epoch:  # an unsigned checkpoint, as earlier versions issued them
                    users.unsigned_ahead[user_id] = users.unsigned_ahead.get(user_id, 0) + 1
                raise OtherEpoch(
                    f"This checkpoint is ahead of the server's records. {START_FROM_ZERO}", epoch=store.epoch
                )
            return encode_page(store, [], store.seq)
        entries = store.entries_after(collection, lwt, limit)
        keys, seq = [key for _, key in entries], entries[-1][0] if entries else lwt
        if sum(store.row_index.rows[key].size for key in keys) > BATCH_BYTES:
            return _pieces(
                users, user_id, list(split_into_batches(store, keys)), _closing(store, seq), store.epoch
            )
        found = await store.read_bodies(keys)
        return encode_page(store, [found[key] for key in keys], seq)


async def _pieces(
    users: UserStores, user_id: str, portions: list[list[str]], closing: bytes, epoch: str
) -> AsyncIterator[bytes]:
    """Yield the page in pieces. Between pieces the user's store is closed, so that a slow client does not keep it open.

    A restore between two pieces aborts the response, and the client pulls again.
    """
    yield _opening(None)
    for number, keys in enumerate(portions):
        async with users.open(user_id) as store:
            check_epoch(store, epoch)
            found = await store.read_bodies(keys)
        yield (b"," if number else b"") + b",".join([found[key] for key in keys])
    yield closing


def check_epoch(store: UserStore, checkpoint_id: str) -> None:
    """Raise OtherEpoch for a checkpoint of another epoch. The epoch is the part of the id before the dot."""
    epoch = checkpoint_id.partition(".")[0]
    if checkpoint_id and epoch != store.epoch:
        raise OtherEpoch(
            f"This server was restored from a backup since this device last synced. {START_FROM_ZERO}",
            epoch=store.epoch,
        )


def encode_page(store: UserStore, bodies: list[bytes], seq: int, collection: str | None = None) -> bytes:
    """Return `{"documents": [...], "checkpoint": {...}}`. The bodies are stored JSON and are joined unchanged.

    After "forget everything" the page also has `forgottenAt`, so that devices drop rejected rows, for which the server
    has no tombstones.
    """
    return _opening(collection) + b",".join(bodies) + _closing(store, seq)


def _opening(collection: str | None) -> bytes:
    collection_field = (
        b'"collection":' + msgspec.json.encode(collection) + b"," if collection is not None else b""
    )
    return b"{" + collection_field + b'"documents":['


def _closing(store: UserStore, seq: int) -> bytes:
    checkpoint = b'],"checkpoint":' + msgspec.json.encode({"lwt": seq, "id": store.checkpoint_id(seq)})
    forgotten = b',"forgottenAt":' + msgspec.json.encode(store.forgotten_at) if store.forgotten_at else b""
    return checkpoint + forgotten + b"}"
