"""Count and list the blocks of documents, from the row index."""

from __future__ import annotations

from vademecum.model.records.store_interface import UserStore
from vademecum.model.sync.transaction import WAITING


def list_blocks_without_vectors(store: UserStore, model: str) -> list[str]:
    """Return the ids of live blocks without vectors of `model`, oldest first."""
    blocks = [
        (head.seq, key.partition("/")[2])
        for key, head in store.row_index.rows.items()
        if head.chunks and head.seq != WAITING and head.model != model
    ]
    return [block_id for _, block_id in sorted(blocks)]


def count_chunks(store: UserStore, document_id: str, model: str | None = None) -> int:
    """Return the number of chunks of a document or, if `model` is given, of its chunks with vectors of that model."""
    rows = store.row_index.rows
    heads = [rows[key] for key in store.row_index.dependents.get(f"documents/{document_id}", ())]
    return sum(head.chunks for head in heads if model is None or head.model == model)
