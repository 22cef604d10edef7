"""Erasure removes deleted rows from the disk. Before the erasure, each test checks that its scan finds the rows."""

import base64
import os
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from unit.engines.lance.conftest import Opener
from unit.engines.lance.sample_blocks import block, vectors
from vademecum.engines.lance import Block, MatrixCache, VectorIndex
from vademecum.model.text.bm25 import count_terms

SIZES = [
    (2, ""),
    (40 if os.environ.get("SOAK") else 12, ""),
    (40 if os.environ.get("SOAK") else 4, "the same words again and again " * 400),
]


def needles(text: str, vector: NDArray[np.float32]) -> dict[str, bytes]:
    """Map names to the forms in which a chunk may be stored on disk. Of its terms, only the first is included."""
    forms = {"text": text.encode(), "utf-16": text.encode("utf-16-le"), "vector": vector.tobytes()}
    forms["base64"] = base64.b64encode(vector.tobytes())
    forms["term"] = count_terms(text)["term"][0].tobytes()
    return forms


def found(folder: Path, wanted: dict[str, bytes]) -> set[str]:
    """Return the names of the forms that occur in the folder's files."""
    content = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    return {form for form, needle in wanted.items() if any(needle in some for some in content)}


def library(documents: int, filler: str) -> tuple[list[Block], dict[str, dict[str, bytes]]]:
    blocks, wanted = [], {}
    for n in range(documents):
        text, block_vectors = f"secretword{n:04} zebra {filler}", vectors(n, 16)
        blocks.append(block(f"d{n}", 0, [text] * 16, block_vectors))
        wanted[f"d{n}"] = needles(f"secretword{n:04}", block_vectors[3])
    return blocks, wanted


CONTROL = {"text", "vector", "term"}


@pytest.mark.parametrize(("documents", "filler"), SIZES)
@pytest.mark.parametrize("compacted", [False, True])
def test_erase_leaves_no_byte_of_deleted_document(
    index: VectorIndex, tmp_path: Path, documents: int, filler: str, compacted: bool
) -> None:
    blocks, wanted = library(documents, filler)
    for at, some in enumerate(blocks):
        index.apply([some], [], [], ("e", at + 1))
    if compacted:
        index.optimise(1)
    index.keyword_search("zebra", ["d0"], 1)
    assert all(found(tmp_path, forms) == CONTROL for forms in wanted.values())
    index.apply([], [], ["d1"], ("e", 999))
    assert found(tmp_path, wanted["d1"]) == CONTROL, (
        "the scan does not find the rows that a delete leaves on disk"
    )
    erased = index.erase()
    assert erased.files > 0 and erased.bytes > 0
    assert found(tmp_path, wanted["d1"]) == set()
    assert all(found(tmp_path, forms) == CONTROL for name, forms in wanted.items() if name != "d1")
    assert index.checkpoint == ("e", 999)
    assert len(index.keyword_search("zebra", [f"d{n}" for n in range(documents)], 10_000)) == 16 * (
        documents - 1
    )


def test_erase_leaves_no_byte_of_replaced_block(index: VectorIndex, tmp_path: Path) -> None:
    old, new = vectors(1, 1), vectors(2, 1)
    index.apply([block("a", 0, ["oldsecret here"], old)], [], [], ("e", 1))
    index.apply([block("a", 0, ["newsecret here"], new)], [], [], ("e", 2))
    assert found(tmp_path, needles("oldsecret", old[0])) == CONTROL
    index.erase()
    assert found(tmp_path, needles("oldsecret", old[0])) == set()
    assert found(tmp_path, needles("newsecret", new[0])) == CONTROL


def test_erase_deletes_documents_given_by_id(index: VectorIndex, opened: Opener, tmp_path: Path) -> None:
    blocks, wanted = library(3, "")
    index.apply(blocks, [], [], ("e", 1))
    index.erase(["d0", "d2"])
    assert [len(found(tmp_path, wanted[f"d{n}"])) for n in range(3)] == [0, 3, 0]
    assert opened(shared=MatrixCache()).checkpoint == ("e", 1)
    assert [len(index.keyword_search("zebra", [f"d{n}"], 50)) for n in range(3)] == [0, 16, 0]


def test_erase_of_empty_index_deletes_the_table(index: VectorIndex, tmp_path: Path) -> None:
    blocks, wanted = library(2, "")
    index.apply(blocks, [], [], ("e", 1))
    index.apply([], [], ["d0", "d1"], ("e", 2))
    index.erase()
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["checkpoint.json"]
    assert index.erase().files == 0
    index.apply(blocks[:1], [], [], ("e", 3))
    assert len(index.keyword_search("zebra", ["d0"], 50)) == 16
    index.drop()
    assert not any(found(tmp_path, forms) for forms in wanted.values())
