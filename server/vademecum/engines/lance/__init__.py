"""The search index of one user, in LanceDB: a derived replica of the records, never the truth.

Rule: the only package that imports lancedb and pyarrow. Lance itself is imported when the first folder is opened
(it takes a second), so that a server answers its first sync before that.
"""

import os

# Lance reads these when it is loaded. At its default level it logs a line per search.
os.environ.setdefault("LANCE_LOG", "error")
os.environ.setdefault("RUST_LOG", "error")

from vademecum.engines.lance.cache import MatrixCache
from vademecum.engines.lance.index import VectorIndex
from vademecum.engines.lance.rows import Block, Chunk, Erased, Hit, IndexDamaged, Stats

__all__ = ["Block", "Chunk", "Erased", "Hit", "IndexDamaged", "MatrixCache", "Stats", "VectorIndex"]
