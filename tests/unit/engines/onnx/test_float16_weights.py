"""Weights are stored as float16: the file is half as large, while the computation and the vectors stay the same."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, numpy_helper
from tokenizers import Tokenizer

from unit.engines.onnx import numpy_bert
from vademecum.engines.onnx import bert_graph, float16_weights
from vademecum.engines.onnx.bert_graph import (
    BertConfig,
    build_float32_graph,
    build_graph,
    read_config,
    read_weights,
)
from vademecum.engines.onnx.errors import ModelError
from vademecum.engines.onnx.float16_weights import convert_to_float16
from vademecum.engines.onnx.manifest import GRAPH, TOKENIZER
from vademecum.engines.onnx.pinned_models import PinnedModel
from vademecum.model.text.normalization import prepare_for_tokenizer

CONFORMANCE = Path(__file__).parents[3] / "conformance"


@pytest.fixture(scope="module")
def tiny_source(tiny: tuple[PinnedModel, Path]) -> tuple[BertConfig, dict[str, np.ndarray]]:
    return read_config(tiny[1] / "config.json"), read_weights(tiny[1] / "model.safetensors")


def test_only_matrices_are_stored_as_float16(
    tiny_source: tuple[BertConfig, dict[str, np.ndarray]],
) -> None:
    shape, weights = tiny_source
    before = {t.name: numpy_helper.to_array(t) for t in build_float32_graph(shape, weights).graph.initializer}
    after = {
        t.name: numpy_helper.to_array(t)
        for t in onnx.load_from_string(build_graph(shape, weights)).graph.initializer
    }
    matrices = {name for name, value in before.items() if value.ndim == 2}
    assert len(matrices) == 2 + 6 * shape.num_hidden_layers
    assert after.keys() == {f"{name}.half" if name in matrices else name for name in before}
    for name, value in before.items():
        if name in matrices:
            assert after[f"{name}.half"].dtype == np.float16
            assert (after[f"{name}.half"] == value.astype(np.float16)).all()
        else:
            assert (after[name] == value).all()


def test_graph_computes_only_in_float32(tiny_source: tuple[BertConfig, dict[str, np.ndarray]]) -> None:
    model = onnx.shape_inference.infer_shapes(onnx.load_from_string(build_graph(*tiny_source)))
    kinds = {v.name: v.type.tensor_type.elem_type for v in (*model.graph.value_info, *model.graph.output)}
    halves = {t.name for t in model.graph.initializer if t.data_type == TensorProto.FLOAT16}
    halves |= {name for name, kind in kinds.items() if kind == TensorProto.FLOAT16}
    readers = {node.op_type for node in model.graph.node if halves & set(node.input)}
    assert readers == {"Cast", "Gather"}, "float16 weights may only be looked up or cast"
    assert kinds["embedding"] == TensorProto.FLOAT


def test_converted_float32_graph_equals_new_graph(
    tiny_source: tuple[BertConfig, dict[str, np.ndarray]],
) -> None:
    now = build_graph(*tiny_source)
    assert convert_to_float16(build_float32_graph(*tiny_source).SerializeToString()) == now
    assert convert_to_float16(now) == now


def test_weight_too_large_for_float16_is_refused(
    tiny_source: tuple[BertConfig, dict[str, np.ndarray]],
) -> None:
    shape, weights = tiny_source
    name = "encoder.layer.0.output.dense.weight"
    large = weights[name].copy()
    large[0, 0] = 70_000
    with pytest.raises(ModelError, match=r"encoder\.layer\.0\.output\.dense\.weight .*float16 cannot hold"):
        build_graph(shape, weights | {name: large})


@pytest.mark.parametrize(
    ("word", "is_int8"),
    [
        ([0.4] + [0.39] * 255, True),
        ([0.0] * 256, True),
        ([100.0] + [0.39] * 255, False),  # 0.39 / (100 / 127) rounds to 0
        ([1e-6, -5e-7] * 128, False),  # as float16, the scale 1e-6 / 127 is 0
        ([1.1e-5] * 256, False),  # as float16, the scale is a third too large
    ],
    ids=["even numbers", "zeros", "one large number", "scale of zero", "inexact scale"],
)
@pytest.mark.filterwarnings("error")
def test_large_word_table_is_int8_unless_it_is_too_coarse_for_a_word(
    word: list[float], is_int8: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bert_graph, "LARGE_VOCABULARY", 120)
    monkeypatch.setattr(float16_weights, "ROWS_PER_SLICE", 50)
    shape = BertConfig("bert", 256, 2, 4, 64, vocab_size=120, max_position_embeddings=64)
    weights = numpy_bert.random_weights(shape)
    weights["embeddings.word_embeddings.weight"][70] = word
    graph = build_graph(shape, weights)
    kinds = {t.name: t.data_type for t in onnx.load_from_string(graph).graph.initializer}
    assert ("embeddings.words.int8" in kinds, "embeddings.words.half" in kinds) == (is_int8, not is_int8)
    ids = [70, 3, 119, 0]
    vector = ort.InferenceSession(graph).run(None, {"input_ids": [ids], "attention_mask": [[1] * 4]})[0][0]
    assert vector @ numpy_bert.forward(shape, weights, ids) >= 0.9999


@pytest.mark.filterwarnings("error")
def test_word_too_large_for_float16_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bert_graph, "LARGE_VOCABULARY", 120)
    shape = BertConfig("bert", 32, 1, 4, 64, vocab_size=120, max_position_embeddings=64)
    weights = numpy_bert.random_weights(shape)
    weights["embeddings.word_embeddings.weight"][7] = 1e7
    with pytest.raises(ModelError, match="float16 cannot hold"):
        build_graph(shape, weights)


def texts() -> list[str]:
    """Return the first 400 characters of each text in the shared cases of normalization and chunking.

    They include more than ten languages, emoji, tables, right-to-left text and combining marks.
    """
    cases = json.loads((CONFORMANCE / "chunking.json").read_text("utf-8"))
    found = [part["text"] for case in cases for part in case["parts"]]
    found += [case["text"] for case in json.loads((CONFORMANCE / "normalization.json").read_text("utf-8"))]
    whole = ((t if isinstance(t, str) else "".join(text * times for text, times in t))[:400] for t in found)
    # Leave out texts with lone surrogates, because the tokenizer refuses them.
    return [text for text in dict.fromkeys(whole) if text.encode(errors="replace").decode() == text]


def test_all_minilm_vectors_equal_those_of_float32(minilm: Path, minilm_source: Path) -> None:
    published = build_float32_graph(
        read_config(minilm_source / "config.json"), read_weights(minilm_source / "model.safetensors")
    ).SerializeToString()
    assert (minilm / GRAPH).stat().st_size < 0.51 * len(published)
    alone = ort.SessionOptions()
    alone.intra_op_num_threads = 1  # additional threads spin while waiting, on cores that other tests need
    sessions = [ort.InferenceSession(graph, alone) for graph in (published, minilm / GRAPH)]
    tokenizer = Tokenizer.from_file(str(minilm / TOKENIZER))
    tokenizer.enable_truncation(64)
    for text in texts()[:: 1 if os.environ.get("SOAK") else 12]:
        ids = np.array([tokenizer.encode(prepare_for_tokenizer(text)).ids], dtype=np.int64)
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        ours, theirs = (session.run(None, feed)[0][0].astype(np.float64) for session in sessions)
        assert ours @ theirs >= 0.9999, text[:50]
