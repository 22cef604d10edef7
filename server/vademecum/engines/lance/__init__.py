"""The search index of one user in LanceDB: derived from the records and replaceable.

Only this package imports lancedb and pyarrow. `VectorIndex` is imported on first use, and lancedb when the first folder
is opened. Both imports are slow and must not delay the server's first answers to sync requests.
"""

import os
from typing import TYPE_CHECKING, Any

# Lance reads these variables when it is loaded. At its default log level it logs a line per search.
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
    if name == "VectorIndex":  # access it in a thread, because importing pyarrow is slow
        from vademecum.engines.lance.vector_index import VectorIndex

        return VectorIndex
    raise AttributeError(name)
