"""Index writes: replacement, deletion, filters, checkpoints, and malformed input."""

from pathlib import Path

import msgspec
import numpy as np
import pytest

from unit.engines.lance.conftest import Opener
from unit.engines.lance.sample_blocks import DIMS, block, embedded, vectors
from vademecum.engines.lance import Block, Chunk, MatrixCache, VectorIndex
from vademecum.engines.lance.chunk_table import ChunkTable


def names(index: VectorIndex, query: str, scope: list[str], k: int = 100) -> list[tuple[str, int]]:
    return [(hit.document_id, hit.chunk_index) for hit in index.keyword_search(query, scope, k)]


def test_new_index_is_empty_and_creates_no_file(index: VectorIndex, tmp_path: Path) -> None:
    assert index.checkpoint == ("", 0)
    assert index.keyword_search("plain", ["a"], 10) == []
    assert index.vector_search(vectors(1, 1)[0], ["a"], 10) == []
    assert index.stats().rows == 0
    assert not (tmp_path / "user").exists()


def test_applied_chunk_is_found_with_all_fields(index: VectorIndex) -> None:
    index.apply([embedded("a", 0, 2)], [], [], ("epoch", 7))
    assert index.checkpoint == ("epoch", 7)
    hit = index.keyword_search("chunk 1", ["a"], 1)[0]
    assert (hit.document_id, hit.block, hit.chunk_index, hit.page) == ("a", 0, 1, 2)
    assert (hit.section, hit.text) == ("section 0", "plain chunk 1 of a")
    assert hit.score > 0


@pytest.mark.parametrize("warm", [True, False])
def test_updated_block_replaces_all_its_rows(index: VectorIndex, warm: bool) -> None:
    index.apply([embedded("a", 0, 3, word="old"), embedded("a", 1, 2, word="old")], [], [], ("e", 1))
    if warm:
        assert len(names(index, "old", ["a"])) == 5
    index.apply([embedded("a", 0, 1, word="new")], [], [], ("e", 2))
    assert names(index, "new", ["a"]) == [("a", 0)]
    assert names(index, "old", ["a"]) == [("a", 16), ("a", 17)]
    assert index.stats().rows == 3


@pytest.mark.parametrize("warm", [True, False])
def test_deleted_blocks_and_documents_are_not_found(index: VectorIndex, warm: bool) -> None:
    index.apply([embedded(name, at, 2) for name in "abc" for at in (0, 1)], [], [], ("e", 1))
    if warm:
        assert len(names(index, "plain", ["a", "b", "c"])) == 12
    index.apply([], ["a.0"], ["b"], ("e", 2))
    assert {name for name, _ in names(index, "plain", ["a", "b", "c"])} == {"a", "c"}
    assert sorted(names(index, "plain", ["a", "b"])) == [("a", 16), ("a", 17)]
    found = index.vector_search(vectors(3, 1)[0], ["a", "b", "c"], 100)
    assert len(found) == 6 and not [hit for hit in found if hit.document_id == "b"]
    assert index.stats().documents == 2


def test_delete_wins_over_write_in_the_same_call(index: VectorIndex) -> None:
    index.apply([embedded("a", 0, 1), embedded("b", 0, 1)], ["a.0"], ["b"], ("e", 1))
    assert names(index, "plain", ["a", "b"]) == []


def test_block_without_chunks_deletes_its_rows(index: VectorIndex) -> None:
    index.apply([embedded("a", 0, 2)], [], [], ("e", 1))
    index.apply([block("a", 0, [])], [], [], ("e", 2))
    assert names(index, "plain", ["a"]) == []


def test_cached_and_stored_results_agree_after_many_writes(opened: Opener, cache: MatrixCache) -> None:
    """Only the cache merges and masks segments, and a new cache reads the files, so the two must be compared."""
    index = opened()
    index.apply([embedded("seed", 0, 1)], [], [], ("e", 1))
    index.keyword_search("plain", ["seed"], 1)
    random = np.random.default_rng(5)
    scope = [f"d{n}" for n in range(6)]
    for step in range(60):
        name, at = scope[int(random.integers(6))], int(random.integers(4))
        gone = [scope[int(random.integers(6))]] if step % 9 == 8 else []
        index.apply([embedded(name, at, int(random.integers(1, 9)), seed=step)], [], gone, ("e", step + 2))
        if step % 20 == 19:
            index.optimise(1)
    asked = vectors(9, 1)[0]
    warm = (index.keyword_search("chunk 3 of d1", scope, 500), index.vector_search(asked, scope, 500))
    cold = opened(shared=MatrixCache())
    assert (cold.keyword_search("chunk 3 of d1", scope, 500), cold.vector_search(asked, scope, 500)) == warm
    assert len(warm[1]) == cold.stats().rows - 1 > 0


def test_apply_without_changes_only_advances_the_checkpoint(index: VectorIndex, opened: Opener) -> None:
    index.apply([], [], [], ("e", 5))
    assert opened().checkpoint == ("e", 5)
    index.apply([embedded("a", 0, 1)], [], [], ("e", 6))
    index.apply([], [], ["unknown"], ("e", 7))
    assert opened().checkpoint == ("e", 7)
    assert len(names(index, "plain", ["a"])) == 1


def test_folder_name_may_contain_special_characters(tmp_path: Path, cache: MatrixCache) -> None:
    folder = tmp_path / "a user's 100%20 #1 ü?x" / "vectors"
    index = VectorIndex.open(folder, "m", DIMS, cache=cache)
    index.apply([embedded("a", 0, 2)], [], [], ("e", 1))
    index.erase()
    again = VectorIndex.open(folder, "m", DIMS, cache=MatrixCache())
    assert len(again.keyword_search("plain", ["a"], 9)) == 2


def test_document_id_with_quotes_is_escaped(index: VectorIndex) -> None:
    """The schema forbids quotes in IDs, but the index does not rely on this."""
    evil = "x') OR ('1'='1"
    index.apply([embedded("a", 0, 1), embedded(evil, 0, 1)], [], [], ("e", 1))
    assert [name for name, _ in names(index, "plain", [evil])] == [evil]
    index.apply([], [], [evil], ("e", 2))
    assert names(index, "plain", ["a", evil]) == [("a", 0)]


def test_malformed_input_keeps_its_valid_parts(index: VectorIndex) -> None:
    twice = Block("a.0", "a", 0, [Chunk(0, None, None, "first"), Chunk(0, None, None, "second")])
    holes = vectors(1, 3)
    holes[1], holes[2, 0] = 0, np.nan
    index.apply(
        [
            twice,
            block("b", 0, ["half \ud800 pair", "nul \x00 inside"]),
            block("c", 0, ["wrong size"], vectors(1, 1, DIMS + 1)),
            block("d", 0, ["good", "zeros", "nan"], holes),
        ],
        [],
        [],
        ("e", 1),
    )
    assert names(index, "first second", ["a"]) == [("a", 0)]
    assert len(names(index, "half inside", ["b"])) == 2
    assert index.vector_search(vectors(1, 1)[0], ["c"], 5) == []
    assert [hit.text for hit in index.vector_search(vectors(1, 1)[0], ["d"], 5)] == ["good"]
    assert len(names(index, "good zeros nan", ["d"])) == 3


def test_keyword_search_works_without_a_model(opened: Opener) -> None:
    index = opened(None, None)
    index.apply([embedded("a", 0, 2)], [], [], ("e", 1))
    assert len(names(index, "plain", ["a"])) == 2
    assert index.vector_search(vectors(1, 1)[0], ["a"], 5) == []
    index.erase()
    assert len(names(index, "plain", ["a"])) == 2


@pytest.mark.parametrize("clock", ["goes on", "was put back"])
def test_optimise_leaves_few_versions_and_files(
    index: VectorIndex, tmp_path: Path, clock: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if (
        clock == "was put back"
    ):  # Lance deletes versions older than now, which are none after the clock was set back
        monkeypatch.setattr(ChunkTable, "optimise", lambda table: None)
    for at in range(12):
        index.apply([embedded("a", at, 2)], [], [], ("e", at + 1))
    before = sum(1 for path in tmp_path.rglob("*") if path.is_file())
    assert not index.optimise(after_versions=1000)
    assert index.optimise(after_versions=4)
    after = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(after) <= 8 < before, after
    assert len(names(index, "plain", ["a"])) == 24
    index.apply([embedded("a", 99, 1)], [], [], ("e", 99))
    assert len(names(index, "plain", ["a"])) == 25


def test_hits_and_stats_are_structs_that_encode_to_json(index: VectorIndex) -> None:
    index.apply([embedded("a", 0, 2), embedded("b", 0, 1)], [], [], ("e", 1))
    stats = index.stats()
    assert (stats.rows, stats.documents) == (3, 2) and stats.bytes > 0
    hit = index.keyword_search("plain", ["a"], 1)[0]
    assert msgspec.json.decode(msgspec.json.encode(hit))["document_id"] == "a"


def test_search_of_closed_index_raises_an_error(index: VectorIndex) -> None:
    index.apply([embedded("a", 0, 1)], [], [], ("e", 1))
    index.close()
    with pytest.raises(RuntimeError, match="closed"):
        index.keyword_search("plain", ["a"], 1)
