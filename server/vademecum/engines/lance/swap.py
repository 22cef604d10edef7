"""Rows that left memory, in a file that is mapped when their user asks again, in this process or the next.

Reading them back through Lance takes tens of times as long: it decodes columns and sorts terms, while mapped
pages are the arrays themselves. Rule: any write to the rows clears the swap, and one that is found is believed only
if it was made of the very table it lies beside and every page is as it was written; all else is read from Lance.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import IO, Any
from zlib import crc32

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vademecum.engines.lance.segment import Segment
from vademecum.engines.lance.table import remove
from vademecum.model.ranking import Postings

FILE = "swap"
_ROWS = ("document_of", "matrix", "has_vector", "alive")
_ALIGNMENT = 64  # a cache line: wide enough for any number, and for the vector instructions
_PAGE = 4096
# The file is its arrays, its contents as JSON, and this: a sign, the contents' length and their checksum.
_END = Struct("<8sQI")
_SIGN = b"VMSWAP02"  # the last two digits change with the shape of the file


class _Place(msgspec.Struct):
    """Where an array lies in the file."""

    dtype: str
    shape: tuple[int, ...]
    begin: int


class _Contents(msgspec.Struct):
    """`origin` names the table it was read from, `checksum` is that of the `size` bytes before the contents."""

    origin: str
    size: int
    checksum: int
    documents: list[str]
    arrays: dict[str, _Place]
    shown: tuple[int, int]


# Made here: two threads that are the first to decode a type, both at once, can crash the process in msgspec.
_decoder = msgspec.json.Decoder(_Contents)


class Swap:
    """A segment beside the table it was read from."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE
        self._new = folder / (FILE + ".tmp")
        self._origin: str | None = None
        self._checked = False

    def write(self, segment: Segment, origin: str) -> None:
        """Keep the segment. A disk that does not take it costs time later, nothing else."""
        try:
            _write(self._new, segment, origin)
            self._new.replace(self._file)
            self._origin, self._checked = origin, True
        except OSError:
            self.clear()

    def adopt(self, origin: str) -> bool:
        """Whether an index before this one left a swap of this table. Its pages are checked when they are read."""
        try:
            fits = _contents(self._file).origin == origin
        except (OSError, ValueError):
            fits = False
        self._origin, self._checked = (origin if fits else None), False
        return fits

    @property
    def trusted(self) -> bool:
        """Whether there is a swap of the table as it is now, as far as its end tells."""
        return self._origin is not None

    def read(self, max_bytes: int) -> Segment | None:
        """The segment that was written, its arrays read-only; None if it is not to be trusted, or too large."""
        if self._origin is None:
            return None
        try:
            contents = _contents(self._file)
            if contents.size > max_bytes:
                return None
            if contents.origin != self._origin:
                raise ValueError("a swap of another table")
            segment = _read(self._file, contents, check=not self._checked)
        except (OSError, ValueError):  # someone tidied the folder, or the disk is failing
            self.clear()
            return None
        self._checked = True
        return segment

    def clear(self) -> None:
        """The table changes, or the swap is not to be trusted. A search that still uses the file keeps it until it is
        done."""
        self._origin = None
        remove(self._file)
        remove(self._new)


def _write(path: Path, segment: Segment, origin: str) -> None:
    with path.open("w+b") as file:
        places = {name: _put(file, array) for name, array in _arrays(segment)}
        begin = file.tell()
        with pa.ipc.new_stream(file, segment.shown.schema) as stream:
            stream.write_table(segment.shown)
        shown = begin, file.tell()
        _pad(file, _PAGE)
        file.flush()
        size = file.tell()
        checksum = _checksum(np.memmap(file, np.uint8, "r", shape=(size,)))
        encoded = msgspec.json.encode(_Contents(origin, size, checksum, segment.documents, places, shown))
        file.write(encoded)
        file.write(_END.pack(_SIGN, len(encoded), crc32(encoded)))
        file.flush()
        os.fsync(file.fileno())


def _arrays(segment: Segment) -> Iterator[tuple[str, NDArray[Any]]]:
    for owner, names in ((segment, _ROWS), (segment.postings, Postings.__slots__)):
        for name in names:
            if (array := getattr(owner, name)) is not None:
                yield name, array


def _put(file: IO[bytes], array: NDArray[Any]) -> _Place:
    place = _Place(array.dtype.str, array.shape, file.tell())
    file.write(np.ascontiguousarray(array).data)
    _pad(file, _ALIGNMENT)
    return place


def _pad(file: IO[bytes], to: int) -> None:
    file.write(bytes(-file.tell() % to))


def _checksum(body: NDArray[np.uint8]) -> int:
    """A CRC over the sum of each page: a page that is altered, lost or in another's place is noticed, at the speed of
    memory. A CRC over all bytes takes ten times as long, more than the search itself."""
    pages = body.view(np.uint64).reshape(-1, _PAGE // 8)
    return crc32(pages.sum(axis=1).data)


def _contents(path: Path) -> _Contents:
    """Raises ValueError where the file's end is not as it was written."""
    with path.open("rb") as file:
        total = file.seek(0, os.SEEK_END)
        if total < _END.size:
            raise ValueError("too short")
        file.seek(total - _END.size)
        sign, length, checksum = _END.unpack(file.read(_END.size))
        if sign != _SIGN or length > total - _END.size:
            raise ValueError("not a swap, or of another shape")
        file.seek(total - _END.size - length)
        encoded = file.read(length)
    if crc32(encoded) != checksum:
        raise ValueError("damaged contents")
    return _decoder.decode(encoded)


def _read(path: Path, contents: _Contents, check: bool) -> Segment:
    mapped = np.memmap(path, np.uint8, "r", shape=(contents.size,))
    if check and _checksum(mapped) != contents.checksum:
        raise ValueError("damaged pages")
    begin, end = contents.shown
    shown = pa.ipc.open_stream(pa.py_buffer(mapped[begin:end])).read_all()
    arrays: dict[str, Any] = {
        name: np.ndarray(place.shape, place.dtype, mapped, place.begin)
        for name, place in contents.arrays.items()
    }
    postings = Postings(**{name: arrays.pop(name) for name in Postings.__slots__})
    return Segment(shown=shown, documents=contents.documents, postings=postings, **{"matrix": None, **arrays})
