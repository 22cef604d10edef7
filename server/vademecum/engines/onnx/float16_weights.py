"""Store a model's matrices as float16, which halves the file. All computation stays in float32.

A Cast node converts each matrix to float32. The node's only input is constant, so onnxruntime folds it when it loads the
file. Word embeddings are converted after the lookup, so that only the rows of a text are converted and the table
needs half the memory. Norms and biases stay float32, because they are small.
"""

from __future__ import annotations

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, load_model_from_string, numpy_helper

from vademecum.engines.onnx.errors import ModelError


def convert_to_float16(graph: bytes) -> bytes:
    """Convert a float32 ONNX file to float16 and return the bytes that the current builder writes. Raises ModelError."""
    model: bytes = store_as_float16(load_model_from_string(graph)).SerializeToString(deterministic=True)
    return model


def store_as_float16(model: ModelProto) -> ModelProto:
    """Convert the float32 matrices of `model` to float16 in place and return it. Raises ModelError on overflow."""
    tensors = [_half(t) if _is_matrix(t) else t for t in model.graph.initializer]
    matrices = [t.name for t in model.graph.initializer if _is_matrix(t)]
    look_ups = [n for n in model.graph.node if n.op_type == "Gather" and n.input[0] in matrices]
    looked_up = {node.input[0] for node in look_ups}
    nodes = [_widen(f"{name}.half", name) for name in matrices if name not in looked_up]
    for node in model.graph.node:
        nodes += _look_up(node) if node in look_ups else [node]
    del model.graph.initializer[:], model.graph.node[:]
    model.graph.initializer.extend(tensors)
    model.graph.node.extend(nodes)
    return model


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
