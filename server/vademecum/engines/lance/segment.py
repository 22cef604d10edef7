"""The index rows of one user in memory: a matrix of unit vectors, postings of terms, and Arrow columns for other fields.

All objects are immutable. A write creates a new `Snapshot`, so concurrent searches see either the old or the new rows.
Deleted rows are masked. Segments of similar size are merged, as in an LSM tree, so a row is copied only a few times and a
search visits few segments.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vademecum.engines.lance.arrow_schema import read_terms, read_vectors
from vademecum.engines.lance.records import Hit
from vademecum.model.text.bm25 import (
    SCORE_DIGITS,
    TERM_DTYPE,
    Postings,
    bm25_scores,
    row_lengths,
    top_k_with_ties,
)
from vademecum.model.text.fusion import FOREIGN_PENALTY, MAX_BYTES_PER_CHARACTER

COLUMNS = pa.schema(
    [
        ("block_id", pa.string()),
        ("document_id", pa.string()),
        ("block", pa.int64()),
        ("chunk_index", pa.int64()),
        ("page", pa.int64()),
        ("section", pa.string()),
        ("text", pa.string()),
    ]
)
_SHOWN = COLUMNS.names
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Segment:
    """An immutable set of rows. `documents` lists the document ids; `document_of` maps each row to a position in that list."""

    shown: pa.Table
    documents: list[str]
    document_of: NDArray[np.int32]
    matrix: NDArray[np.float32] | None
    has_vector: Mask
    is_foreign: Mask
    postings: Postings
    alive: Mask

    @classmethod
    def from_batches(cls, batches: Iterable[pa.RecordBatch], rows: int, dims: int | None) -> "Segment":
        """Build a segment of `rows` rows from Lance batches.

        Only one batch is in memory at a time, in addition to the segment.
        """
        matrix = None if dims is None else np.empty((rows, dims), np.float32)
        has_vector = np.zeros(rows, np.bool_)
        shown = [pa.RecordBatch.from_pylist([], COLUMNS)]
        entries, row_of = [np.empty(0, TERM_DTYPE)], [np.empty(0, np.int32)]
        begin = 0
        for batch in batches:
            end = begin + batch.num_rows
            if matrix is not None:
                read_vectors(batch, matrix[begin:end], has_vector[begin:end])
            some, at = read_terms(batch)
            entries.append(some)
            row_of.append(at + np.int32(begin))
            shown.append(batch.select(_SHOWN).cast(COLUMNS))
            begin = end
        if begin != rows:
            raise ValueError("rows are missing")
        terms, places = np.concatenate(entries), np.concatenate(row_of)
        postings = Postings.build(terms, places, row_lengths(terms, places, rows))
        return cls._make(pa.Table.from_batches(shown), matrix, has_vector, postings)

    @classmethod
    def join(cls, parts: Sequence["Segment"]) -> "Segment":
        """Merge the live rows of several segments."""
        tables, entries, rows = [], [], []
        begin = 0
        for part in parts:
            tables.append(part.shown.filter(pa.array(part.alive)))
            new_place = np.cumsum(part.alive, dtype=np.int32) - 1 + begin
            some, at = part.postings.entries()
            entries.append(some[part.alive[at]])
            rows.append(new_place[at[part.alive[at]]])
            begin += int(part.alive.sum())
        postings = Postings.build(
            np.concatenate(entries),
            np.concatenate(rows),
            np.concatenate([part.postings.lengths[part.alive] for part in parts]),
        )
        matrices = [part.matrix[part.alive] for part in parts if part.matrix is not None]
        matrix = np.concatenate(matrices) if matrices else None
        has_vector = np.concatenate([part.has_vector[part.alive] for part in parts])
        return cls._make(pa.concat_tables(tables), matrix, has_vector, postings)

    @classmethod
    def _make(
        cls, shown: pa.Table, matrix: NDArray[np.float32] | None, has_vector: Mask, postings: Postings
    ) -> "Segment":
        shown = shown.combine_chunks()
        names = shown["document_id"].combine_chunks().dictionary_encode()
        return cls(
            shown=shown,
            documents=names.dictionary.to_pylist(),
            document_of=names.indices.to_numpy(zero_copy_only=False).astype(np.int32),
            matrix=matrix,
            has_vector=has_vector,
            is_foreign=_is_foreign_script(shown["text"].combine_chunks()),
            postings=postings,
            alive=np.ones(shown.num_rows, np.bool_),
        )

    def within(self, document_ids: Collection[str]) -> Mask:
        """Return a mask of the live rows of these documents."""
        in_scope = np.array([name in document_ids for name in self.documents], dtype=np.bool_)
        return in_scope[self.document_of] & self.alive if len(in_scope) else self.alive

    def without(self, block_ids: Collection[str], document_ids: Collection[str]) -> "Segment":
        """Return the segment with the rows of these blocks and documents masked."""
        removed = self.within(document_ids)
        if block_ids:
            listed = pc.is_in(self.shown["block_id"], value_set=pa.array(list(block_ids), pa.string()))
            removed = removed | listed.to_numpy()
        return replace(self, alive=self.alive & ~removed)

    def packed(self) -> "Segment":
        """Return the segment without deleted rows if most rows are deleted, else the segment itself."""
        return Segment.join([self]) if 2 * int(self.alive.sum()) < len(self.alive) else self

    def cosines(self, unit: NDArray[np.float32], mask: Mask) -> NDArray[np.float32]:
        """Return each row's cosine with a unit vector, minus infinity for masked rows and rows without a vector."""
        scores = np.full(len(mask), -np.inf, dtype=np.float32)
        rows = np.flatnonzero(mask & self.has_vector)
        if self.matrix is not None and len(rows):
            # If few rows are unmasked, copy them first. Otherwise it is cheaper to multiply the whole matrix.
            few = 2 * len(rows) < len(mask)
            if few:
                scores[rows] = self.matrix[rows] @ unit
            else:
                scores[rows] = (self.matrix @ unit)[rows]
        return scores

    def without_vectors(self) -> set[str]:
        """Return the ids of blocks that have a live row without a vector."""
        return self._named("block_id", self.alive & ~self.has_vector)

    def in_sections(self, sections: Collection[str]) -> set[str]:
        """Return the ids of documents that have a live row in one of these sections."""
        within = pc.is_in(self.shown["section"], value_set=pa.array(list(sections), pa.string()))
        return self._named("document_id", self.alive & within.to_numpy())

    def _named(self, column: str, mask: Mask) -> set[str]:
        return set(self.shown[column].take(pa.array(np.flatnonzero(mask))).to_pylist())

    def hits(self, rows: NDArray[np.int64], scores: NDArray[Any]) -> list[Hit]:
        """Return hits for these rows, with their scores."""
        columns = [column.to_pylist() for column in self.shown.take(pa.array(rows)).columns[1:]]
        rounded = np.round(scores[rows].astype(np.float64), SCORE_DIGITS).tolist()
        return [Hit(*row) for row in zip(*columns, rounded, strict=True)]

    @property
    def nbytes(self) -> int:
        arrays = (self.document_of, self.has_vector, self.is_foreign, self.alive)
        matrix = 0 if self.matrix is None else self.matrix.nbytes
        return int(
            self.shown.get_total_buffer_size()
            + matrix
            + self.postings.nbytes
            + sum(part.nbytes for part in arrays)
        )


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All rows of an index at one moment, as segments. The oldest and largest segment comes first."""

    segments: tuple[Segment, ...] = ()

    def changed(
        self, added: Segment, block_ids: Collection[str], document_ids: Collection[str]
    ) -> "Snapshot":
        """Return a snapshot without these blocks and documents and with the added rows."""
        segments = [part.without(block_ids, document_ids) for part in self.segments]
        segments = [part.packed() for part in [*segments, added] if part.alive.any()]
        while len(segments) > 1 and len(segments[-2].alive) <= 2 * len(segments[-1].alive):
            segments[-2:] = [Segment.join(segments[-2:])]
        return Snapshot(tuple(segments))

    def vector_search(
        self, unit: NDArray[np.float32], document_ids: Collection[str], k: int, *, foreign_last: bool = False
    ) -> list[Hit]:
        """Return the k rows nearest to a unit vector, by exact cosine.

        `foreign_last`: subtract `FOREIGN_PENALTY` from the cosines of rows in a foreign script.
        """
        scores = [part.cosines(unit, part.within(document_ids)) for part in self.segments]
        if foreign_last:
            for part, some in zip(self.segments, scores, strict=True):
                some[part.is_foreign] -= FOREIGN_PENALTY
        return self._top(scores, k, -np.inf)

    def keyword_search(self, terms: Sequence[str], document_ids: Collection[str], k: int) -> list[Hit]:
        """Return the k rows with the highest BM25 score for the terms."""
        parts = [(part.postings, part.within(document_ids)) for part in self.segments]
        return self._top(bm25_scores(parts, terms), k, 0.0)

    def without_vectors(self) -> list[str]:
        """Return the ids of blocks that have a row without a vector."""
        return sorted({name for part in self.segments for name in part.without_vectors()})

    def in_sections(self, sections: Collection[str]) -> list[str]:
        """Return the ids of documents that have a row in one of these sections."""
        return sorted({name for part in self.segments for name in part.in_sections(sections)})

    def _top(self, scores: Sequence[NDArray[Any]], k: int, floor: float) -> list[Hit]:
        hits = [
            hit
            for part, some in zip(self.segments, scores, strict=True)
            for hit in part.hits(top_k_with_ties(some, k, floor), some)
        ]
        return in_order(hits, k)

    @property
    def rows(self) -> int:
        return sum(int(part.alive.sum()) for part in self.segments)

    @property
    def documents(self) -> int:
        found = (np.unique(part.document_of[part.alive]).tolist() for part in self.segments)
        return len(
            {part.documents[at] for part, some in zip(self.segments, found, strict=True) for at in some}
        )

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self.segments)


def _is_foreign_script(texts: pa.Array) -> Mask:
    """Return the result of `fusion.is_foreign_script` for each text."""
    characters = pc.utf8_length(texts).to_numpy()
    return np.asarray(pc.binary_length(texts).to_numpy() > MAX_BYTES_PER_CHARACTER * characters)


def in_order(hits: Sequence[Hit], k: int) -> list[Hit]:
    """Return the k best hits. Hits with equal scores are ordered by their position, so that results are deterministic."""
    return sorted(hits, key=lambda hit: (-hit.score, hit.place))[:k]
