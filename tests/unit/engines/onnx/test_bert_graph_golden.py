"""The ONNX graph computes the vectors of torch, which `make_golden.py` wrote to `golden/*.json` for seeded weights."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

from unit.engines.onnx import numpy_bert
from vademecum.engines.onnx.bert_graph import BertConfig, build_float32_graph, build_graph

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("name", ["small", "e5-shaped"])
def test_graph_computes_the_vectors_of_torch(name: str) -> None:
    golden = json.loads((GOLDEN / f"{name}.json").read_bytes())
    fields = {
        key: value
        for key, value in numpy_bert.config(**golden["changes"]).items()
        if key != "type_vocab_size"
    }
    shape = BertConfig(**fields)  # type: ignore[arg-type]
    weights = numpy_bert.random_weights(shape, golden["seed"])
    exact = ort.InferenceSession(build_float32_graph(shape, weights).SerializeToString())
    stored = ort.InferenceSession(build_graph(shape, weights))
    for ids, expected in zip(golden["ids"], golden["vectors"], strict=True):
        row = np.array([ids], dtype=np.int64)
        feed = {"input_ids": row, "attention_mask": np.ones_like(row)}
        vector, narrow = (session.run(None, feed)[0][0] for session in (exact, stored))
        assert len(vector) == len(narrow) == shape.hidden_size
        assert np.abs(vector - np.array(expected)).max() < 1e-5
        assert float(narrow @ np.array(expected)) > 0.9999, "float16 weights change the vector too much"
