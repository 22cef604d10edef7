"""Searchers that run in our own environment: brute force in numpy, our index, and plain LanceDB."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from searchers.base import Searcher, document_name, document_number
from searchers.data import DIMS, DOCUMENTS, Vectors
from vademecum.engines.lance import Block, Chunk, MatrixCache, VectorIndex
from vademecum.model.schema.collections import BLOCK_CHUNKS

PAGE = 50  # number of blocks that the indexer writes at once


class Numpy(Searcher):
    """Brute force, the lower bound: one product with a matrix in memory, then the best of the active rows."""

    name: ClassVar[str] = "numpy"
    _vectors: Vectors

    def build(self) -> None:
        np.save(self.folder / "vectors.npy", self.library.vectors)

    def open(self) -> None:
        self._vectors = np.load(self.folder / "vectors.npy")

    def near(self, vector: Vectors, documents: Sequence[int], k: int) -> list[int]:
        mask = np.repeat(np.isin(np.arange(DOCUMENTS), documents), self.library.per_document)
        scores = np.where(mask, self._vectors @ vector, -np.inf)
        top = np.argpartition(scores, -k)[-k:]
        rows: list[int] = top[np.argsort(-scores[top])].tolist()
        self.texts = [self.library.texts[row] for row in rows]
        return rows

    def close(self) -> None:
        self._vectors = np.empty((0, DIMS), np.float32)


class Ours(Searcher):
    """Our index as the server uses it: blocks written in the indexer's batch size, and the default cache."""

    name: ClassVar[str] = "ours"
    _cache: MatrixCache
    _index: VectorIndex

    def build(self) -> None:
        self.open()
        blocks = [block for document in range(DOCUMENTS) for block in self._blocks(document)]
        for begin in range(0, len(blocks), PAGE):
            self._index.apply(blocks[begin : begin + PAGE], (), (), ("bench", begin + PAGE))
            self._index.optimise()
        self.close()

    def _blocks(self, document: int) -> list[Block]:
        name, found = document_name(document), []
        for begin in range(0, self.library.per_document, BLOCK_CHUNKS):
            indexes = range(begin, min(begin + BLOCK_CHUNKS, self.library.per_document))
            rows = [self.row(document, index) for index in indexes]
            chunks = [
                Chunk(index, None, None, self.library.texts[row])
                for index, row in zip(indexes, rows, strict=True)
            ]
            at = begin // BLOCK_CHUNKS
            found.append(Block(f"{name}.{at}", name, at, chunks, self.library.vectors[rows]))
        return found

    def open(self) -> None:
        self._cache = MatrixCache()
        self._index = VectorIndex.open(self.folder, "bench", DIMS, cache=self._cache)

    def near(self, vector: Vectors, documents: Sequence[int], k: int) -> list[int]:
        hits = self._index.vector_search(vector, [document_name(one) for one in documents], k)
        return [self.row(document_number(hit.document_id), hit.chunk_index) for hit in hits]

    def words(self, question: str, documents: Sequence[int], k: int) -> list[int]:
        hits = self._index.keyword_search(question, [document_name(one) for one in documents], k)
        return [self.row(document_number(hit.document_id), hit.chunk_index) for hit in hits]

    def close(self) -> None:
        self._index.close()

    def evict(self) -> bool:
        """Fill the whole cache with an entry of another user, which evicts the library, and drop this entry."""
        self._cache.put(self, None, self._cache.max_bytes)
        self._cache.drop(self)
        return True


class LanceDb(Searcher):
    """LanceDB with its default search: a flat scan with a prefilter."""

    name: ClassVar[str] = "LanceDB"
    _table: Any

    def build(self) -> None:
        import lancedb
        import pyarrow as pa

        rows = len(self.library.vectors)
        columns = {
            "row": pa.array(range(rows), pa.int64()),
            "document": pa.array(np.arange(rows) // self.library.per_document, pa.int64()),
            "text": pa.array(self.library.texts, pa.string()),
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(self.library.vectors.ravel()), DIMS),
        }
        table = lancedb.connect(self.folder).create_table("chunks", pa.table(columns))
        table.create_fts_index("text", stem=False, remove_stop_words=False)

    def open(self) -> None:
        import lancedb

        self._table = lancedb.connect(self.folder).open_table("chunks")

    def near(self, vector: Vectors, documents: Sequence[int], k: int) -> list[int]:
        return self._rows(self._table.search(vector).distance_type("cosine"), documents, k, "_distance")

    def words(self, question: str, documents: Sequence[int], k: int) -> list[int]:
        return self._rows(self._table.search(question, query_type="fts"), documents, k, "_score")

    def _rows(self, query: Any, documents: Sequence[int], k: int, score: str) -> list[int]:
        query = query.where(f"document IN ({', '.join(map(str, documents))})", prefilter=True).limit(k)
        found: list[int] = query.select(["row", "text", score]).to_arrow()["row"].to_pylist()
        return found

    def close(self) -> None:
        self._table = None
