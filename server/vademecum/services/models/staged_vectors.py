"""Staged vectors: what a change of the model has made of a user's blocks so far, beside the rows and not yet in them.

`<user's folder>/reembed/<model's hash>/` exists for as long as the user's rows hold the vectors of the model before;
a file in it is one block's new vectors, named by the block and the `seq` they were made from. So a listing says what
is done, a crash costs one block, and what a deleted block leaves here is found by its name. A file ends with the
checksum of what stands before it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np

from vademecum.fsync import sync_folder
from vademecum.model.records.paths import user_folder
from vademecum.model.schema.vector_codec import Vectors

FOLDER = "reembed"
INDEX = "index"  # the search index of the new vectors, until it takes the old one's place
SWAPPING = "swapping"  # from before the rows are changed until the index is: a stop may have come in between
CHECKSUM = 4  # bytes


class Staging:
    """One user's staged vectors of one model. Blocking, and quick enough for a thread."""

    def __init__(self, data: Path, user_id: str, model: str) -> None:
        self.folder = user_folder(data, user_id) / FOLDER / model

    @property
    def index(self) -> Path:
        return self.folder.with_name(INDEX)

    def end(self) -> None:
        """The user is done, or needs it no more."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.rmtree(self.index, ignore_errors=True)
        _remove_empty(self.folder.parent)

    def seqs(self) -> dict[str, int]:
        """Block -> the `seq` of the state that its staged vectors were made from."""
        found: dict[str, int] = {}
        for path in self.folder.glob("*@*"):  # none in a folder that is gone
            block_id, _, seq = path.name.partition("@")
            if seq.isdigit():
                found[block_id] = max(int(seq), found.get(block_id, 0))
        return found

    def put(self, block_id: str, seq: int, vectors: Vectors) -> None:
        """Whole or not at all. Makes no folder: one that is gone belongs to a user who has left."""
        path = self._path(block_id, seq)
        new = path.with_name(path.name + ".new")
        data = vectors.astype("<f4").tobytes()
        with new.open("wb") as file:
            file.write(data + _checksum(data))
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)

    def read(self, blocks: Mapping[str, int], dims: int) -> dict[str, Vectors]:
        """The n × dims vectors of blocks (with the `seq` of each) that are here. A file that the disk has damaged is
        removed, and so made again."""
        found: dict[str, Vectors] = {}
        for block_id, seq in blocks.items():
            path = self._path(block_id, seq)
            try:
                whole = path.read_bytes()
            except FileNotFoundError:  # the block has just died
                continue
            data = whole[:-CHECKSUM]
            if len(data) % (4 * dims) or _checksum(data) != whole[-CHECKSUM:]:
                path.unlink(missing_ok=True)
                continue
            found[block_id] = np.frombuffer(data, dtype="<f4").astype(np.float32).reshape(-1, dims)
        return found

    def begin_swap(self) -> None:
        """On the disk before any row has a new vector."""
        (self.folder / SWAPPING).touch()
        sync_folder(self.folder)

    def cancel_swap(self) -> None:
        (self.folder / SWAPPING).unlink(missing_ok=True)

    def _path(self, block_id: str, seq: int) -> Path:
        return self.folder / f"{block_id}@{seq}"


def _checksum(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(CHECKSUM, "little")


def begin(data: Path, user_ids: Iterable[str], model: str) -> None:
    for user_id in user_ids:
        Staging(data, user_id, model).folder.mkdir(parents=True, exist_ok=True)


def behind(data: Path, model: str) -> set[str]:
    """The users whose rows still hold the vectors of the model before `model`."""
    return {path.parents[1].name for path in (data / "users").glob(f"*/*/{FOLDER}/{model}")}


def swapping(data: Path, model: str) -> set[str]:
    """Those of them whose rows may hold the new vectors already, while their index has the old ones."""
    return {path.parents[2].name for path in (data / "users").glob(f"*/*/{FOLDER}/{model}/{SWAPPING}")}


def sweep(data: Path, keep: str | None) -> None:
    """Take away what belongs to no change that is under way, and folders that a stop has left empty."""
    for folder in (data / "users").glob(f"*/*/{FOLDER}"):
        for path in folder.glob("*"):  # none in a folder that is gone
            if path.name != keep:
                shutil.rmtree(path, ignore_errors=True)
        _remove_empty(folder)


def _remove_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):  # not empty: another change of the model is under way
        folder.rmdir()


def prune(data: Path, user_id: str, stands: Callable[[str, int], bool]) -> None:
    """Take away the vectors of blocks that are gone or have changed."""
    for path in (user_folder(data, user_id) / FOLDER).glob("*/*@*"):
        block_id, _, seq = path.name.partition("@")
        if not (seq.isdigit() and stands(block_id, int(seq))):
            path.unlink(missing_ok=True)
