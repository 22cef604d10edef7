"""How vectors travel: base64 of little-endian float32, one after another. The same bytes on disk and on the wire."""

from __future__ import annotations

import base64
import binascii

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
SHORTEST = 1e-15


def encode(vectors: NDArray[np.floating]) -> str:
    """Base64 of n×dims (or dims) numbers, row by row."""
    return base64.b64encode(np.ascontiguousarray(vectors, dtype="<f4").tobytes()).decode("ascii")


def decode(text: str, dims: int) -> Vectors:
    """The n×dims matrix that `encode` was given. ValueError when it is not one, or holds NaN or infinity."""
    if dims < 1:
        raise ValueError("A vector has at least one dimension.")
    try:
        data = binascii.a2b_base64(text, strict_mode=True)
    except ValueError as error:
        raise ValueError("The embedding is not base64.") from error
    if len(data) % (4 * dims):
        raise ValueError(
            f"The embedding has {len(data)} bytes, which is no multiple of {dims} float32 numbers."
        )
    vectors = np.frombuffer(data, dtype="<f4").astype(np.float32).reshape(-1, dims)
    if not np.isfinite(vectors).all():
        raise ValueError("The embedding holds a number that is not finite.")
    return vectors


def unusable(text: str, dims: int, expected: int | None) -> str | None:
    """Why nothing could ever be found by these vectors. `expected`: the dimensions of their model, if it is known here."""
    if expected is not None and dims != expected:
        return f"`dims` is {dims}, and the vectors of this model have {expected}."
    try:
        matrix = decode(text, dims)
    except ValueError as error:
        return str(error)
    if expected is not None and not has_direction(lengths(matrix)).all():
        return "The embedding holds a vector without a direction: it is all zeros, or its numbers are far too large or small."
    return None


def lengths(matrix: Vectors) -> NDArray[np.float32]:
    """Of its rows, as search reckons: in float32, where 1e20 squared is infinite and 1e-30 squared nothing."""
    with np.errstate(over="ignore", under="ignore"):
        found: NDArray[np.float32] = np.sqrt(np.einsum("ij,ij->i", matrix, matrix))
    return found


def has_direction(length: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Whether a vector of this length can be compared with another by what it points at: the squares of very short ones
    have lost their digits."""
    usable: NDArray[np.bool_] = np.isfinite(length) & (length > SHORTEST)
    return usable
