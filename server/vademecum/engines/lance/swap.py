"""Rows that left memory, in a file that is mapped when their user asks again, in this process or the next.

Reading them back through Lance takes tens of times as long: it decodes columns and sorts terms, while mapped
pages are the arrays themselves. Rule: any write to the rows clears the swap, and one that is found is believed only
if it was made of the very table it lies beside, and nothing of it is used before it was found as it was written; all
else is read from Lance. Of vectors and texts only the rows that a search uses are checked.
"""

import os
from collections.abc import Iterator
from mmap import ACCESS_READ, mmap
from pathlib import Path
from struct import Struct
from typing import IO, Any
from zlib import crc32

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vademecum.engines.lance.segment import COLUMNS, Part, Segment, SegmentDamaged
from vademecum.engines.lance.table import remove
from vademecum.model.ranking import Postings

FILE = "swap"
_ROWS = ("document_of", "has_vector", "alive")
_OTHERS = pa.schema(list(COLUMNS)[:-1])  # all but the texts
_ALIGNMENT = 64  # a cache line: wide enough for any number, and for the vector instructions
_PAGE = 4096
# The file is its parts, the sums of their units, its contents as JSON, and this: a sign, the contents' length and their
# checksum. The sums have none: a damaged one makes a good unit look bad, never a bad one good.
_END = Struct("<8sQI")
_SIGN = b"VMSWAP03"  # the last two digits change with the shape of the file


class _Place(msgspec.Struct):
    """Where an array lies in the file."""

    dtype: str
    shape: tuple[int, ...]
    begin: int


class _Span(msgspec.Struct):
    """Where a part lies, and in units of what size it is checked: the matrix in rows, all else in pages."""

    begin: int
    unit: int
    count: int
    first_sum: int


class _Contents(msgspec.Struct):
    """`origin` names the table it was read from, `size` is that of all before them."""

    origin: str
    size: int
    documents: list[str]
    arrays: dict[str, _Place]
    parts: dict[Part, _Span]


# Made here: two threads that are the first to decode a type, both at once, can crash the process in msgspec.
_decoder = msgspec.json.Decoder(_Contents)


class _Known:
    """What the end of a file says, and of which rows each part is good: found as it was written."""

    def __init__(self, end: bytes, contents: _Contents, good: bool) -> None:
        self.end = end
        self.contents = contents
        # One more than there are rows, so that a part of no rows is checked too.
        self.good = {part: np.full(contents.arrays["ends"].shape, good) for part in contents.parts}


class Swap:
    """A segment beside the table it was read from."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE
        self._new = folder / (FILE + ".tmp")
        self._known: _Known | None = None

    def write(self, segment: Segment, origin: str) -> None:
        """Keep the segment. A disk that does not take it costs time later, nothing else."""
        try:
            known = _write(self._new, segment, origin)
            self._new.replace(self._file)
            self._known = known
        except OSError:
            self.clear()

    def adopt(self, origin: str) -> bool:
        """Whether an index before this one left a swap of this table. Its pages are checked as they are needed."""
        try:
            found = known(self._file)
        except (OSError, ValueError):
            found = None
        self._known = found if found is not None and found.contents.origin == origin else None
        return self._known is not None

    @property
    def trusted(self) -> bool:
        """Whether there is a swap of the table as it is now, as far as its end tells."""
        return self._known is not None

    def read(self, max_bytes: int) -> Segment | None:
        """The segment that was written, its arrays read-only; None if it is not to be trusted, or too large."""
        if self._known is None or self._known.contents.size > max_bytes:
            return None
        try:
            return _Mapped(self._file, self._known).segment()
        except (OSError, ValueError):  # someone tidied the folder, or the disk is failing
            self.clear()
            return None

    def clear(self) -> None:
        """The table changes, or the swap is not to be trusted. A search that still uses the file keeps it until it is
        done."""
        self._known = None
        remove(self._file)
        remove(self._new)


class _Mapped:
    """A file in memory. What is used of it is checked first, once."""

    def __init__(self, path: Path, known: _Known) -> None:
        with path.open("rb") as file:
            file.seek(-_END.size, os.SEEK_END)
            if file.read() != known.end:
                raise ValueError("another swap")
            self._bytes = np.frombuffer(mmap(file.fileno(), 0, access=ACCESS_READ), np.uint8)
        self._known = known
        self._ends: NDArray[np.int32] = self._array("ends")
        self._sums = self._array("sums")

    def _array(self, name: str) -> NDArray[Any]:
        place = self._known.contents.arrays[name]
        return np.ndarray(place.shape, place.dtype, self._bytes, place.begin)

    def segment(self) -> Segment:
        self.check("head")
        contents = self._known.contents
        columns = pa.ipc.read_record_batch(pa.py_buffer(self._array("shown")), _OTHERS)
        ends, text = pa.py_buffer(self._ends), pa.py_buffer(self._array("text"))
        texts = pa.StringArray.from_buffers(len(self._ends) - 1, ends, text)
        return Segment(
            shown=pa.Table.from_arrays([*columns.columns, texts], schema=COLUMNS),
            documents=contents.documents,
            matrix=self._array("matrix") if "matrix" in contents.arrays else None,
            postings=Postings(**{name: self._array(name) for name in Postings.__slots__}),
            check=self.check,
            **{name: self._array(name) for name in _ROWS},
        )

    def check(
        self, part: Part, rows: NDArray[np.int64] | None = None, copied: NDArray[np.float32] | None = None
    ) -> None:
        asked = slice(None) if rows is None else rows
        good = self._known.good[part]
        if good[asked].all():
            return
        units = self._pages(rows) if part == "text" and rows is not None else asked
        span = self._known.contents.parts[part]
        sums = self._sums[span.first_sum : span.first_sum + span.count]
        found = _units(self._bytes, span)[units] if copied is None else copied.view(np.uint32)
        if (_sums(found) != sums[units]).any():
            raise SegmentDamaged(f"damaged {part}")
        good[asked] = True

    def _pages(self, rows: NDArray[np.int64]) -> list[int]:
        """Those in which the texts of some rows lie."""
        firsts, lasts = self._ends[rows] // _PAGE, (self._ends[rows + 1] - 1) // _PAGE
        spans = zip(firsts.tolist(), lasts.tolist(), strict=True)
        return sorted({page for first, last in spans for page in range(first, last + 1)})


def _write(path: Path, segment: Segment, origin: str) -> _Known:
    contents = _Contents(origin, 0, segment.documents, {}, {})
    with path.open("w+b") as file:
        first_sum = 0
        for part, arrays in _parts(segment):
            begin = file.tell()
            contents.arrays |= {name: _put(file, array) for name, array in arrays.items()}
            if part == "matrix":
                unit, count = arrays[part][:1].nbytes, len(arrays[part])
            else:
                _pad(file, _PAGE)
                unit, count = _PAGE, (file.tell() - begin) // _PAGE
            contents.parts[part] = _Span(begin, unit, count, first_sum)
            first_sum += count
        file.flush()
        body = np.memmap(file, np.uint8, "r")
        sums = [_sums(_units(body, span)) for span in contents.parts.values()]
        contents.arrays["sums"] = _put(file, np.concatenate(sums))
        contents.size = file.tell()
        encoded = msgspec.json.encode(contents)
        file.write(encoded)
        end = _END.pack(_SIGN, len(encoded), crc32(encoded))
        file.write(end)
        file.flush()
        os.fsync(file.fileno())
    return _Known(end, contents, good=True)


def _parts(segment: Segment) -> Iterator[tuple[Part, dict[str, NDArray[Any]]]]:
    """The matrix last, for it alone does not end with a page."""
    columns, ends, text = _columns(segment.shown)
    yield "head", {name: getattr(segment, name) for name in _ROWS} | {"ends": ends, "shown": columns}
    yield "text", {"text": text}
    yield "postings", {name: getattr(segment.postings, name) for name in Postings.__slots__}
    if segment.matrix is not None:
        yield "matrix", {"matrix": segment.matrix}


def _columns(shown: pa.Table) -> tuple[NDArray[np.uint8], NDArray[np.int32], NDArray[np.uint8]]:
    """All columns but the texts; where each text ends, after where the first begins; the texts."""
    *others, texts = (column.combine_chunks() for column in shown.columns)
    if isinstance(texts, pa.ChunkedArray):
        raise OSError("more text than an array can hold")
    _, ends, text = texts.buffers()
    ends = np.frombuffer(ends, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    text = np.frombuffer(text or b"", np.uint8)[int(ends[0]) : int(ends[-1])]
    columns = pa.record_batch(others, schema=_OTHERS).serialize()
    return np.frombuffer(columns, np.uint8), ends - ends[0], text


def _put(file: IO[bytes], array: NDArray[Any]) -> _Place:
    _pad(file, _ALIGNMENT)
    place = _Place(array.dtype.str, array.shape, file.tell())
    file.write(np.ascontiguousarray(array).data)
    return place


def _pad(file: IO[bytes], to: int) -> None:
    file.write(bytes(-file.tell() % to))


def _units(body: NDArray[np.uint8], span: _Span) -> NDArray[np.uint32]:
    """A line each."""
    lying = body[span.begin : span.begin + span.unit * span.count]
    return lying.view(np.uint32).reshape(span.count, span.unit // 4)


def _sums(units: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """They tell whether a unit is altered, lost or in another's place, at the speed of memory. A CRC over all bytes takes
    ten times as long, more than the search itself."""
    sums: NDArray[np.uint32] = units.sum(axis=1, dtype=np.uint32)
    return sums


def known(path: Path) -> _Known:
    """Raises ValueError where the file's end is not as it was written."""
    with path.open("rb") as file:
        total = file.seek(0, os.SEEK_END)
        if total < _END.size:
            raise ValueError("too short")
        file.seek(total - _END.size)
        end = file.read()
        sign, length, checksum = _END.unpack(end)
        if sign != _SIGN or length > total - _END.size:
            raise ValueError("not a swap, or of another shape")
        size = file.seek(total - _END.size - length)
        encoded = file.read(length)
    if crc32(encoded) != checksum:
        raise ValueError("damaged contents")
    contents = _decoder.decode(encoded)
    if contents.size != size:
        raise ValueError("something is missing")
    return _Known(end, contents, good=False)
