"""Encode vectors as base64 of little-endian float32, row by row.

The bytes are the same on the disk and in the sync protocol.
"""

from __future__ import annotations

import base64
import binascii

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
MIN_NORM = 1e-15


def encode(vectors: NDArray[np.floating]) -> str:
    """Return an n×dims matrix, or one vector, as base64."""
    return base64.b64encode(np.ascontiguousarray(vectors, dtype="<f4").tobytes()).decode("ascii")


def decode(text: str, dims: int) -> Vectors:
    """Return the encoded n×dims matrix. Raises ValueError if it is malformed or contains NaN or infinity."""
    if dims < 1:
        raise ValueError("A vector has at least one dimension.")
    try:
        data = binascii.a2b_base64(text, strict_mode=True)
    except ValueError as error:
        raise ValueError("The embedding is not base64.") from error
    if len(data) % (4 * dims):
        raise ValueError(
            f"The embedding has {len(data)} bytes, which is not a multiple of {dims} float32 numbers."
        )
    vectors = np.frombuffer(data, dtype="<f4").astype(np.float32).reshape(-1, dims)
    if not np.isfinite(vectors).all():
        raise ValueError("The embedding contains a number that is not finite.")
    return vectors


def find_vector_problem(text: str, dims: int, expected: int | None) -> str | None:
    """Return why search cannot use these vectors, or None. `expected`: the dimensions of the model, if known."""
    if expected is not None and dims != expected:
        return f"`dims` is {dims}, but the vectors of this model have {expected}."
    try:
        matrix = decode(text, dims)
    except ValueError as error:
        return str(error)
    if expected is not None and not are_usable_norms(row_norms(matrix)).all():
        return "The embedding contains a vector without a direction: all zeros, or numbers that are too large or too small."
    return None


def row_norms(matrix: Vectors) -> NDArray[np.float32]:
    """Return the norms of the rows in float32, as search computes them.

    In float32, the square of 1e20 is infinite and the square of 1e-30 is 0.
    """
    with np.errstate(over="ignore", under="ignore"):
        result: NDArray[np.float32] = np.sqrt(np.einsum("ij,ij->i", matrix, matrix))
    return result


def are_usable_norms(norms: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Return for each norm whether a vector of this length has a usable direction.

    In float32, the squares of very small numbers are too inaccurate to normalize a very short vector.
    """
    usable: NDArray[np.bool_] = np.isfinite(norms) & (norms > MIN_NORM)
    return usable
