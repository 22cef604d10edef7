"""Rows that left the shared memory, as files that are mapped when their user asks again.

Reading them back through Lance takes tens of times as long: it decodes columns and sorts terms, while mapped
pages are the arrays themselves. Rule: only the index that wrote a swap reads it, and any write to the rows clears it,
so it is never synced, never checked, and never older than the table.
"""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from vademecum.engines.lance.segment import Segment
from vademecum.engines.lance.table import remove_tree
from vademecum.model.ranking import Postings

_ROWS = ("document_of", "matrix", "has_vector", "alive")
_ALIGNMENT = 64  # a cache line: wide enough for any number, and for the vector instructions


class _Place(msgspec.Struct):
    """Where an array lies among the others."""

    dtype: str
    shape: tuple[int, ...]
    begin: int


class _Contents(msgspec.Struct):
    documents: list[str]
    arrays: dict[str, _Place]


class Swap:
    """A segment beside the table it was read from."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "swap"
        self._written = False

    def write(self, segment: Segment) -> None:
        """Keep the segment. A disk that does not take it costs time later, nothing else."""
        try:
            self._folder.mkdir()
            _write(self._folder, segment)
            self._written = True
        except OSError:
            self.clear()

    def read(self) -> Segment | None:
        """The segment that was written, its arrays read-only, or None."""
        if not self._written:
            return None
        try:
            return _read(self._folder)
        except (OSError, ValueError):  # someone tidied the folder
            self.clear()
            return None

    def clear(self) -> None:
        """The table has changed, or nobody will ask again. A search that still uses the files keeps them until it is done."""
        self._written = False
        remove_tree(self._folder)


def _write(folder: Path, segment: Segment) -> None:
    with pa.ipc.new_file(str(folder / "shown.arrow"), segment.shown.schema) as file:
        file.write_table(segment.shown)
    places: dict[str, _Place] = {}
    with (folder / "arrays").open("wb") as arrays:
        for owner, names in ((segment, _ROWS), (segment.postings, Postings.__slots__)):
            for name in names:
                if (array := getattr(owner, name)) is not None:
                    places[name] = _Place(array.dtype.str, array.shape, arrays.tell())
                    array.tofile(arrays)
                    arrays.write(bytes(-arrays.tell() % _ALIGNMENT))
    contents = _Contents(segment.documents, places)
    (folder / "contents.json").write_bytes(msgspec.json.encode(contents))


def _read(folder: Path) -> Segment:
    contents = msgspec.json.decode((folder / "contents.json").read_bytes(), type=_Contents)
    with pa.memory_map(str(folder / "shown.arrow")) as source:
        shown = pa.ipc.open_file(source).read_all()
    mapped = np.memmap(folder / "arrays", np.uint8, "r")
    arrays: dict[str, Any] = {
        name: np.ndarray(place.shape, place.dtype, mapped, place.begin)
        for name, place in contents.arrays.items()
    }
    postings = Postings(**{name: arrays.pop(name) for name in Postings.__slots__})
    return Segment(shown=shown, documents=contents.documents, postings=postings, **{"matrix": None, **arrays})
