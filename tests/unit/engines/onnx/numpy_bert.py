"""An independent BERT implementation in numpy with float64, and small random models to test with."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file
from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors
from tokenizers.models import WordPiece

from vademecum.engines.onnx.bert_graph import BertConfig
from vademecum.engines.onnx.manifest import FittedValues, Prefixes
from vademecum.engines.onnx.pinned_models import PinnedModel, SourceFile

Float = NDArray[np.float64]
# Interpolating erf between close points is exact to nine digits and a hundred times faster than computing it.
_PLACES = np.linspace(-6, 6, 120_001)
_ERF = np.array([math.erf(place) for place in _PLACES])


def _erf(value: Float) -> Float:
    result: Float = np.interp(value, _PLACES, _ERF)
    return result


def config(**changes: object) -> dict[str, object]:
    base: dict[str, object] = {
        "model_type": "bert",
        "hidden_size": 32,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "intermediate_size": 96,
        "vocab_size": 120,
        "max_position_embeddings": 64,
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-12,
        "type_vocab_size": 2,
    }
    return base | changes


def random_weights(shape: BertConfig, seed: int = 0, spread: float = 0.3) -> dict[str, NDArray[np.float32]]:
    rng = np.random.default_rng(seed)
    size, inner = shape.hidden_size, shape.intermediate_size

    def some(*dims: int) -> NDArray[np.float32]:
        value: NDArray[np.float32] = (rng.standard_normal(dims) * spread).astype(np.float32)
        return value

    weights = {
        "embeddings.word_embeddings.weight": some(shape.vocab_size, size),
        "embeddings.position_embeddings.weight": some(shape.max_position_embeddings, size),
        "embeddings.token_type_embeddings.weight": some(2, size),
    }
    norms = ["embeddings.LayerNorm"]
    for layer in range(shape.num_hidden_layers):
        name = f"encoder.layer.{layer}"
        norms += [f"{name}.attention.output.LayerNorm", f"{name}.output.LayerNorm"]
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            weights[f"{name}.attention.{part}.weight"] = some(size, size)
            weights[f"{name}.attention.{part}.bias"] = some(size)
        weights[f"{name}.intermediate.dense.weight"] = some(inner, size)
        weights[f"{name}.intermediate.dense.bias"] = some(inner)
        weights[f"{name}.output.dense.weight"] = some(size, inner)
        weights[f"{name}.output.dense.bias"] = some(size)
    for name in norms:
        weights[f"{name}.weight"] = 1 + some(size)
        weights[f"{name}.bias"] = some(size)
    return weights


def forward(shape: BertConfig, weights: dict[str, NDArray[np.float32]], ids: list[int]) -> Float:
    """Return the embedding of one text: the mean of the last layer, scaled to length 1."""

    def get(name: str) -> Float:
        value: Float = weights[name].astype(np.float64, copy=False)
        return value

    def dense(name: str, value: Float) -> Float:
        result: Float = value @ get(f"{name}.weight").T + get(f"{name}.bias")
        return result

    def norm(name: str, value: Float) -> Float:
        centred = value - value.mean(-1, keepdims=True)
        deviation = np.sqrt((centred**2).mean(-1, keepdims=True) + shape.layer_norm_eps)
        result: Float = centred / deviation * get(f"{name}.weight") + get(f"{name}.bias")
        return result

    heads = shape.num_attention_heads
    width = shape.hidden_size // heads
    hidden = weights["embeddings.word_embeddings.weight"][ids].astype(np.float64)
    hidden = hidden + get("embeddings.position_embeddings.weight")[: len(ids)]
    hidden = norm("embeddings.LayerNorm", hidden + get("embeddings.token_type_embeddings.weight")[0])
    for layer in range(shape.num_hidden_layers):
        name = f"encoder.layer.{layer}"
        query, key, value = (
            dense(f"{name}.attention.self.{part}", hidden).reshape(len(ids), heads, width).swapaxes(0, 1)
            for part in ("query", "key", "value")
        )
        scores = query @ key.swapaxes(1, 2) / math.sqrt(width)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = (shares / shares.sum(-1, keepdims=True) @ value).swapaxes(0, 1).reshape(len(ids), -1)
        hidden = norm(
            f"{name}.attention.output.LayerNorm", dense(f"{name}.attention.output.dense", mixed) + hidden
        )
        wide = dense(f"{name}.intermediate.dense", hidden)
        wide = 0.5 * wide * (1 + _erf(wide / math.sqrt(2)))
        hidden = norm(f"{name}.output.LayerNorm", dense(f"{name}.output.dense", wide) + hidden)
    mean = hidden.mean(0)
    result: Float = mean / np.linalg.norm(mean)
    return result


def small_tokenizer(length: int = 128) -> bytes:
    """Return a WordPiece tokenizer of letters, with truncation and padding as in all-MiniLM's published file."""
    letters = [chr(code) for code in range(0x21, 0x7F) if not chr(code).isupper()]
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, "##a", "##e", "query", "passage", "ab"]
    tokenizer = Tokenizer(WordPiece({token: at for at, token in enumerate(tokens)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.enable_truncation(length)
    tokenizer.enable_padding(length=length)
    return tokenizer.to_str().encode()


def write_source(folder: Path, name: str = "tiny-e5", seed: int = 0, **changes: object) -> PinnedModel:
    """Write the three files of a fictional published model to `folder`, and return its pinned data."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config(**changes)))
    shape = BertConfig(**{key: value for key, value in config(**changes).items() if key != "type_vocab_size"})  # type: ignore[arg-type]
    save_file(random_weights(shape, seed), folder / "model.safetensors")
    (folder / "tokenizer.json").write_bytes(small_tokenizer())

    def source(path: str) -> SourceFile:
        data = (folder / path).read_bytes()
        return SourceFile(path, len(data), hashlib.sha256(data).hexdigest())

    return PinnedModel(
        id=name,
        repo="someone/tiny-e5",
        revision="0123456789abcdef",
        licence="MIT",
        config=source("config.json"),
        tokenizer=source("tokenizer.json"),
        weights=source("model.safetensors"),
        prefixes=Prefixes(query="query: ", passage="passage: "),
        max_tokens=48,
        fitted=FittedValues(fitted_on="nothing"),
    )
