"""The index lists the blocks without vectors, which only keyword search can find."""

import numpy as np
import pytest

from unit.engines.lance.conftest import Opener
from unit.engines.lance.sample_blocks import block, embedded, vectors
from vademecum.engines.lance import Block, Chunk, MatrixCache, VectorIndex

AT = ("epoch", 1)


@pytest.fixture(params=["in memory", "on disk"])
def index(request: pytest.FixtureRequest, opened: Opener) -> VectorIndex:
    """Return an index whose rows the first search caches, or one whose cache is too small for rows."""
    index = opened(shared=MatrixCache() if request.param == "in memory" else MatrixCache(0))
    index.apply([embedded("first", 0, 2)], [], [], AT)
    assert index.keyword_search("plain", {"first"}, 1)
    return index


def test_blocks_missing_a_vector_are_listed(index: VectorIndex) -> None:
    assert index.without_vectors() == []
    half = vectors(1, 2)
    half[1] = np.nan
    index.apply([embedded("a", 0, 2), block("b", 0, ["x", "y"]), block("c", 0, ["x", "y"], half)], [], [], AT)
    assert index.without_vectors() == ["b.0", "c.0"]
    index.apply([block("b", 0, ["x", "y"], vectors(2, 2))], ["c.0"], [], AT)
    assert index.without_vectors() == []


def test_without_a_model_no_block_is_listed(opened: Opener) -> None:
    index = opened(None, None)
    index.apply([block("b", 0, ["x"])], [], [], AT)
    assert index.without_vectors() == []


def test_documents_with_current_chunks_in_sections_are_listed(index: VectorIndex) -> None:
    def said(name: str, *sections: str | None) -> Block:
        return Block(name, name, 0, [Chunk(at, None, one, "x") for at, one in enumerate(sections)])

    index.apply([said("a", "s1", "s1"), said("b", "s2", None), said("c", "s1"), said("d", None)], [], [], AT)
    assert index.in_sections(["s1", "s2", "other"]) == ["a", "b", "c"]
    index.apply([said("c", "s3")], ["a"], [], AT)
    assert index.in_sections({"s1", "s2"}) == ["b"]
