"""The ONNX graph equals an independent BERT implementation, alone and in a batch, and is built reproducibly."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from numpy.typing import NDArray
from safetensors.numpy import save_file

from unit.engines.onnx import numpy_bert
from vademecum.engines.onnx.bert_graph import (
    BertConfig,
    build_float32_graph,
    build_graph,
    read_config,
    read_weights,
)
from vademecum.engines.onnx.errors import ModelError
from vademecum.engines.onnx.manifest import GRAPH, load, sha256
from vademecum.engines.onnx.pinned_models import PinnedModel

MINILM_GRAPH = "6a179ce4fbfa3869528442a455b650aa3b04b60f5d5daf0b664f3acbd333385b"
MINILM_SPACE = "33b0b6e870a765bbff23177a623d487a2c55bc1575787ff13770a4aece4a02cf"


def run(session: ort.InferenceSession, rows: list[list[int]]) -> NDArray[np.float32]:
    longest = max(map(len, rows))
    ids = np.array([row + [0] * (longest - len(row)) for row in rows], dtype=np.int64)
    mask = np.array([[1] * len(row) + [0] * (longest - len(row)) for row in rows], dtype=np.int64)
    vectors: NDArray[np.float32] = session.run(None, {"input_ids": ids, "attention_mask": mask})[0]
    return vectors


def some_ids(shape: BertConfig, *lengths: int) -> list[list[int]]:
    rng = np.random.default_rng(7)
    return [[int(token) for token in rng.integers(0, shape.vocab_size, length)] for length in lengths]


@pytest.fixture(scope="module")
def tiny_graph(tiny: tuple[PinnedModel, Path]) -> tuple[BertConfig, dict[str, NDArray[np.float32]], bytes]:
    shape = read_config(tiny[1] / "config.json")
    weights = read_weights(tiny[1] / "model.safetensors")
    return shape, weights, build_graph(shape, weights)


def test_graph_computes_the_vectors_of_the_reference(
    tiny_graph: tuple[BertConfig, dict[str, NDArray[np.float32]], bytes],
) -> None:
    shape, weights, graph = tiny_graph
    published = ort.InferenceSession(build_float32_graph(shape, weights).SerializeToString())
    stored = ort.InferenceSession(graph)
    for ids in some_ids(shape, 1, 2, 3, 17, 64):
        expected = numpy_bert.forward(shape, weights, ids)
        assert np.abs(run(published, [ids])[0] - expected).max() < 1e-5
        assert run(stored, [ids])[0] @ expected > 0.99999


def test_vector_does_not_depend_on_the_batch(
    tiny_graph: tuple[BertConfig, dict[str, NDArray[np.float32]], bytes],
) -> None:
    shape, _, graph = tiny_graph
    session = ort.InferenceSession(graph)
    rows = some_ids(shape, 2, 5, 9, 33, 64)
    together = run(session, rows)
    for row, vector in zip(rows, together, strict=True):
        assert np.abs(run(session, [row])[0] - vector).max() < 1e-5


def test_graph_with_e5_shape_equals_the_reference() -> None:
    shape = BertConfig("bert", 384, 12, 12, 1536, vocab_size=200, max_position_embeddings=512)
    weights = {name: value * np.float32(0.3) for name, value in numpy_bert.random_weights(shape).items()}
    session = ort.InferenceSession(build_graph(shape, weights))
    for ids in some_ids(shape, 5, 40):
        assert run(session, [ids])[0] @ numpy_bert.forward(shape, weights, ids) > 0.9999


def test_graph_is_valid_onnx_without_custom_operators(
    tiny_graph: tuple[BertConfig, dict[str, NDArray[np.float32]], bytes],
) -> None:
    model = onnx.load_from_string(tiny_graph[2])
    onnx.checker.check_model(model, full_check=True)
    assert [(item.domain, item.version) for item in model.opset_import] == [("", 17)]
    assert [item.name for item in model.graph.input] == ["input_ids", "attention_mask"]
    assert [item.name for item in model.graph.output] == ["embedding"]


def test_same_weights_give_the_same_graph_bytes(
    tiny_graph: tuple[BertConfig, dict[str, NDArray[np.float32]], bytes],
) -> None:
    shape, weights, graph = tiny_graph
    assert build_graph(shape, dict(reversed(weights.items()))) == graph
    prefixed = {name: weight + 0 for name, weight in weights.items()}
    assert build_graph(shape, prefixed) == graph


def test_all_minilm_equals_the_reference(minilm: Path, minilm_source: Path) -> None:
    shape = read_config(minilm_source / "config.json")
    weights = read_weights(minilm_source / "model.safetensors")
    session = ort.InferenceSession(minilm / GRAPH)
    rows = [[101, 102], [101, 7592, 2088, 102], *some_ids(shape, 30, 200)]
    together = run(session, rows)
    for row, vector in zip(rows, together, strict=True):
        expected = numpy_bert.forward(shape, weights, row)
        assert run(session, [row])[0] @ expected > 0.999999
        assert vector @ expected > 0.999999


def test_all_minilm_has_the_pinned_hashes(minilm: Path) -> None:
    assert sha256(minilm / GRAPH) == MINILM_GRAPH, (
        "the graph has changed, so stored vectors no longer belong to it"
    )
    assert load(minilm).hash == MINILM_SPACE, (
        "the hash has changed, so servers will recompute every stored vector"
    )


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"model_type": "roberta"}, "model_type is 'roberta'"),
        ({"hidden_act": "relu"}, "hidden_act is 'relu'"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type"),
        ({"num_attention_heads": 5}, "cannot be divided"),
        ({"hidden_size": "many"}, "not the configuration"),
    ],
)
def test_unsupported_configuration_is_refused(tmp_path: Path, changes: dict[str, object], says: str) -> None:
    (tmp_path / "config.json").write_text(json.dumps(numpy_bert.config(**changes)))
    with pytest.raises(ModelError, match=says):
        read_config(tmp_path / "config.json")


def test_error_names_the_missing_or_misshapen_weight(
    tiny_graph: tuple[BertConfig, dict[str, NDArray[np.float32]], bytes], tmp_path: Path
) -> None:
    shape, weights, _ = tiny_graph
    name = "encoder.layer.1.output.dense.bias"
    with pytest.raises(ModelError, match=f"no {name}"):
        build_graph(shape, {key: value for key, value in weights.items() if key != name})
    with pytest.raises(ModelError, match="configuration requires"):
        build_graph(shape, weights | {name: np.zeros(3, dtype=np.float32)})
    (tmp_path / "model.safetensors").write_bytes(b"not tensors")
    with pytest.raises(ModelError, match="not a readable safetensors"):
        read_weights(tmp_path / "model.safetensors")


def test_prefix_of_weight_names_is_ignored(tiny: tuple[PinnedModel, Path], tmp_path: Path) -> None:
    weights = read_weights(tiny[1] / "model.safetensors")
    save_file({f"bert.{name}": value for name, value in weights.items()}, tmp_path / "model.safetensors")
    again = read_weights(tmp_path / "model.safetensors")
    assert again.keys() == weights.keys()
    assert all((again[name] == weights[name]).all() for name in weights)
