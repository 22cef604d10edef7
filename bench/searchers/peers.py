"""Searchers in the peers' environment. Each is configured as its documentation shows, and otherwise in its favor.

None of them sends telemetry: Chroma's is disabled (here and by `ENVIRONMENT` in bench/search.py). Qdrant's client in
local mode and sqlite-vec have no telemetry.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from searchers.base import Searcher
from searchers.data import DIMS, Vectors

PORTION = 1000  # number of rows per write


class Chroma(Searcher):
    """Chroma, embedded and persistent. Its index is HNSW (approximate) with default settings."""

    name: ClassVar[str] = "Chroma"
    _client: Any = None
    _collection: Any = None

    def build(self) -> None:
        self._connect()
        self._collection = self._client.create_collection(
            "chunks", embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
        )
        for begin in range(0, len(self.library.vectors), PORTION):
            rows = range(begin, min(begin + PORTION, len(self.library.vectors)))
            self._collection.add(
                ids=[str(row) for row in rows],
                embeddings=self.library.vectors[rows],
                documents=[self.library.texts[row] for row in rows],
                metadatas=[{"document": row // self.library.per_document} for row in rows],
            )
        self.close()

    def _connect(self) -> None:
        import chromadb
        from chromadb.config import Settings

        self._client = chromadb.PersistentClient(str(self.folder), Settings(anonymized_telemetry=False))

    def open(self) -> None:
        self._connect()
        self._collection = self._client.get_collection("chunks", embedding_function=None)

    def near(self, vector: Vectors, documents: Sequence[int], k: int) -> list[int]:
        found = self._collection.query(
            query_embeddings=[vector],
            n_results=k,
            where={"document": {"$in": list(documents)}},
            include=["documents", "distances"],
        )
        return [int(name) for name in found["ids"][0]]

    def close(self) -> None:
        self._client.close()
        self._client = self._collection = None


class Qdrant(Searcher):
    """The local mode of Qdrant's client: exact search in Python with the whole library in memory."""

    name: ClassVar[str] = "qdrant-client"
    _client: Any = None

    def build(self) -> None:
        from qdrant_client import models

        self.open()
        self._client.create_collection(
            "chunks", vectors_config=models.VectorParams(size=DIMS, distance=models.Distance.COSINE)
        )
        for begin in range(0, len(self.library.vectors), PORTION):
            rows = range(begin, min(begin + PORTION, len(self.library.vectors)))
            points = [
                models.PointStruct(
                    id=row,
                    vector=self.library.vectors[row].tolist(),
                    payload={"document": row // self.library.per_document, "text": self.library.texts[row]},
                )
                for row in rows
            ]
            self._client.upsert("chunks", points)
        self.close()

    def open(self) -> None:
        import warnings

        from qdrant_client import QdrantClient

        warnings.filterwarnings("ignore", message="Local mode is not recommended")
        self._client = QdrantClient(path=str(self.folder))

    def near(self, vector: Vectors, documents: Sequence[int], k: int) -> list[int]:
        from qdrant_client import models

        active = models.FieldCondition(key="document", match=models.MatchAny(any=list(documents)))
        found = self._client.query_points(
            "chunks", query=vector, query_filter=models.Filter(must=[active]), limit=k
        )
        return [int(point.id) for point in found.points]

    def close(self) -> None:
        self._client.close()
        self._client = None


class SqliteVec(Searcher):
    """sqlite-vec with a vec0 table. Its metadata column with the document filters the rows."""

    name: ClassVar[str] = "sqlite-vec"
    table: ClassVar[str] = (
        f"CREATE VIRTUAL TABLE chunks USING vec0(document INTEGER, +text TEXT, "
        f"embedding float[{DIMS}] distance_metric=cosine)"
    )
    insert: ClassVar[str] = "INSERT INTO chunks(rowid, document, text, embedding) VALUES (?, ?, ?, ?)"
    question: ClassVar[str] = (
        "SELECT rowid, text, distance FROM chunks WHERE embedding MATCH ? AND k = ? AND document IN ({})"
    )
    _base: Any = None

    def build(self) -> None:
        self.open()
        with self._base:
            self._base.execute(self.table)
            self._base.executemany(self.insert, map(self._values, range(len(self.library.vectors))))
        self.close()

    def _values(self, row: int) -> tuple[Any, ...]:
        vector = self.library.vectors[row].tobytes()
        return row, row // self.library.per_document, self.library.texts[row], vector

    def open(self) -> None:
        import apsw
        import sqlite_vec

        self._base = apsw.Connection(str(self.folder / "chunks.sqlite"))
        self._base.enable_load_extension(True)
        self._base.load_extension(sqlite_vec.loadable_path())

    def near(self, vector: Vectors, documents: Sequence[int], k: int) -> list[int]:
        question = self.question.format(", ".join(map(str, documents)))
        return [row for row, _, _ in self._base.execute(question, (vector.tobytes(), k))]

    def close(self) -> None:
        self._base.close()
        self._base = None


class SqliteVecPlain(SqliteVec):
    """sqlite-vec with an ordinary table and an index on the document. It computes the distance of each active row."""

    name: ClassVar[str] = "sqlite-vec, plain table"
    table: ClassVar[str] = (
        "CREATE TABLE chunks(rowid INTEGER PRIMARY KEY, document INTEGER, text TEXT, embedding BLOB);"
        "CREATE INDEX chunks_of ON chunks(document)"
    )
    question: ClassVar[str] = (
        "SELECT chunks.rowid, text, distance FROM (SELECT rowid AS row, vec_distance_cosine(embedding, ?) AS distance"
        " FROM chunks WHERE document IN ({}) ORDER BY distance LIMIT ?) JOIN chunks ON chunks.rowid = row"
        " ORDER BY distance"
    )


class SqliteWords(SqliteVec):
    """SQLite's full-text search FTS5, with its own BM25 ranking."""

    name: ClassVar[str] = "SQLite FTS5"
    table: ClassVar[str] = "CREATE VIRTUAL TABLE chunks USING fts5(text, document UNINDEXED)"
    insert: ClassVar[str] = "INSERT INTO chunks(rowid, document, text) VALUES (?, ?, ?)"
    question: ClassVar[str] = (
        "SELECT rowid, text, rank FROM chunks WHERE chunks MATCH ? AND document IN ({}) ORDER BY rank LIMIT ?"
    )

    def _values(self, row: int) -> tuple[Any, ...]:
        return super()._values(row)[:3]

    def near(self, vector: Vectors, documents: Sequence[int], k: int) -> list[int]:
        raise NotImplementedError("words only")

    def words(self, question: str, documents: Sequence[int], k: int) -> list[int]:
        asked = " OR ".join(f'"{word}"' for word in question.split())
        found = self._base.execute(self.question.format(", ".join(map(str, documents))), (asked, k))
        return [row for row, _, _ in found]
