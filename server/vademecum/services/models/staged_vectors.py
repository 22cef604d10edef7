"""Store staged vectors: the vectors of a new model that are computed but not yet written into the rows.

The folder `<user's folder>/reembed/<model's hash>/` exists as long as the user's rows have the vectors of the old
model. Each file contains the new vectors of one block. Its name consists of the block's id and the `seq` of the row
from which the vectors were computed. So the names show which blocks are done and which vectors belong to deleted
blocks. After a crash, at most one block is computed again. A file ends with a checksum.
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
INDEX = "index"  # the search index of the new vectors, until it replaces the old one
SWAPPING = "swapping"  # a file that exists while the rows change and until the index is replaced
CHECKSUM_LENGTH = 4  # in bytes


class StagedVectors:
    """The staged vectors of a user and a model. The methods block, so callers run them in a thread."""

    def __init__(self, data: Path, user_id: str, model: str) -> None:
        self.folder = user_folder(data, user_id) / FOLDER / model

    @property
    def index(self) -> Path:
        return self.folder.with_name(INDEX)

    def delete(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.rmtree(self.index, ignore_errors=True)
        _remove_if_empty(self.folder.parent)

    def seqs(self) -> dict[str, int]:
        """Map the id of each staged block to the `seq` of the row from which its vectors were computed."""
        seqs: dict[str, int] = {}
        for path in self.folder.glob("*@*"):  # yields nothing if the folder does not exist
            block_id, _, seq = path.name.partition("@")
            if seq.isdigit():
                seqs[block_id] = max(int(seq), seqs.get(block_id, 0))
        return seqs

    def put(self, block_id: str, seq: int, vectors: Vectors) -> None:
        """Write the staged vectors of a block atomically. Do not create a missing folder: the account was deleted."""
        path = self._path(block_id, seq)
        new = path.with_name(path.name + ".new")
        data = vectors.astype("<f4").tobytes()
        with new.open("wb") as file:
            file.write(data + _checksum(data))
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)

    def read(self, blocks: Mapping[str, int], dims: int) -> dict[str, Vectors]:
        """Map the ids of `blocks` to their staged vectors (n × dims). `blocks`: maps ids to the `seq` of their rows.

        A missing file is skipped. A damaged file is deleted, so that its vectors are computed again.
        """
        vectors: dict[str, Vectors] = {}
        for block_id, seq in blocks.items():
            path = self._path(block_id, seq)
            try:
                content = path.read_bytes()
            except FileNotFoundError:  # the block has just been deleted
                continue
            data = content[:-CHECKSUM_LENGTH]
            if len(data) % (4 * dims) or _checksum(data) != content[-CHECKSUM_LENGTH:]:
                path.unlink(missing_ok=True)
                continue
            vectors[block_id] = np.frombuffer(data, dtype="<f4").astype(np.float32).reshape(-1, dims)
        return vectors

    def begin_swap(self) -> None:
        """Mark the swap on disk, before any row gets a new vector."""
        (self.folder / SWAPPING).touch()
        sync_folder(self.folder)

    def cancel_swap(self) -> None:
        (self.folder / SWAPPING).unlink(missing_ok=True)

    def _path(self, block_id: str, seq: int) -> Path:
        return self.folder / f"{block_id}@{seq}"


def _checksum(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(CHECKSUM_LENGTH, "little")


def create_folders(data: Path, user_ids: Iterable[str], model: str) -> None:
    for user_id in user_ids:
        StagedVectors(data, user_id, model).folder.mkdir(parents=True, exist_ok=True)


def users_on_old_model(data: Path, model: str) -> set[str]:
    """Return the users whose rows still have the vectors of the model before `model`."""
    return {path.parents[1].name for path in (data / "users").glob(f"*/*/{FOLDER}/{model}")}


def users_being_swapped(data: Path, model: str) -> set[str]:
    """Return the users whose rows may already have the new vectors while their index still has the old ones."""
    return {path.parents[2].name for path in (data / "users").glob(f"*/*/{FOLDER}/{model}/{SWAPPING}")}


def delete_others(data: Path, model: str | None) -> None:
    """Delete the staged vectors of other models, and empty folders."""
    for folder in (data / "users").glob(f"*/*/{FOLDER}"):
        for path in folder.glob("*"):  # yields nothing if the folder does not exist
            if path.name != model:
                shutil.rmtree(path, ignore_errors=True)
        _remove_if_empty(folder)


def _remove_if_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):  # the folder is not empty, because another change is in progress
        folder.rmdir()


def prune(data: Path, user_id: str, is_unchanged: Callable[[str, int], bool]) -> None:
    """Delete the staged vectors of blocks that were deleted or changed."""
    for path in (user_folder(data, user_id) / FOLDER).glob("*/*@*"):
        block_id, _, seq = path.name.partition("@")
        if not (seq.isdigit() and is_unchanged(block_id, int(seq))):
            path.unlink(missing_ok=True)
