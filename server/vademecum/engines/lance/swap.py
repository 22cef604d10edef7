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
from numpy.typing import NDArray

from vademecum.engines.lance.segment import Segment
from vademecum.engines.lance.table import remove_tree
from vademecum.model.ranking import Postings

_ROWS = ("document_of", "matrix", "has_vector", "alive")
_SMALL = 4096  # a smaller file is read: mapping costs more, and an empty array cannot be mapped


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
    (folder / "documents.json").write_bytes(msgspec.json.encode(segment.documents))
    for owner, names in ((segment, _ROWS), (segment.postings, Postings.__slots__)):
        for name in names:
            if (array := getattr(owner, name)) is not None:
                np.save(folder / f"{name}.npy", array)


def _read(folder: Path) -> Segment:
    with pa.memory_map(str(folder / "shown.arrow")) as source:
        shown = pa.ipc.open_file(source).read_all()
    documents = msgspec.json.decode((folder / "documents.json").read_bytes(), type=list[str])
    postings = Postings(**{name: _map(folder, name) for name in Postings.__slots__})
    rows: dict[str, Any] = {name: _map(folder, name) for name in _ROWS if (folder / f"{name}.npy").exists()}
    return Segment(shown=shown, documents=documents, postings=postings, **{"matrix": None, **rows})


def _map(folder: Path, name: str) -> NDArray[Any]:
    path = folder / f"{name}.npy"
    return np.asarray(np.load(path, mmap_mode="r" if path.stat().st_size > _SMALL else None))
