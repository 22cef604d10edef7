"""Decoding of vectors matches the shared cases of tests/conformance/vectors.json.

In a case, `vectors` are the decoded numbers, or null if the text is refused.

`.venv/bin/python tests/unit/model/schema/test_vector_codec.py` rewrites the expected values; read the diff before you
commit it.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vademecum.model.schema.vector_codec import decode, encode

CASES = Path(__file__).parents[3] / "conformance" / "vectors.json"


def cases() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(CASES.read_text())
    return found


def decoded(case: dict[str, Any]) -> list[float] | None:
    try:
        vectors = decode(case["text"], case["dims"])
    except ValueError:
        return None
    found: list[float] = vectors.ravel().tolist()
    return found


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["name"])
def test_decoding_matches_shared_cases(case: dict[str, Any]) -> None:
    assert decoded(case) == case["vectors"]


def test_encoded_vectors_decode_unchanged() -> None:
    vectors = np.random.default_rng(1).standard_normal((5, 7)).astype(np.float32)
    assert (decode(encode(vectors), 7) == vectors).all()


if __name__ == "__main__":
    rows = ",\n".join(json.dumps(case | {"vectors": decoded(case)}) for case in cases())
    CASES.write_text(f"[\n{rows}\n]\n")
