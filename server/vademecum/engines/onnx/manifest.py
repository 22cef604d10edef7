"""A model is its manifest: what it is made of and how text becomes a vector. Its hash names the space of the vectors.

Two vectors may be compared only if their `model` is the same hash. So everything that can change a vector, or which
text it stands for, is part of the hash; thresholds, which only judge vectors, are not.
"""

from __future__ import annotations

import hashlib
import os
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Literal

import msgspec

from vademecum.engines.onnx.errors import ModelError
from vademecum.model.documents.chunking import BUDGET, CHUNKER, SIZE
from vademecum.model.text.normalization import NORMALISER

MANIFEST = "manifest.json"
GRAPH = "model.onnx"
TOKENIZER = "tokenizer.json"
FORMAT = 1
Precision = Literal["float16", "float32"]
PRECISION: Precision = "float16"


class File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file of a model, relative to its folder."""

    path: str
    bytes: int
    sha256: str


class Prefixes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What goes in front of a text before it is encoded."""

    query: str = ""
    passage: str = ""


class Chunker(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int = CHUNKER
    size: int = SIZE
    budget: int = BUDGET
    overlap: int = 0
    unit: Literal["utf16"] = "utf16"


class Thresholds(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Cosines that mean something for this model, and the data they were fitted on."""

    fitted_on: str
    same_memory: float | None = None
    relevant: float | None = None


class Manifest(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, dict=True
):
    """Everything that makes this model this model.

    `precision`: how the large weights lie in the file. Computing and vectors are float32 in either.
    """

    format: int = FORMAT
    id: str
    revision: str
    source: str
    licence: str
    files: tuple[File, ...]
    dims: int
    layers: int
    max_tokens: int
    precision: Precision = PRECISION
    pooling: Literal["mean"] = "mean"
    normalise: Literal["l2"] = "l2"
    inputs: tuple[str, ...] = ("input_ids", "attention_mask")
    output: str = "embedding"
    prefixes: Prefixes = Prefixes()
    truncation: Literal["keep [SEP]"] = "keep [SEP]"
    chunker: Chunker = Chunker()
    normaliser: int = NORMALISER
    thresholds: Thresholds | None = None

    @cached_property
    def hash(self) -> str:
        """64 hexadecimal digits that name the space of this model's vectors."""
        fields = msgspec.to_builtins(self)
        del fields["thresholds"]
        return hashlib.sha256(msgspec.json.encode(fields, order="sorted")).hexdigest()

    def file(self, path: str) -> File:
        return next(file for file in self.files if file.path == path)


# Made here: two threads that are the first to decode a type, both at once, can crash the process in msgspec.
_decoder = msgspec.json.Decoder(Manifest)


def load(folder: Path) -> Manifest:
    """The manifest in `folder`. Refused if it is of another format, or of another way to cut and spell text."""
    path = folder / MANIFEST
    try:
        manifest = _decoder.decode(path.read_bytes())
    except FileNotFoundError:
        raise ModelError(f"There is no model in {folder}. `vademecum models pull` puts one there.") from None
    except (OSError, msgspec.DecodeError) as error:
        raise ModelError(
            f"{path} cannot be read: {error}. Remove {folder} and prepare the model again."
        ) from error
    _check(manifest, path)
    return manifest


def _check(manifest: Manifest, path: Path) -> None:
    wanted = {"format": FORMAT, "normaliser": NORMALISER, "chunker": Chunker()}
    for name, value in wanted.items():
        if (found := getattr(manifest, name)) != value:
            raise ModelError(
                f"{path} was made for {name} {found}, this program has {value}. "
                "Prepare the model again; its vectors are then made anew in the background."
            )
    named = {file.path for file in manifest.files}
    if missing := {GRAPH, TOKENIZER} - named:
        raise ModelError(f"{path} does not list {', '.join(sorted(missing))}.")
    for name in named:
        pure = PurePosixPath(name)
        if pure.is_absolute() or ".." in pure.parts or "\\" in name:
            raise ModelError(f"{path} lists {name!r}, which is outside the model's folder.")


def save(manifest: Manifest, folder: Path) -> None:
    """Write the manifest and put it on the disk: it is the last file of a model to be written."""
    text = msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"
    with (folder / MANIFEST).open("wb") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def verify(folder: Path, *, deep: bool = True) -> Manifest:
    """The manifest, after a look at every file it names: its length and, if `deep`, its SHA-256."""
    manifest = load(folder)
    for file in manifest.files:
        path = folder / file.path
        try:
            size = path.stat().st_size
        except OSError as error:
            raise ModelError(f"{path} is missing: {error.strerror}. Prepare the model again.") from error
        if size != file.bytes:
            raise ModelError(
                f"{path} has {size} bytes, its manifest says {file.bytes}. Prepare the model again."
            )
        if deep and sha256(path) != file.sha256:
            raise ModelError(
                f"{path} is not the file its manifest names: its SHA-256 differs. Prepare the model again.",
                code="MODEL_CHECKSUM",
            )
    return manifest


def describe(path: Path) -> File:
    """The manifest's entry for a file."""
    return File(path=path.name, bytes=path.stat().st_size, sha256=sha256(path))


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
