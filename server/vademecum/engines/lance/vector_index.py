"""The search index of one user: rows in Lance on disk, and a copy of them in memory if it fits into the cache.

The index may be older than the records, but it agrees with the records as of its checkpoint. The checkpoint is saved
after Lance has committed. The copy in memory is updated in the same call or evicted. A search in an empty scope finds
nothing. A damaged folder is emptied and reported. There is one writer at a time and any number of readers.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock

import msgspec
import numpy as np
from numpy.typing import NDArray

from vademecum.engines.lance import checkpoint as states
from vademecum.engines.lance.arrow_schema import to_table
from vademecum.engines.lance.checkpoint import IndexCheckpoint
from vademecum.engines.lance.chunk_table import ChunkTable, remove, tree_size
from vademecum.engines.lance.matrix_cache import MatrixCache
from vademecum.engines.lance.records import Block, ErasureResult, Hit, IndexDamaged, IndexStats, Throttle
from vademecum.engines.lance.segment import Segment, Snapshot
from vademecum.model.text.tokenize import tokenize_query

# Messages of operating system errors that do not mean damage. After such an error, emptying the folder would not help.
_NOT_DAMAGE = (
    "too many open files",
    "no space left",
    "permission denied",
    "read-only file system",
    "out of memory",
)


class VectorIndex:
    """The index of one user in one folder. Its methods block, so call them from a thread."""

    def __init__(self, folder: Path, model: str | None, dims: int | None, cache: MatrixCache) -> None:
        self._folder = folder
        self._empty = IndexCheckpoint(model=model, dims=dims)
        self._state = self._empty
        self._dims = dims
        self._cache = cache
        self._key = object()
        self._table: ChunkTable | None = None
        self._closed = False
        # Every write and every read from disk holds this lock. A search of cached rows takes only the cache's own lock.
        self._lock = RLock()

    @classmethod
    def open(cls, folder: Path, model: str | None, dims: int | None, *, cache: MatrixCache) -> "VectorIndex":
        """Open the index in a folder. If the folder is damaged or has another model or layout, the index is emptied."""
        if (model is None) != (dims is None):
            raise ValueError("a model and its dimensions must be set together")
        index = cls(folder, model, dims, cache)
        try:
            index._load_state()
        except Exception as error:
            if _of_the_machine(error):
                raise
            index.reset()
        return index

    def _load_state(self) -> None:
        saved = states.load(self._folder)
        if saved is None or (saved.layout, saved.model, saved.dims) != (
            self._empty.layout,
            self._empty.model,
            self._empty.dims,
        ):
            self.reset()
            return
        if saved.table is not None:
            self._table = ChunkTable(self._folder, saved.table, self._dims)
            if self._table.version < saved.version:
                raise ValueError("the table is older than the checkpoint")
        self._state = saved
        self._sweep()

    @property
    def model(self) -> str | None:
        """Return the name of the model whose vectors the index stores."""
        return self._empty.model

    @property
    def checkpoint(self) -> tuple[str, int]:
        """Return the epoch and seq up to which the index has read; ("", 0) if it is empty."""
        return self._state.epoch, self._state.seq

    def apply(
        self,
        blocks: Sequence[Block],
        deleted_blocks: Collection[str],
        deleted_documents: Collection[str],
        checkpoint: tuple[str, int],
        pace: Throttle = iter,
    ) -> None:
        """Write the changes since the last checkpoint, then save the new checkpoint.

        A block replaces all rows with its id. A block that is also listed as deleted is deleted. The call is idempotent.
        `pace` yields the blocks one by one and may pause in between, because counting their terms takes time.
        """
        removed_blocks, removed_documents = set(deleted_blocks), set(deleted_documents)
        live_blocks = [
            b for b in blocks if b.id not in removed_blocks and b.document_id not in removed_documents
        ]
        rows = to_table(live_blocks, self._dims, pace)
        removed_blocks.update(block.id for block in live_blocks)
        with self._lock, self._guarded():
            cached = self._cache.get(self._key)
            if self._table is None and rows.num_rows:
                self._table = ChunkTable.create(self._folder, self._dims)
            if self._table is not None and (rows.num_rows or removed_blocks or removed_documents):
                self._table.replace(rows, removed_blocks, removed_documents)
            if cached is not None:
                added = Segment.from_batches(rows.to_batches(), rows.num_rows, self._dims)
                self._keep(cached.changed(added, removed_blocks, removed_documents))
            self._save(*checkpoint)

    def vector_search(
        self,
        vector: NDArray[np.float32],
        document_ids: Collection[str],
        k: int,
        *,
        foreign_last: bool = False,
    ) -> list[Hit]:
        """Return the k chunks of these documents with the highest cosine, by exact search.

        `foreign_last`: subtract `FOREIGN_PENALTY` from the cosines of chunks in a foreign script.
        """
        query_vector = np.asarray(vector, dtype=np.float32)
        if self._dims is None or not document_ids or k <= 0:
            return []
        if query_vector.shape != (self._dims,):
            raise ValueError(f"the vector has shape {query_vector.shape}, the index {self._dims} dimensions")
        norm = float(np.linalg.norm(query_vector))
        if not np.isfinite(norm) or norm == 0:
            return []
        unit, scope = query_vector / np.float32(norm), frozenset(document_ids)
        return self._search(
            lambda snapshot: snapshot.vector_search(unit, scope, k, foreign_last=foreign_last),
            lambda table: table.vector_search(unit, scope, k, foreign_last=foreign_last),
        )

    def keyword_search(self, query: str, document_ids: Collection[str], k: int) -> list[Hit]:
        """Return the k chunks of these documents with the highest BM25 score."""
        terms, scope = tokenize_query(query), frozenset(document_ids)
        if not terms or not scope or k <= 0:
            return []
        return self._search(
            lambda snapshot: snapshot.keyword_search(terms, scope, k),
            lambda table: table.keyword_search(terms, scope, k),
        )

    def _search(
        self, warm: Callable[[Snapshot], list[Hit]], cold: Callable[[ChunkTable], list[Hit]]
    ) -> list[Hit]:
        """Search in memory if the rows are cached or fit into the cache, otherwise on disk."""
        cached: Snapshot | None = self._cache.get(self._key)
        if cached is None:
            with self._lock, self._guarded():
                if self._table is None:
                    return []
                cached = self._cache.get(self._key) or self._load(self._table)
                if cached is None:
                    return cold(self._table)
        return warm(cached)

    def _load(self, table: ChunkTable) -> Snapshot | None:
        """Read all rows into memory. Return None if they exceed the bound of the cache."""
        if table.data_bytes > self._cache.max_bytes:
            return None
        snapshot = Snapshot((table.read(),))
        self._keep(snapshot)
        return snapshot

    def _keep(self, snapshot: Snapshot) -> None:
        self._cache.put(self._key, snapshot, snapshot.nbytes)

    def _evict(self) -> None:
        self._cache.drop(self._key)

    def without_vectors(self) -> list[str]:
        """Return the ids of blocks that have a chunk without a vector, or [] if the index has no model."""
        with self._lock, self._guarded():
            if self._table is None or self._dims is None:
                return []
            return self._rows(self._table).without_vectors()

    def in_sections(self, sections: Collection[str]) -> list[str]:
        """Return the ids of documents that have a chunk in one of these sections."""
        with self._lock, self._guarded():
            return self._rows(self._table).in_sections(sections) if self._table is not None else []

    def _rows(self, table: ChunkTable) -> Snapshot | ChunkTable:
        """Return the cached rows if there are any, otherwise the table.

        Jobs call this after every turn. Cached rows are preferred, because a Lance scan occupies two cores.
        """
        cached: Snapshot | None = self._cache.get(self._key)
        return table if cached is None else cached

    def erase(self, document_ids: Collection[str] | None = None) -> ErasureResult:
        """Delete the rows of these documents, and erase all deleted and replaced rows from the folder.

        Afterwards the folder contains no byte of such rows. The live rows are copied to a new table and the old table is
        unlinked, so the erasure does not depend on which files Lance leaves behind.
        """
        with self._lock, self._guarded():
            self._evict()
            old = self._table
            if old is not None:
                if document_ids:
                    old.replace(to_table([], self._dims), (), document_ids)
                self._renew(old)
            return self._sweep()

    def optimise(self, after_versions: int = 16) -> bool:
        """Compact small files and delete old versions if there are at least `after_versions` versions.

        Return whether this was done.
        """
        with self._lock, self._guarded():
            if self._table is None or self._table.versions < after_versions:
                return False
            self._table.optimise()
            # If the clock was set back, Lance keeps versions from the future. A new table does not have these versions.
            if self._table.versions >= after_versions:
                self._renew(self._table)
                self._sweep()
            return True

    def _renew(self, old: ChunkTable) -> None:
        """Copy the live rows to a new table; `_sweep` deletes the old one."""
        self._table = old.copy() if old.rows else None
        self._save(*self.checkpoint)

    def stats(self) -> IndexStats:
        """Return the number of rows and documents, and the bytes on disk."""
        with self._lock, self._guarded():
            size = tree_size(self._folder)[1]
            if self._table is None:
                return IndexStats(rows=0, documents=0, bytes=size)
            names: set[str] = set()
            for batch in self._table.batches(["document_id"]):
                names.update(batch["document_id"].unique().to_pylist())
            return IndexStats(rows=self._table.rows, documents=len(names), bytes=size)

    def reset(self) -> None:
        """Empty the folder, for a new epoch or after damage."""
        with self._lock:
            self._evict()
            self._table = None
            self._state = self._empty
            remove(self._folder)

    def drop(self) -> None:
        """Close the index and delete its folder."""
        with self._lock:
            self.close()
            self._state = self._empty
            remove(self._folder)

    def close(self) -> None:
        """Close the index and release its memory. No writes are pending, because each call completes its writes."""
        with self._lock:
            self._closed = True
            self._cache.drop(self._key)
            self._table = None

    def _save(self, epoch: str, seq: int) -> None:
        table = self._table
        new = msgspec.structs.replace(
            self._empty,
            epoch=epoch,
            seq=seq,
            table=table.name if table else None,
            version=table.version if table else 0,
        )
        states.save(self._folder, new)
        self._state = new

    def _sweep(self) -> ErasureResult:
        """Delete all files except the checkpoint and the current table.

        The deleted files are old tables and leftovers of crashes or of older versions of the program.
        """
        current_files = {states.FILE}
        if self._table is not None:
            current_files.add(f"{self._table.name}.lance")
        files = size = 0
        for path in self._folder.iterdir() if self._folder.exists() else ():
            if path.name not in current_files:
                some, bytes_ = remove(path)
                files, size = files + some, size + bytes_
        return ErasureResult(files=files, bytes=size)

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Run an operation. If it fails because the folder is damaged, empty the folder and raise IndexDamaged.

        Other errors are raised unchanged.
        """
        if self._closed:
            raise RuntimeError("this index is closed")
        try:
            yield
        except Exception as error:
            self._evict()
            if _of_the_machine(error) or self._readable():
                raise
            self.reset()
            raise IndexDamaged(str(self._folder)) from error

    def _readable(self) -> bool:
        try:
            if self._table is not None:
                self._table.verify()
        except Exception as error:
            return _of_the_machine(error)
        return True


def _of_the_machine(error: Exception) -> bool:
    return isinstance(error, MemoryError) or any(sign in str(error).lower() for sign in _NOT_DAMAGE)
