"""The search index of one user: rows in Lance on disk, and the same rows in memory while they fit the cache.

The index may lag behind the records but is never wrong. The checkpoint is saved after Lance has committed. The memory
copy is updated in the same call or evicted. An empty scope finds nothing. A damaged folder is emptied and reported. There
is one writer at a time and any number of readers.
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

# Failures of the machine, not of the folder: emptying it would cure nothing.
_NOT_DAMAGE = (
    "too many open files",
    "no space left",
    "permission denied",
    "read-only file system",
    "out of memory",
)


class VectorIndex:
    """One user's index on one folder. Blocking: call it from a thread."""

    def __init__(self, folder: Path, model: str | None, dims: int | None, cache: MatrixCache) -> None:
        self._folder = folder
        self._empty = IndexCheckpoint(model=model, dims=dims)
        self._state = self._empty
        self._dims = dims
        self._cache = cache
        self._key = object()
        self._table: ChunkTable | None = None
        self._closed = False
        # Held by whoever writes, and by whoever reads the disk: a warm search takes only the cache's own lock.
        self._lock = RLock()

    @classmethod
    def open(cls, folder: Path, model: str | None, dims: int | None, *, cache: MatrixCache) -> "VectorIndex":
        """Open the index of a folder. A damaged folder, or one of another model or layout, becomes an empty index."""
        if (model is None) != (dims is None):
            raise ValueError("a model and its dimensions go together")
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
        """Return the name of the model whose vectors the index holds."""
        return self._empty.model

    @property
    def checkpoint(self) -> tuple[str, int]:
        """Return the epoch and seq up to which the index has read; ("", 0) if it is empty."""
        return self._state.epoch, self._state.seq

    def apply(
        self,
        blocks: Sequence[Block],
        gone_blocks: Collection[str],
        gone_documents: Collection[str],
        checkpoint: tuple[str, int],
        pace: Throttle = iter,
    ) -> None:
        """Write what has changed since the last checkpoint, then save the new one. A block replaces all rows of its
        id; where a block is also named gone, gone wins. Doing it again changes nothing. `pace` hands out the blocks one
        by one: counting their words is what takes time."""
        dead_blocks, dead_documents = set(gone_blocks), set(gone_documents)
        living = [b for b in blocks if b.id not in dead_blocks and b.document_id not in dead_documents]
        rows = to_table(living, self._dims, pace)
        dead_blocks.update(block.id for block in living)
        with self._lock, self._guarded():
            held = self._cache.get(self._key)
            if self._table is None and rows.num_rows:
                self._table = ChunkTable.create(self._folder, self._dims)
            if self._table is not None and (rows.num_rows or dead_blocks or dead_documents):
                self._table.replace(rows, dead_blocks, dead_documents)
            if held is not None:
                added = Segment.from_batches(rows.to_batches(), rows.num_rows, self._dims)
                self._keep(held.changed(added, dead_blocks, dead_documents))
            self._save(*checkpoint)

    def vector_search(self, vector: NDArray[np.float32], document_ids: Collection[str], k: int) -> list[Hit]:
        """Return the k chunks of these documents with the highest cosine, by exact search."""
        asked = np.asarray(vector, dtype=np.float32)
        if self._dims is None or not document_ids or k <= 0:
            return []
        if asked.shape != (self._dims,):
            raise ValueError(f"the vector has shape {asked.shape}, the index {self._dims} dimensions")
        norm = float(np.linalg.norm(asked))
        if not np.isfinite(norm) or norm == 0:
            return []
        unit, scope = asked / np.float32(norm), frozenset(document_ids)
        return self._search(
            lambda snapshot: snapshot.vector_search(unit, scope, k),
            lambda table: table.vector_search(unit, scope, k),
        )

    def keyword_search(self, query: str, document_ids: Collection[str], k: int) -> list[Hit]:
        """Return the k chunks of these documents with the highest BM25 score."""
        wanted, scope = tokenize_query(query), frozenset(document_ids)
        if not wanted or not scope or k <= 0:
            return []
        return self._search(
            lambda snapshot: snapshot.keyword_search(wanted, scope, k),
            lambda table: table.keyword_search(wanted, scope, k),
        )

    def _search(
        self, warm: Callable[[Snapshot], list[Hit]], cold: Callable[[ChunkTable], list[Hit]]
    ) -> list[Hit]:
        """Search in memory if the rows are cached or fit, else on the disk."""
        held: Snapshot | None = self._cache.get(self._key)
        if held is None:
            with self._lock, self._guarded():
                if self._table is None:
                    return []
                held = self._cache.get(self._key) or self._load(self._table)
                if held is None:
                    return cold(self._table)
        return warm(held)

    def _load(self, table: ChunkTable) -> Snapshot | None:
        """Read all rows into memory. Return None if the cache may not hold so many."""
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
        """Return the ids of blocks without vectors, or nothing if the index has no model."""
        with self._lock, self._guarded():
            if self._table is None or self._dims is None:
                return []
            return self._rows(self._table).without_vectors()

    def in_sections(self, sections: Collection[str]) -> list[str]:
        """Return the names of documents that have a chunk in one of these sections."""
        with self._lock, self._guarded():
            return self._rows(self._table).in_sections(sections) if self._table is not None else []

    def _rows(self, table: ChunkTable) -> Snapshot | ChunkTable:
        """Return the cached rows, or the table. Jobs call this after every turn, and a Lance scan takes both cores."""
        held: Snapshot | None = self._cache.get(self._key)
        return table if held is None else held

    def erase(self, document_ids: Collection[str] | None = None) -> ErasureResult:
        """After this no byte of rows deleted or replaced before is left in the folder; nor of these documents' rows,
        which go now. The living rows are written to a new table and the old one is unlinked: nothing has to be
        known about what Lance leaves behind."""
        with self._lock, self._guarded():
            self._evict()
            old = self._table
            if old is not None:
                if document_ids:
                    old.replace(to_table([], self._dims), (), document_ids)
                self._renew(old)
            return self._sweep()

    def optimise(self, after_versions: int = 16) -> bool:
        """Compact small files and drop old versions once there are enough. Return whether it did."""
        with self._lock, self._guarded():
            if self._table is None or self._table.versions < after_versions:
                return False
            self._table.optimise()
            if self._table.versions >= after_versions:  # the clock was put back: they are of a time to come
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
        """Remove the folder; the index is closed."""
        with self._lock:
            self.close()
            self._state = self._empty
            remove(self._folder)

    def close(self) -> None:
        """Release the memory. There are no pending writes."""
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
        """Delete all files except the checkpoint and its table: old tables and leftovers of crashes or older versions."""
        named = {states.FILE}
        if self._table is not None:
            named.add(f"{self._table.name}.lance")
        files = size = 0
        for path in self._folder.iterdir() if self._folder.exists() else ():
            if path.name not in named:
                some, bytes_ = remove(path)
                files, size = files + some, size + bytes_
        return ErasureResult(files=files, bytes=size)

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Empty a damaged folder and raise IndexDamaged; re-raise other errors."""
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
