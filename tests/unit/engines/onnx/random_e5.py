"""A model that equals the published e5-small-v2, except for its weights, which are random.

Its tokenizer is the published file, and its weights file has exactly the published length. A pull therefore does the
same as for the real model, except that two hashes differ.
"""

from __future__ import annotations

import functools
import hashlib
import json
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file
from tokenizers import Tokenizer

from unit.engines.onnx.numpy_bert import random_weights
from vademecum.engines.onnx.bert_graph import BertConfig
from vademecum.engines.onnx.pinned_models import E5_SMALL, PinnedModel, SourceFile

SHAPE = BertConfig(
    model_type="bert",
    hidden_size=384,
    num_hidden_layers=12,
    num_attention_heads=12,
    intermediate_size=1536,
    vocab_size=30522,
    max_position_embeddings=512,
)
CONFIG = {
    "_name_or_path": "intfloat/e5-small-v2",
    "architectures": ["BertModel"],
    "attention_probs_dropout_prob": 0.1,
    "classifier_dropout": None,
    "hidden_dropout_prob": 0.1,
    "initializer_range": 0.02,
    "pad_token_id": 0,
    "torch_dtype": "float32",
    "transformers_version": "4.29.2",
    "type_vocab_size": 2,
    "use_cache": True,
    **msgspec.to_builtins(SHAPE),
}
SPREAD = 0.1  # large enough that a wrong graph gives clearly different vectors


@functools.cache
def weights() -> dict[str, NDArray[np.float32]]:
    return random_weights(SHAPE, seed=12, spread=SPREAD)


def write_source(folder: Path, minilm: Path) -> PinnedModel:
    """Write the three files to `folder`. `minilm`: a folder with all-MiniLM's tokenizer (same vocabulary)."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIG, indent=2) + "\n")
    tokenizer = Tokenizer.from_file(str(minilm / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    (folder / "tokenizer.json").write_text(tokenizer.to_str(pretty=True), encoding="utf-8")
    size = SHAPE.hidden_size
    unused = {
        "embeddings.position_ids": np.arange(SHAPE.max_position_embeddings)[None],
        "pooler.dense.weight": np.zeros((size, size), np.float32),
        "pooler.dense.bias": np.zeros(size, np.float32),
    }
    save_file({**weights(), **unused}, folder / "model.safetensors", {"format": "pt"})
    described = msgspec.structs.replace(
        E5_SMALL, config=_source(folder / "config.json"), weights=_source(folder / "model.safetensors")
    )
    assert _source(folder / "tokenizer.json") == E5_SMALL.tokenizer, "the tokenizer is not the published file"
    assert described.weights.bytes == E5_SMALL.weights.bytes, (
        "the weights file does not have the published length"
    )
    return described


def _source(path: Path) -> SourceFile:
    data = path.read_bytes()
    return SourceFile(path.name, len(data), hashlib.sha256(data).hexdigest())
