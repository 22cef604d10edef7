"""Ways to store a model's weights, each a function from the float32 graph to another graph of standard operators.

A `Store` says of one weight what lies in the file and which nodes make the float32 of it. onnxruntime computes nodes
without inputs once, when it loads the file; those behind the look-up of words run on the rows that a text needs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from vademecum.engines.onnx.float16_weights import store_as_float16

BLOCK = 32  # weights that share a scale


class Pieces(NamedTuple):
    tensors: list[TensorProto]
    nodes: list[NodeProto]


Store = Callable[[str, NDArray[np.float32]], Pieces]
Way = Callable[[ModelProto], ModelProto]


def _tensor(name: str, value: NDArray[np.generic]) -> TensorProto:
    return numpy_helper.from_array(np.ascontiguousarray(value), name)


def _widen(source: str, name: str) -> NodeProto:
    return helper.make_node("Cast", [source], [name], name=f"{name}/Cast", to=TensorProto.FLOAT)


def half(name: str, value: NDArray[np.float32]) -> Pieces:
    return Pieces([_tensor(f"{name}.half", value.astype(np.float16))], [_widen(f"{name}.half", name)])


def blocks(name: str, value: NDArray[np.float32]) -> Pieces:
    """Bytes, each block of 32 inputs of an output with a scale of its own."""
    inner, outer = value.shape
    parts = value.reshape(inner // BLOCK, BLOCK, outer)
    scale = np.abs(parts).max(axis=1, keepdims=True) / 127
    bytes_ = np.round(parts / scale).astype(np.int8)
    tensors = [
        _tensor(f"{name}.bytes", bytes_),
        _tensor(f"{name}.scale", scale),
        _tensor(f"{name}.shape", np.array(value.shape, dtype=np.int64)),
    ]
    nodes = [
        _widen(f"{name}.bytes", f"{name}.wide"),
        helper.make_node("Mul", [f"{name}.wide", f"{name}.scale"], [f"{name}.scaled"]),
        helper.make_node("Reshape", [f"{name}.scaled", f"{name}.shape"], [name]),
    ]
    return Pieces(tensors, nodes)


def stored(model: ModelProto, matrix: Store | None, table: Way | None) -> ModelProto:
    """`model` with its large weights as `matrix` stores them, and its words as `table` does. Changes it in place."""
    if table is not None:
        table(model)
    if matrix is not None:
        words = {node.input[0] for node in model.graph.node if node.op_type == "Gather"}
        left: list[TensorProto] = []
        nodes: list[NodeProto] = []
        for tensor in model.graph.initializer:
            if tensor.name in words or tensor.data_type != TensorProto.FLOAT or len(tensor.dims) != 2:
                left.append(tensor)
                continue
            pieces = matrix(tensor.name, numpy_helper.to_array(tensor))
            left += pieces.tensors
            nodes += pieces.nodes
        _replace(model, left, [*nodes, *model.graph.node])
    return model


def half_words(model: ModelProto) -> ModelProto:
    return _words(model, lambda name, value: ([_tensor(f"{name}.half", value.astype(np.float16))], []))


def byte_words(model: ModelProto) -> ModelProto:
    """A scale a word."""

    def rows(name: str, value: NDArray[np.float32]) -> tuple[list[TensorProto], list[str]]:
        scale = np.abs(value).max(axis=1, keepdims=True) / 127
        bytes_ = np.round(value / np.maximum(scale, 1e-12)).astype(np.int8)
        return [_tensor(f"{name}.bytes", bytes_)], [_tensor(f"{name}.scale", scale)]

    return _words(model, rows)


def _words(
    model: ModelProto, store: Callable[..., tuple[list[TensorProto], list[TensorProto]]]
) -> ModelProto:
    """Look up what is stored, then widen the rows found (and multiply by their scale, if there is one)."""
    [gather] = [node for node in model.graph.node if node.op_type == "Gather"]
    [table] = [tensor for tensor in model.graph.initializer if tensor.name == gather.input[0]]
    values, scales = store(table.name, numpy_helper.to_array(table))
    ids, out = gather.input[1], gather.output[0]
    wide = f"{out}.wide" if scales else out
    nodes = [
        helper.make_node("Gather", [values[0].name, ids], [f"{out}.found"], axis=0),
        _widen(f"{out}.found", wide),
    ]
    if scales:
        nodes += [
            helper.make_node("Gather", [scales[0].name, ids], [f"{out}.scale"], axis=0),
            helper.make_node("Mul", [wide, f"{out}.scale"], [out]),
        ]
    left = [tensor for tensor in model.graph.initializer if tensor.name != table.name]
    _replace(model, [*values, *scales, *left], [*nodes, *(n for n in model.graph.node if n is not gather)])
    return model


def _replace(model: ModelProto, tensors: list[TensorProto], nodes: list[NodeProto]) -> None:
    tensors, nodes = list(tensors), list(nodes)
    model.graph.ClearField("initializer")
    model.graph.ClearField("node")
    model.graph.initializer.extend(tensors)
    model.graph.node.extend(nodes)


WAYS: dict[str, Way] = {
    "float32": lambda model: model,
    "float16 (shipped)": store_as_float16,
    "float16 words only": lambda model: stored(model, None, half_words),
    "float16, words in bytes": lambda model: stored(model, half, byte_words),
    "words in bytes only": lambda model: stored(model, None, byte_words),
    "bytes in blocks of 32": lambda model: stored(model, blocks, byte_words),
}
