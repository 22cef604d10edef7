"""Define the input and output types of the index."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Chunk(msgspec.Struct, frozen=True):
    """One chunk of a block. `index` is the chunk's number in the document.

    `also` is text that keyword search matches although it is not part of the chunk; the index stores only its term
    counts.
    """

    index: int
    page: int | None
    section: str | None
    text: str
    also: str = ""


class Block(msgspec.Struct, frozen=True):
    """Consecutive chunks of one document. `vectors` is float32 of shape (chunks, dims), or None for keyword search only."""

    id: str
    document_id: str
    block: int
    chunks: list[Chunk]
    vectors: NDArray[np.float32] | None = None


# Yields the given blocks one by one and may pause in between.
Throttle = Callable[[Iterable[Block]], Iterable[Block]]


class Hit(msgspec.Struct, frozen=True):
    """One search result. The score is a cosine from `vector_search` and BM25 from `keyword_search`.

    The two kinds of score are not comparable.
    """

    document_id: str
    block: int
    chunk_index: int
    page: int | None
    section: str | None
    text: str
    score: float

    @property
    def place(self) -> tuple[str, int, int]:
        """Return the position of the chunk, which identifies it and breaks ties."""
        return (self.document_id, self.block, self.chunk_index)


class IndexStats(msgspec.Struct, frozen=True):
    """The size of the index in rows, documents and bytes on disk."""

    rows: int
    documents: int
    bytes: int


class ErasureResult(msgspec.Struct, frozen=True):
    """The number of files and bytes that an erasure deleted.

    The counts include live rows, because an erasure copies live rows to a new table and deletes the old table.
    """

    files: int
    bytes: int


class IndexDamaged(Exception):
    """The index folder was damaged and has been emptied. Its checkpoint is ("", 0): index all rows again."""
