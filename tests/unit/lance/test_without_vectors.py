"""Blocks that words find and meaning does not, yet, are told by name."""

import numpy as np

from unit.lance.conftest import Opener
from unit.lance.making import block, embedded, vectors
from vademecum.engines.lance import VectorIndex

AT = ("epoch", 1)


def test_only_blocks_with_a_chunk_that_has_no_vector_are_named(index: VectorIndex) -> None:
    assert index.without_vectors() == []
    half = vectors(1, 2)
    half[1] = np.nan
    index.apply([embedded("a", 0, 2), block("b", 0, ["x", "y"]), block("c", 0, ["x", "y"], half)], [], [], AT)
    assert index.without_vectors() == ["b.0", "c.0"]
    index.apply([block("b", 0, ["x", "y"], vectors(2, 2))], ["c.0"], [], AT)
    assert index.without_vectors() == []


def test_without_a_model_nothing_lacks_a_vector(opened: Opener) -> None:
    index = opened(None, None)
    index.apply([block("b", 0, ["x"])], [], [], AT)
    assert index.without_vectors() == []
