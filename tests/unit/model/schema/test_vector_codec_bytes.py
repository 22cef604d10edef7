"""Encoding and decoding preserve every bit of a vector; invalid input is refused."""

from __future__ import annotations

import base64

import numpy as np
import pytest

from vademecum.model.schema.vector_codec import decode, encode


def test_encoding_and_decoding_preserve_all_bits() -> None:
    vectors = np.random.default_rng(0).standard_normal((16, 384)).astype(np.float32)
    assert decode(encode(vectors), 384).tobytes() == vectors.tobytes()
    assert decode(encode(vectors[3]), 384).tobytes() == vectors[3].tobytes()
    assert decode(encode(vectors[:, ::2]), 192).tobytes() == np.ascontiguousarray(vectors[:, ::2]).tobytes()
    assert decode("", 384).shape == (0, 384)
    assert decode(encode(vectors), 384).flags.writeable


def test_encoding_is_little_endian_float32() -> None:
    assert base64.b64decode(encode(np.array([1.0, -2.0]))) == bytes.fromhex("0000803f000000c0")
    assert encode(np.array([1.0], dtype=">f4")) == encode(np.array([1.0], dtype="<f4"))


@pytest.mark.parametrize(
    ("text", "dims", "says"),
    [
        ("AAAA!", 1, "not base64"),
        ("AAA", 1, "not base64"),
        ("é", 1, "not base64"),
        (base64.b64encode(bytes(6)).decode(), 1, "not a multiple"),
        (base64.b64encode(bytes(8)).decode(), 3, "not a multiple"),
        (encode(np.array([np.nan])), 1, "not finite"),
        (encode(np.array([np.inf])), 1, "not finite"),
        ("", 0, "at least one"),
    ],
)
def test_decode_refuses_invalid_input(text: str, dims: int, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        decode(text, dims)
