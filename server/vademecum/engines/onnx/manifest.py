"""Read, write and verify model manifests. A manifest lists a model's files and defines how text becomes a vector.

The hash of a manifest identifies the vector space: two vectors are comparable only if their `model` is the same hash.
So the hash covers everything that changes a vector or the text it represents. The hash leaves out the fitted values,
which do not change vectors.
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
from vademecum.model.text.fusion import TURN_VECTOR_WEIGHT, VECTOR_WEIGHT
from vademecum.model.text.normalization import NORMALIZER_VERSION

MANIFEST = "manifest.json"
GRAPH = "model.onnx"
TOKENIZER = "tokenizer.json"
FORMAT = 1
Precision = Literal["float16", "float32"]
PRECISION: Precision = "float16"


class File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file of a model. `path` is relative to the model's folder."""

    path: str
    bytes: int
    sha256: str


class Prefixes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The text to prepend to a query or a passage before tokenization."""

    query: str = ""
    passage: str = ""


class Chunker(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int = CHUNKER
    size: int = SIZE
    budget: int = BUDGET
    overlap: int = 0
    unit: Literal["utf16"] = "utf16"


class LanguageNdcg(msgspec.Struct, frozen=True):
    """The nDCG@10 of keyword search and of vector search in the passages of one language."""

    language: str
    words: float
    meaning: float


class FittedValues(msgspec.Struct, frozen=True, rename="camel"):
    """Values that depend on the distribution of a model's cosines, and the data and figures on which they are based.

    `same_memory`: the minimum cosine of two memories that say the same; None: only exact repetitions count. `same_found`
    and `others_found`: the shares of the English paraphrases and of the English pairs of another meaning that reach it,
    before the guards of deduplication, which must refuse all of the latter.
    `chunk_weight`, `turn_weight`: the weight of vector search relative to keyword search, for passages of documents and
    for turns of conversations; 0: vectors find nothing more. `chunk_ndcg`, `turn_ndcg`: nDCG@10 of hybrid search with
    this weight. `chunk_ndcg_words`, `turn_ndcg_words`: nDCG@10 with weight 0.
    `languages`: the languages of the fit data in which vectors find more than keywords (`language_ndcg`). With "zh" the
    model counts as multilingual.
    """

    fitted_on: str
    same_memory: float | None = None
    chunk_weight: float = VECTOR_WEIGHT
    turn_weight: float = TURN_VECTOR_WEIGHT
    languages: tuple[str, ...] = ("en",)
    chunk_ndcg: float = 0.0
    turn_ndcg: float = 0.0
    chunk_ndcg_words: float = 0.0
    turn_ndcg_words: float = 0.0
    same_found: float = 0.0
    others_found: float = 0.0
    language_ndcg: tuple[LanguageNdcg, ...] = ()


class Manifest(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, dict=True
):
    """The complete description of a model.

    `precision` is the number format of the stored matrices. Computation and vectors are float32 with either format.
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
    normaliser: int = NORMALIZER_VERSION
    # For a supported model, the newer values of `pinned_models` are used.
    fitted: FittedValues | None = msgspec.field(default=None, name="thresholds")

    @cached_property
    def hash(self) -> str:
        """Return the 64 hexadecimal digits that identify this model's vector space."""
        fields = msgspec.to_builtins(self)  # with the keys of the JSON
        del fields["thresholds"]
        return hashlib.sha256(msgspec.json.encode(fields, order="sorted")).hexdigest()

    def file(self, path: str) -> File:
        return next(file for file in self.files if file.path == path)


# Created at import, because two threads that decode a type for the first time simultaneously can crash msgspec.
_decoder = msgspec.json.Decoder(Manifest)


def load(folder: Path) -> Manifest:
    """Return the manifest in `folder`. Raises ModelError if its format, chunker or normalizer is not the current one."""
    path = folder / MANIFEST
    try:
        manifest = _decoder.decode(path.read_bytes())
    except FileNotFoundError:
        raise ModelError(
            f"There is no model in {folder}. Run `vademecum models pull` to install one."
        ) from None
    except (OSError, msgspec.DecodeError) as error:
        raise ModelError(
            f"{path} cannot be read: {error}. Remove {folder} and prepare the model again."
        ) from error
    _check(manifest, path)
    return manifest


def _check(manifest: Manifest, path: Path) -> None:
    expected = {"format": FORMAT, "normaliser": NORMALIZER_VERSION, "chunker": Chunker()}
    for name, value in expected.items():
        if (actual := getattr(manifest, name)) != value:
            raise ModelError(
                f"{path} was made for {name} {actual}, but this program uses {value}. "
                "Prepare the model again; its vectors are then recomputed in the background."
            )
    listed = {file.path for file in manifest.files}
    if missing := {GRAPH, TOKENIZER} - listed:
        raise ModelError(f"{path} does not list {', '.join(sorted(missing))}.")
    for name in listed:
        pure = PurePosixPath(name)
        if pure.is_absolute() or ".." in pure.parts or "\\" in name:
            raise ModelError(f"{path} lists {name!r}, which is outside the model's folder.")


def save(manifest: Manifest, folder: Path) -> None:
    """Write the manifest and flush it to disk. Call this after all other files of the model have been written."""
    text = msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"
    new = folder / f"{MANIFEST}.new"
    with new.open("wb") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.replace(folder / MANIFEST)  # a running server may read the file at any time


def verify(folder: Path, *, deep: bool = True) -> Manifest:
    """Verify each file's size and, if `deep`, its SHA-256. Return the manifest. Raises ModelError."""
    manifest = load(folder)
    for file in manifest.files:
        path = folder / file.path
        try:
            size = path.stat().st_size
        except OSError as error:
            raise ModelError(f"{path} is missing: {error.strerror}. Prepare the model again.") from error
        if size != file.bytes:
            raise ModelError(
                f"{path} has {size} bytes, but its manifest declares {file.bytes}. Prepare the model again."
            )
        if deep and sha256(path) != file.sha256:
            raise ModelError(
                f"{path} is not the file its manifest names: its SHA-256 differs. Prepare the model again.",
                code="MODEL_CHECKSUM",
            )
    return manifest


def describe(path: Path) -> File:
    """Return the manifest's entry for a file."""
    return File(path=path.name, bytes=path.stat().st_size, sha256=sha256(path))


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
