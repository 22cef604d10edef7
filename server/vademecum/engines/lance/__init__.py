"""The search index of one user, in LanceDB: a derived replica of the records, never the truth.

Rule: the only package that imports lancedb and pyarrow. An index is imported when one is first asked for, and Lance itself
when the first folder is opened (both take a second), so that a server answers its first sync before that.
"""

import os
from typing import TYPE_CHECKING, Any

# Lance reads these when it is loaded. At its default level it logs a line per search.
os.environ.setdefault("LANCE_LOG", "error")
os.environ.setdefault("RUST_LOG", "error")

from vademecum.engines.lance.matrix_cache import MatrixCache
from vademecum.engines.lance.records import (
    Block,
    Chunk,
    ErasureResult,
    Hit,
    IndexDamaged,
    IndexStats,
    Throttle,
)

if TYPE_CHECKING:
    from vademecum.engines.lance.vector_index import VectorIndex

__all__ = [
    "Block",
    "Chunk",
    "ErasureResult",
    "Hit",
    "IndexDamaged",
    "IndexStats",
    "MatrixCache",
    "Throttle",
    "VectorIndex",
]


def __getattr__(name: str) -> Any:
    if name == "VectorIndex":  # it needs pyarrow: ask for it in a thread
        from vademecum.engines.lance.vector_index import VectorIndex

        return VectorIndex
    raise AttributeError(name)
