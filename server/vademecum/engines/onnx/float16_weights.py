"""Store a model's matrices as float16, which halves the file. All computation stays in float32.

A Cast node converts each matrix to float32. The node's only input is constant, so onnxruntime folds it when it loads the
file. Word embeddings are converted after the lookup, so that only the rows of a text are converted and the table
needs half the memory. Norms and biases stay float32, because they are small.

The word table of a multilingual model is most of the file, so it is stored as int8 with one scale per word.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, load_model_from_string, numpy_helper

from vademecum.engines.onnx.errors import ModelError

# The largest error of a word's int8 vector, relative to the length of its float32 vector. If one word is worse, the table
# stays float16. Without an error in the length, this is a cosine of 0.999.
MAX_ROW_ERROR = 0.045
ROWS_PER_SLICE = 8192


def convert_to_float16(graph: bytes) -> bytes:
    """Convert a float32 ONNX file to float16 and return the bytes that the current builder writes. Raises ModelError."""
    model: bytes = store_as_float16(load_model_from_string(graph)).SerializeToString(deterministic=True)
    return model


def store_as_float16(model: ModelProto) -> ModelProto:
    """Convert the float32 matrices of `model` to float16 in place and return it. Raises ModelError on overflow."""
    tensors = [_half(t) if _is_matrix(t) else t for t in model.graph.initializer]
    matrices = [t.name for t in model.graph.initializer if _is_matrix(t)]
    look_ups = [n for n in model.graph.node if n.op_type == "Gather" and n.input[0] in matrices]
    gathered = {node.input[0] for node in look_ups}
    nodes = [_widen(f"{name}.half", name) for name in matrices if name not in gathered]
    for node in model.graph.node:
        nodes += _look_up(node) if node in look_ups else [node]
    del model.graph.initializer[:], model.graph.node[:]
    model.graph.initializer.extend(tensors)
    model.graph.node.extend(nodes)
    return model


def store_words_as_int8(model: ModelProto) -> None:
    """Convert the table of word embeddings in place. Change nothing if int8 is too coarse for a word.

    The scales are a matrix too, which `store_as_float16` converts.
    """
    [look_up] = [node for node in model.graph.node if node.op_type == "Gather"]
    [table] = [tensor for tensor in model.graph.initializer if tensor.name == look_up.input[0]]
    words = numpy_helper.to_array(table)
    rounded = np.empty(words.shape, np.int8)
    scales = np.empty((len(words), 1), "<f4")
    for start in range(0, len(words), ROWS_PER_SLICE):  # slices, because temporary arrays need much memory
        rows = slice(start, start + ROWS_PER_SLICE)
        rounded[rows], scales[rows] = _round_to_int8(words[rows])
        with np.errstate(invalid="ignore"):  # an infinite scale times zero
            errors = np.linalg.norm(words[rows] - rounded[rows] * scales[rows], axis=1)
        if not (errors <= MAX_ROW_ERROR * np.linalg.norm(words[rows], axis=1)).all():
            return
    name, (out,) = table.name, look_up.output
    scale_table = numpy_helper.from_array(scales, f"{name}.scales")
    table.CopyFrom(
        helper.make_tensor(f"{name}.int8", TensorProto.INT8, words.shape, rounded.tobytes(), raw=True)
    )
    model.graph.initializer.append(scale_table)
    nodes = list(model.graph.node)
    at = nodes.index(look_up)
    ids = look_up.input[1]
    nodes[at : at + 1] = [
        helper.make_node("Gather", [table.name, ids], [f"{out}.int8"], name=f"{out}.int8/Gather", axis=0),
        _widen(f"{out}.int8", f"{out}.number"),
        helper.make_node("Gather", [scale_table.name, ids], [f"{out}.scale"], name=look_up.name, axis=0),
        helper.make_node("Mul", [f"{out}.number", f"{out}.scale"], [out], name=f"{out}/Mul"),
    ]
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def _round_to_int8(words: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Return each row as int8, and its scale rounded to float16, which may be zero or infinite."""
    with np.errstate(over="ignore"):
        scales = (np.abs(words).max(axis=1, keepdims=True) / 127).astype(np.float16).astype(np.float32)
    rounded = np.rint(words / np.where(scales == 0, 1, scales)).clip(-127, 127)
    return rounded.astype(np.int8), scales


def _is_matrix(tensor: TensorProto) -> bool:
    return tensor.data_type == TensorProto.FLOAT and len(tensor.dims) == 2


def _half(tensor: TensorProto) -> TensorProto:
    with np.errstate(over="ignore"):
        narrow = numpy_helper.to_array(tensor).astype("<f2")
    if not np.isfinite(narrow).all():
        raise ModelError(f"The weight {tensor.name} has numbers that float16 cannot hold.")
    name = f"{tensor.name}.half"
    return helper.make_tensor(name, TensorProto.FLOAT16, tensor.dims, narrow.tobytes(), raw=True)


def _widen(half: str, name: str) -> NodeProto:
    return helper.make_node("Cast", [half], [name], name=f"{name}/Cast", to=TensorProto.FLOAT)


def _look_up(gather: NodeProto) -> list[NodeProto]:
    table, ids = gather.input
    [out] = gather.output
    rows = helper.make_node("Gather", [f"{table}.half", ids], [f"{out}.half"], name=gather.name, axis=0)
    return [rows, _widen(f"{out}.half", out)]
