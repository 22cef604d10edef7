"""One Lance table of chunks on disk: every call into lancedb is here.

Rule: one writer, and nobody reads while old versions are cleaned away (the index sees to both). Lance is given no
index structures to keep, so the rows are all there is to erase. Deleting and then adding makes two versions, but
costs a fifth of `merge_insert` at 50,000 rows (14 against 75 ms), which reads the whole key column; after a crash
between the two the checkpoint is still the old one, and the rows are written again.
"""

import shutil
import sys
from collections.abc import Collection, Iterator, Sequence
from datetime import timedelta
from functools import cache, cached_property
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vademecum.engines.lance.arrow_schema import read_terms, schema
from vademecum.engines.lance.records import Hit
from vademecum.engines.lance.segment import Segment, in_order
from vademecum.model.text.ranking import DIGITS, Postings, best, bm25, row_lengths, term_key

# What Lance may remember of files it has opened, for all users together: a manifest is small and quick to read.
_LANCE_CACHE_BYTES = 16 << 20
# Rows a write or a read handles at once: some 30 MB.
_BATCH = 8192
# Names in one condition: the planner's work grows with them.
_NAMES = 500
_PLACE = ["document_id", "block", "chunk_index"]
_SHOWN = [*_PLACE, "page", "section", "text"]


# What asks Lance's own service, which nobody here does. Its calls are declared when it is imported: half of what lancedb
# takes, 1.5 s of a processor in each process that has an index.
_UNASKED = "lance_namespace_urllib3_client"


@cache
def _lancedb() -> Any:
    """The library. Of the package above it gets the modules it names, and not what they come with."""
    found = find_spec(_UNASKED)
    if found is not None and _UNASKED not in sys.modules:
        sys.modules[_UNASKED] = module_from_spec(found)
    import lancedb

    return lancedb


@cache
def _session() -> Any:
    """The cache all tables share. Each would otherwise have its own, of gigabytes."""
    return _lancedb().Session(_LANCE_CACHE_BYTES, _LANCE_CACHE_BYTES)


def _connect(folder: Path) -> Any:
    return _lancedb().connect(str(folder), session=_session())


class ChunkTable:
    """A table in a folder. Its name is new each time: what Lance remembers of another table never fits this one."""

    def __init__(self, folder: Path, name: str, dims: int | None) -> None:
        self.name = name
        self.dims = dims
        self._folder = folder

    @cached_property
    def _table(self) -> Any:
        """Lance's own table, opened when it is first needed."""
        table = _connect(self._folder).open_table(self.name)
        if not table.schema.equals(schema(self.dims)):
            raise ValueError("the table has other columns")
        return table

    @classmethod
    def create(cls, folder: Path, dims: int | None) -> "ChunkTable":
        """A new, empty table."""
        folder.mkdir(parents=True, exist_ok=True)
        name = f"chunks-{uuid4().hex[:12]}"
        _connect(folder).create_table(name, schema=schema(dims))
        return cls(folder, name, dims)

    def replace(self, rows: pa.Table, block_ids: Collection[str], document_ids: Collection[str]) -> None:
        """Take out blocks and documents, then add rows."""
        for column, names in (("document_id", document_ids), ("block_id", block_ids)):
            for condition in _conditions(column, names):
                self._table.delete(condition)
        if rows.num_rows:
            self._table.add(rows)

    def read(self) -> Segment:
        """All rows, into memory."""
        return Segment.from_batches(self.batches(schema(self.dims).names), self.rows, self.dims)

    def batches(
        self, columns: Sequence[str], document_ids: Collection[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Some columns of all rows, or of these documents' rows, a batch at a time."""
        for condition in [None] if document_ids is None else _conditions("document_id", document_ids):
            query = self._table.search().select(list(columns))
            if condition is not None:
                query = query.where(condition)
            yield from query.to_batches(_BATCH)

    def without_vectors(self) -> list[str]:
        """Ids of the blocks that have a chunk without a vector."""
        rows = self._table.search().where("vector IS NULL").select(["block_id"]).to_arrow()
        return sorted(set(rows["block_id"].to_pylist()))

    def in_sections(self, sections: Collection[str]) -> list[str]:
        """Names of the documents that have a chunk in one of these sections."""
        found: set[str] = set()
        for condition in _conditions("section", sections):
            rows = self._table.search().where(condition).select(["document_id"]).to_arrow()
            found.update(rows["document_id"].to_pylist())
        return sorted(found)

    def copy(self) -> "ChunkTable":
        """The living rows in a new table beside this one."""
        copy = ChunkTable.create(self._folder, self.dims)
        rows = self.batches(schema(self.dims).names)
        copy._table.add(pa.RecordBatchReader.from_batches(schema(self.dims), rows))
        return copy

    def verify(self) -> None:
        """Read every byte; any exception means that the table cannot be used."""
        fresh = ChunkTable(self._folder, self.name, self.dims)
        rows = sum(batch.num_rows for batch in fresh.batches(schema(self.dims).names))
        if rows != fresh.rows:
            raise ValueError("rows are missing")

    def vector_search(self, vector: NDArray[np.float32], document_ids: Collection[str], k: int) -> list[Hit]:
        """Lance's own exact search: for a library that memory does not hold."""
        hits: list[Hit] = []
        for condition in _conditions("document_id", document_ids):
            query = self._table.search(vector, vector_column_name="vector").distance_type("cosine")
            query = query.where(f"({condition}) AND vector IS NOT NULL", prefilter=True)
            found = query.bypass_vector_index().limit(k).select([*_SHOWN, "_distance"]).to_arrow()
            hits += _hits(found, 1.0 - found["_distance"].to_numpy())
        return in_order(hits, k)

    def keyword_search(self, wanted: Sequence[str], document_ids: Collection[str], k: int) -> list[Hit]:
        """BM25 read from the disk, keeping no more than the rows that hold a wanted term."""
        keys = np.array([term_key(term) for term in wanted], np.uint64)
        places: list[pa.RecordBatch] = []
        parts = []
        for batch in self.batches([*_PLACE, "chunk_id", "terms"], document_ids):
            entries, row_of = read_terms(batch)
            lengths = row_lengths(entries, row_of, batch.num_rows)
            held = np.isin(entries["term"], keys)
            parts.append(
                (Postings.build(entries[held], row_of[held], lengths), np.ones(len(lengths), np.bool_))
            )
            places.append(batch.select([*_PLACE, "chunk_id"]))
        found: list[tuple[float, tuple[Any, ...]]] = []
        for batch, scores in zip(places, bm25(parts, wanted), strict=True):
            rows = best(scores, k, 0.0)
            taken = zip(*(column.to_pylist() for column in batch.take(pa.array(rows)).columns), strict=True)
            found += zip(np.round(-scores[rows], DIGITS).tolist(), taken, strict=True)
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
        """Join the small files that writes leave, and keep only the newest version."""
        # A millisecond is Lance's smallest age that it does not warn of; whatever is older goes.
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
        """The size of the living data files, close to what the rows take in memory."""
        return int(self._table.stats()["total_bytes"])  # a dict, whatever its annotation says


def tree_size(folder: Path) -> tuple[int, int]:
    """Files under a folder, and their bytes."""
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    return len(sizes), sum(sizes)


def remove(path: Path) -> tuple[int, int]:
    """Unlink a file, or a folder with all in it, if it is there; how many files, and their bytes."""
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
    rounded = np.round(scores.astype(np.float64), DIGITS).tolist()
    return [Hit(*row) for row in zip(*columns, rounded, strict=True)]


def _conditions(column: str, names: Collection[str]) -> Iterator[str]:
    """SQL that picks the rows with these names, in pieces. Names are quoted, whatever they hold."""
    quoted = ["'" + name.replace("'", "''") + "'" for name in sorted(names)]
    for begin in range(0, len(quoted), _NAMES):
        yield f"{column} IN ({', '.join(quoted[begin : begin + _NAMES])})"
