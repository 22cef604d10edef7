"""What goes into the index and what comes out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Chunk(msgspec.Struct, frozen=True):
    """One chunk of a block; `index` counts through the document. `also`: what finds it by words, though it does not say
    that; kept as counts only."""

    index: int
    page: int | None
    section: str | None
    text: str
    also: str = ""


class Block(msgspec.Struct, frozen=True):
    """Consecutive chunks of one document. `vectors` is (chunks, dims) float32, or None: found by words only."""

    id: str
    document_id: str
    block: int
    chunks: list[Chunk]
    vectors: NDArray[np.float32] | None = None


Throttle = Callable[[Iterable[Block]], Iterable[Block]]  # hands them out one by one, and may rest in between


class Hit(msgspec.Struct, frozen=True):
    """One chunk found. Scores of `meaning` are cosines, of `words` BM25: not comparable with each other."""

    document_id: str
    block: int
    chunk_index: int
    page: int | None
    section: str | None
    text: str
    score: float

    @property
    def place(self) -> tuple[str, int, int]:
        """Where the chunk stands: its name, and what breaks a tie."""
        return (self.document_id, self.block, self.chunk_index)


class IndexStats(msgspec.Struct, frozen=True):
    """How much the index holds, and takes on disk."""

    rows: int
    documents: int
    bytes: int


class ErasureResult(msgspec.Struct, frozen=True):
    """What an erasure took off the disk. The rows still alive were written anew before, so both count these too."""

    files: int
    bytes: int


class IndexDamaged(Exception):
    """The folder could not be read and was emptied. Its checkpoint is ("", 0): index again from there."""
