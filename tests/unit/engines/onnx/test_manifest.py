"""A manifest identifies a vector space and describes the files on disk; an error names the file that differs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import msgspec
import pytest

from vademecum.engines.onnx import manifest as manifests
from vademecum.engines.onnx import pinned_models
from vademecum.engines.onnx.errors import ModelError
from vademecum.engines.onnx.manifest import Chunker, File, FittedValues, Manifest, Prefixes

PLAIN = Manifest(
    id="m",
    revision="r",
    source="https://example.org/m",
    licence="MIT",
    files=(File("model.onnx", 3, "0" * 64), File("tokenizer.json", 3, "1" * 64)),
    dims=384,
    layers=12,
    max_tokens=512,
)


@pytest.fixture
def copy(tiny_model: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_model, tmp_path / "model"))


def test_hash_covers_only_what_changes_vectors() -> None:
    assert len(PLAIN.hash) == 64
    assert PLAIN.hash == msgspec.json.decode(msgspec.json.encode(PLAIN), type=Manifest).hash
    judged = msgspec.structs.replace(PLAIN, fitted=FittedValues(fitted_on="pairs", same_memory=0.91))
    assert judged.hash == PLAIN.hash
    for change in (
        {"dims": 385},
        {"prefixes": Prefixes(query="query: ")},
        {"normaliser": 2},
        {"chunker": Chunker(version=2)},
        {"files": PLAIN.files[:1]},
        {"revision": "s"},
    ):
        assert msgspec.structs.replace(PLAIN, **change).hash != PLAIN.hash


def test_saved_manifest_loads_unchanged(tmp_path: Path) -> None:
    manifests.save(PLAIN, tmp_path)
    assert manifests.load(tmp_path) == PLAIN
    assert manifests.load(tmp_path).hash == PLAIN.hash
    assert json.loads((tmp_path / "manifest.json").read_text())["maxTokens"] == 512


def test_verify_reports_changed_and_missing_files(copy: Path) -> None:
    manifest = manifests.verify(copy)
    assert manifest.file("model.onnx").bytes == (copy / "model.onnx").stat().st_size
    data = bytearray((copy / "model.onnx").read_bytes())
    data[len(data) // 2] ^= 1
    (copy / "model.onnx").write_bytes(data)
    manifests.verify(copy, deep=False)
    with pytest.raises(ModelError, match="SHA-256 differs") as error:
        manifests.verify(copy)
    assert error.value.code == "MODEL_CHECKSUM"
    (copy / "model.onnx").write_bytes(data[:-1])
    with pytest.raises(ModelError, match="its manifest declares"):
        manifests.verify(copy, deep=False)
    (copy / "model.onnx").unlink()
    with pytest.raises(ModelError, match="is missing"):
        manifests.verify(copy, deep=False)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"format": 2}, "made for format 2"),
        ({"normaliser": 9}, "made for normaliser 9"),
        ({"chunker": {"version": 9}}, "made for chunker"),
        ({"files": []}, "does not list"),
        ({"surprise": 1}, "cannot be read"),
        ({"pooling": "cls"}, "cannot be read"),
        ({"dims": "many"}, "cannot be read"),
    ],
)
def test_unsupported_manifest_is_refused(copy: Path, change: dict[str, object], says: str) -> None:
    path = copy / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ModelError, match=says):
        manifests.load(copy)


@pytest.mark.parametrize("name", ["../model.onnx", "/etc/passwd", "a\\b"])
def test_file_outside_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    manifests.save(msgspec.structs.replace(PLAIN, files=(*PLAIN.files, File(name, 1, "2" * 64))), tmp_path)
    with pytest.raises(ModelError, match="outside"):
        manifests.load(tmp_path)


def test_missing_model_error_names_the_install_command(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="models pull"):
        manifests.load(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(ModelError, match="cannot be read"):
        manifests.load(tmp_path)


def test_pinned_values_replace_those_of_an_older_manifest() -> None:
    minilm = pinned_models.ALL_MINILM
    installed = msgspec.structs.replace(PLAIN, id=minilm.id, revision=minilm.revision)
    older = FittedValues(fitted_on="an earlier version", same_memory=0.5)
    assert minilm.fitted is not None
    assert pinned_models.fitted_values(installed) == minilm.fitted
    assert pinned_models.fitted_values(msgspec.structs.replace(installed, fitted=older)) == minilm.fitted
    other = msgspec.structs.replace(installed, revision="another")
    assert pinned_models.fitted_values(other) is None
    assert pinned_models.fitted_values(msgspec.structs.replace(other, fitted=older)) == older


def test_manifest_of_an_earlier_version_is_read(copy: Path) -> None:
    path = copy / "manifest.json"
    stored = msgspec.json.decode(path.read_bytes())
    stored["thresholds"] = {"fittedOn": "STS-B", "sameMemory": 0.92, "relevant": None}
    path.write_bytes(msgspec.json.encode(stored))
    fitted = manifests.load(copy).fitted
    assert fitted is not None and (fitted.same_memory, fitted.chunk_weight) == (0.92, 1.0)
