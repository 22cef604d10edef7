"""One Lance table of chunks on disk. All calls to lancedb are in this module.

`VectorIndex` ensures that there is only one writer, and no reader while old versions are deleted. The table has no
Lance indexes, so that an erasure only has to erase rows. Deleting and then adding rows creates two versions, but takes
a fifth of the time of `merge_insert`, which reads the whole key column (14 instead of 75 ms at 50,000 rows). After a
crash between the delete and the add, the checkpoint is still the old one, so the rows are written again.
"""

import shutil
import sys
from collections.abc import Collection, Iterator, Sequence
from datetime import timedelta
from functools import cache, cached_property
from importlib.util import find_spec, module_from_spec
from itertools import product
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vademecum.engines.lance.arrow_schema import read_terms, schema
from vademecum.engines.lance.records import Hit
from vademecum.engines.lance.segment import Segment, in_order
from vademecum.model.text.bm25 import (
    SCORE_DIGITS,
    Postings,
    bm25_scores,
    hash_term,
    row_lengths,
    top_k_with_ties,
)
from vademecum.model.text.fusion import FOREIGN_PENALTY, MAX_BYTES_PER_CHARACTER

# The size of Lance's cache for all users together. Manifests are small and quick to read, so the cache can be small.
_LANCE_CACHE_BYTES = 16 << 20
# The number of rows per batch of a read or write. A batch has about 30 MB.
_BATCH = 8192
# The maximum number of values in one SQL condition, because planning time grows with the number.
_NAMES = 500
_PLACE = ["document_id", "block", "chunk_index"]
_SHOWN = [*_PLACE, "page", "section", "text"]


# The client of Lance's own service, which this program does not use. Importing the client would take half of lancedb's
# import time: 1.5 s of CPU in each process that has an index.
_UNUSED_CLIENT = "lance_namespace_urllib3_client"


@cache
def _lancedb() -> Any:
    """Import lancedb with an empty module in place of the unused client (`_UNUSED_CLIENT`)."""
    found = find_spec(_UNUSED_CLIENT)
    if found is not None and _UNUSED_CLIENT not in sys.modules:
        sys.modules[_UNUSED_CLIENT] = module_from_spec(found)
    import lancedb

    return lancedb


@cache
def _session() -> Any:
    """Return the Lance session that all tables share. Without it, each table would have a cache of gigabytes."""
    return _lancedb().Session(_LANCE_CACHE_BYTES, _LANCE_CACHE_BYTES)


def _connect(folder: Path) -> Any:
    return _lancedb().connect(str(folder), session=_session())


class ChunkTable:
    """A Lance table in a folder. Each table gets a new name, so that Lance never uses cached data of another table."""

    def __init__(self, folder: Path, name: str, dims: int | None) -> None:
        self.name = name
        self.dims = dims
        self._folder = folder

    @cached_property
    def _table(self) -> Any:
        """Return the Lance table, opened on first use. Raises ValueError if its columns are not those of `schema`."""
        table = _connect(self._folder).open_table(self.name)
        if not table.schema.equals(schema(self.dims)):
            raise ValueError("the table has other columns")
        return table

    @classmethod
    def create(cls, folder: Path, dims: int | None) -> "ChunkTable":
        """Create an empty table."""
        folder.mkdir(parents=True, exist_ok=True)
        name = f"chunks-{uuid4().hex[:12]}"
        _connect(folder).create_table(name, schema=schema(dims))
        return cls(folder, name, dims)

    def replace(self, rows: pa.Table, block_ids: Collection[str], document_ids: Collection[str]) -> None:
        """Delete the rows of blocks and documents, then add rows."""
        for column, names in (("document_id", document_ids), ("block_id", block_ids)):
            for condition in _conditions(column, names):
                self._table.delete(condition)
        if rows.num_rows:
            self._table.add(rows)

    def read(self) -> Segment:
        """Read all rows into memory."""
        return Segment.from_batches(self.batches(schema(self.dims).names), self.rows, self.dims)

    def batches(
        self, columns: Sequence[str], document_ids: Collection[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield batches of these columns for the rows of these documents, or for all rows if `document_ids` is None."""
        for condition in [None] if document_ids is None else _conditions("document_id", document_ids):
            query = self._table.search().select(list(columns))
            if condition is not None:
                query = query.where(condition)
            yield from query.to_batches(_BATCH)

    def without_vectors(self) -> list[str]:
        """Return the ids of blocks that have a chunk without a vector."""
        rows = self._table.search().where("vector IS NULL").select(["block_id"]).to_arrow()
        return sorted(set(rows["block_id"].to_pylist()))

    def in_sections(self, sections: Collection[str]) -> list[str]:
        """Return the ids of documents that have a chunk in one of these sections."""
        found: set[str] = set()
        for condition in _conditions("section", sections):
            rows = self._table.search().where(condition).select(["document_id"]).to_arrow()
            found.update(rows["document_id"].to_pylist())
        return sorted(found)

    def copy(self) -> "ChunkTable":
        """Copy the live rows to a new table in the same folder."""
        copy = ChunkTable.create(self._folder, self.dims)
        rows = self.batches(schema(self.dims).names)
        copy._table.add(pa.RecordBatchReader.from_batches(schema(self.dims), rows))
        return copy

    def verify(self) -> None:
        """Read all data of the table. Any exception means that the table is damaged."""
        fresh = ChunkTable(self._folder, self.name, self.dims)
        rows = sum(batch.num_rows for batch in fresh.batches(schema(self.dims).names))
        if rows != fresh.rows:
            raise ValueError("rows are missing")

    def vector_search(
        self,
        vector: NDArray[np.float32],
        document_ids: Collection[str],
        k: int,
        *,
        foreign_last: bool = False,
    ) -> list[Hit]:
        """Return the k nearest rows by Lance's exact search. Used for indexes that do not fit the cache.

        `foreign_last`: subtract `FOREIGN_PENALTY` from the cosines of rows in a foreign script.
        """
        is_foreign = f"octet_length(text) > {MAX_BYTES_PER_CHARACTER} * character_length(text)"
        scripts = (
            [(f"NOT ({is_foreign})", 0.0), (is_foreign, FOREIGN_PENALTY)] if foreign_last else [("TRUE", 0.0)]
        )
        hits: list[Hit] = []
        for condition, (script, penalty) in product(_conditions("document_id", document_ids), scripts):
            query = self._table.search(vector, vector_column_name="vector").distance_type("cosine")
            query = query.where(f"({condition}) AND vector IS NOT NULL AND {script}", prefilter=True)
            found = query.bypass_vector_index().limit(k).select([*_SHOWN, "_distance"]).to_arrow()
            hits += _hits(found, 1.0 - found["_distance"].to_numpy() - penalty)
        return in_order(hits, k)

    def keyword_search(self, terms: Sequence[str], document_ids: Collection[str], k: int) -> list[Hit]:
        """Return the k best rows by BM25, read from disk. Memory holds only the postings of the terms."""
        keys = np.array([hash_term(term) for term in terms], np.uint64)
        places: list[pa.RecordBatch] = []
        parts = []
        for batch in self.batches([*_PLACE, "chunk_id", "terms"], document_ids):
            entries, row_of = read_terms(batch)
            lengths = row_lengths(entries, row_of, batch.num_rows)
            is_wanted = np.isin(entries["term"], keys)
            parts.append(
                (
                    Postings.build(entries[is_wanted], row_of[is_wanted], lengths),
                    np.ones(len(lengths), np.bool_),
                )
            )
            places.append(batch.select([*_PLACE, "chunk_id"]))
        found: list[tuple[float, tuple[Any, ...]]] = []
        for batch, scores in zip(places, bm25_scores(parts, terms), strict=True):
            rows = top_k_with_ties(scores, k, 0.0)
            taken = zip(*(column.to_pylist() for column in batch.take(pa.array(rows)).columns), strict=True)
            found += zip(np.round(-scores[rows], SCORE_DIGITS).tolist(), taken, strict=True)
        score_of = {place[-1]: -score for score, place in sorted(found)[:k]}
        return self._named(score_of)

    def _named(self, score_of: dict[str, float]) -> list[Hit]:
        hits: list[Hit] = []
        for condition in _conditions("chunk_id", score_of):
            rows = self._table.search().where(condition).select(["chunk_id", *_SHOWN]).to_arrow()
            scores = np.array([score_of[name] for name in rows["chunk_id"].to_pylist()])
            hits += _hits(rows, scores)
        return in_order(hits, len(hits))

    def optimise(self) -> None:
        """Compact the small files of writes and keep only the newest version."""
        # Lance deletes versions older than this age. One millisecond is the minimum that it accepts without a warning.
        self._table.optimize(cleanup_older_than=timedelta(milliseconds=1), delete_unverified=True)

    @property
    def version(self) -> int:
        return int(self._table.version)

    @property
    def versions(self) -> int:
        return len(self._table.list_versions())

    @property
    def rows(self) -> int:
        return int(self._table.count_rows())

    @property
    def data_bytes(self) -> int:
        """Return the size of the current data files in bytes, close to the size of the rows in memory."""
        return int(self._table.stats()["total_bytes"])  # `stats` returns a dict, despite its type annotation


def tree_size(folder: Path) -> tuple[int, int]:
    """Return the number of files under a folder and their total size in bytes."""
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    return len(sizes), sum(sizes)


def remove(path: Path) -> tuple[int, int]:
    """Delete a file or a folder, if it exists. Return the number of deleted files and their total size in bytes."""
    if path.is_dir() and not path.is_symlink():
        size = tree_size(path)
        shutil.rmtree(path)
        return size
    if not path.exists() and not path.is_symlink():
        return 0, 0
    bytes_ = path.lstat().st_size
    path.unlink()
    return 1, bytes_


def _hits(rows: pa.Table, scores: NDArray[Any]) -> list[Hit]:
    columns = [rows[name].to_pylist() for name in _SHOWN]
    rounded = np.round(scores.astype(np.float64), SCORE_DIGITS).tolist()
    return [Hit(*row) for row in zip(*columns, rounded, strict=True)]


def _conditions(column: str, names: Collection[str]) -> Iterator[str]:
    """Yield SQL conditions for rows whose `column` has one of `names`. A condition has at most `_NAMES` names."""
    quoted = ["'" + name.replace("'", "''") + "'" for name in sorted(names)]
    for begin in range(0, len(quoted), _NAMES):
        yield f"{column} IN ({', '.join(quoted[begin : begin + _NAMES])})"
