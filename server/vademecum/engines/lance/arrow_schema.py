"""Convert blocks to Arrow rows, one per chunk, and back.

Invalid input must not stop indexing permanently: lone surrogates are replaced, and vectors of the wrong size are dropped.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vademecum.engines.lance.records import Block, Throttle
from vademecum.model.schema.vector_codec import are_usable_norms, row_norms
from vademecum.model.text.bm25 import TERM_DTYPE, count_terms

# Text and vectors are stored uncompressed, so that a byte scan can verify an erasure. By default Lance builds
# dictionaries of repeated texts and compresses their values.
_PLAIN = {"lance-encoding:compression": "none", "lance-encoding:dict-values-compression": "none"}


def schema(dims: int | None) -> pa.Schema:
    """Return the Arrow schema of a row. If `dims` is None (no model), there is no vector column."""
    columns = [
        ("chunk_id", pa.string()),
        ("block_id", pa.string()),
        ("document_id", pa.string()),
        ("block", pa.int64()),
        ("chunk_index", pa.int64()),
        ("page", pa.int64()),
        ("section", pa.string()),
        ("text", pa.string()),
        ("terms", pa.binary()),
    ]
    if dims is not None:
        columns.append(("vector", pa.list_(pa.float32(), dims)))
    return pa.schema([pa.field(name, kind, metadata=_PLAIN) for name, kind in columns])


def to_table(blocks: Iterable[Block], dims: int | None, pace: Throttle = iter) -> pa.Table:
    """Return the chunks of blocks as rows.

    If blocks have the same id, the last one is used. If chunks of a block have the same index, the first one is used.
    """
    columns: dict[str, list[Any]] = {name: [] for name in schema(dims).names if name != "vector"}
    vectors: list[NDArray[np.float32]] = []
    for block in pace({block.id: block for block in blocks}.values()):
        first_at = {chunk.index: at for at, chunk in reversed(list(enumerate(block.chunks)))}
        kept = sorted(first_at.values())
        for chunk in (block.chunks[at] for at in kept):
            text = clean(chunk.text)
            columns["chunk_id"].append(f"{block.id}.{chunk.index}")
            columns["block_id"].append(block.id)
            columns["document_id"].append(block.document_id)
            columns["block"].append(block.block)
            columns["chunk_index"].append(chunk.index)
            columns["page"].append(chunk.page)
            columns["section"].append(None if chunk.section is None else clean(chunk.section))
            columns["text"].append(text)
            columns["terms"].append(count_terms(f"{clean(chunk.also)}\n{text}").tobytes())
        if dims is not None:
            vectors.append(_vectors(block, dims)[kept])
    arrays: list[Any] = list(columns.values())
    if dims is not None:
        arrays.append(_vector_column(np.concatenate([np.empty((0, dims), np.float32), *vectors]), dims))
    return pa.table(arrays, schema=schema(dims))


def clean(text: str) -> str:
    """Return the text with lone surrogates replaced, so that UTF-8 can encode it."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode("utf-8")
    return text


def _vectors(block: Block, dims: int) -> NDArray[np.float32]:
    """Return a block's vectors, shape (chunks, dims), filled with NaN if they are missing or of another shape."""
    if block.vectors is None or block.vectors.shape != (len(block.chunks), dims):
        return np.full((len(block.chunks), dims), np.nan, dtype=np.float32)
    return np.asarray(block.vectors, dtype=np.float32)


def _vector_column(vectors: NDArray[np.float32], dims: int) -> Any:
    # Unusable vectors become null. For example, a zero vector has no direction and therefore no cosine.
    is_usable = are_usable_norms(row_norms(vectors))
    return pa.FixedSizeListArray.from_arrays(
        pa.array(np.where(is_usable[:, None], vectors, 0).astype(np.float32).ravel(), type=pa.float32()),
        dims,
        mask=pa.array(~is_usable),
    )


def read_vectors(batch: pa.RecordBatch, matrix: NDArray[np.float32], has_vector: NDArray[np.bool_]) -> None:
    """Write the batch's unit vectors into `matrix` (zeros if missing) and set `has_vector`."""
    column = batch["vector"]
    dims = matrix.shape[1]
    begin = column.offset * dims
    flat = column.values.to_numpy(zero_copy_only=False)[begin : begin + matrix.size]
    matrix[:] = flat.reshape(matrix.shape)
    has_vector[:] = column.is_valid().to_numpy(zero_copy_only=False)
    # Clear the values of null vectors, which Arrow leaves undefined.
    matrix[~has_vector] = 0
    norms = row_norms(matrix)
    has_vector &= are_usable_norms(norms)
    matrix /= np.where(has_vector, norms, 1)[:, None]
    matrix[~has_vector] = 0


def read_terms(batch: pa.RecordBatch) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Return the TERM_DTYPE entries of a batch and the row of each entry."""
    column = batch["terms"]
    _, ends, data = column.buffers()
    if not len(column) or data is None:
        return np.empty(0, TERM_DTYPE), np.empty(0, np.int32)
    offsets = np.frombuffer(ends, np.int32)[column.offset : column.offset + len(column) + 1]
    entries = np.frombuffer(memoryview(data)[int(offsets[0]) : int(offsets[-1])], TERM_DTYPE)
    return entries.copy(), np.repeat(
        np.arange(len(column), dtype=np.int32), np.diff(offsets) // TERM_DTYPE.itemsize
    )
