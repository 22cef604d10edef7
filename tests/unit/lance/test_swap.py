"""The swap: rows that left memory come back quickly, are the same, and are never older than the table."""

import shutil
from pathlib import Path

import pytest

from unit.lance.conftest import Opener
from unit.lance.making import DIMS, MODEL, embedded, vectors
from vademecum.engines.lance import Hit, MatrixCache, VectorIndex
from vademecum.engines.lance.table import ChunkTable

SCOPE = ["a", "b", "c"]


def evict(cache: MatrixCache) -> None:
    """Another user takes all the memory, and leaves."""
    cache.put("another", None, cache.max_bytes)
    cache.drop("another")
    assert len(cache) == 0


def found(index: VectorIndex) -> tuple[list[Hit], list[Hit]]:
    return index.meaning(vectors(7, 1)[0], SCOPE, 20), index.words("plain chunk 3", SCOPE, 20)


def filled(opened: Opener, model: str | None = MODEL, dims: int | None = DIMS) -> VectorIndex:
    index = opened(model, dims)
    index.apply([embedded(name, at, 16) for name in "abc" for at in range(3)], [], [], ("e", 1))
    return index


@pytest.mark.parametrize(("model", "dims"), [(MODEL, DIMS), (None, None)])
def test_a_user_whom_memory_lost_is_found_again_without_reading_lance(
    opened: Opener,
    cache: MatrixCache,
    monkeypatch: pytest.MonkeyPatch,
    model: str | None,
    dims: int | None,
) -> None:
    index = filled(opened, model, dims)
    before = found(index)
    assert before[1]
    monkeypatch.delattr(ChunkTable, "read")
    for _ in range(2):
        evict(cache)
        assert found(index) == before


def test_what_was_written_after_the_swap_is_found(opened: Opener, cache: MatrixCache) -> None:
    index = filled(opened)
    found(index)
    evict(cache)
    index.apply([embedded("b", 0, 2, word="fresh")], [], ["a"], ("e", 2))
    assert len(index.words("fresh", ["b"], 50)) == 2
    assert index.words("plain", ["a"], 50) == []
    assert found(index) == found(opened(shared=MatrixCache()))


def test_a_change_in_memory_outlives_the_swap(opened: Opener, cache: MatrixCache) -> None:
    index = filled(opened)
    found(index)
    evict(cache)
    found(index)  # mapped, and read-only
    index.apply([embedded("b", 0, 2, word="fresh")], [], ["a"], ("e", 2))
    warm = found(index)
    evict(cache)
    assert found(index) == warm
    assert index.words("plain", ["a"], 50) == []


def test_an_erasure_leaves_nothing_in_the_swap(opened: Opener, cache: MatrixCache, tmp_path: Path) -> None:
    index = filled(opened)
    found(index)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    secret = b"chunk 3 of a"
    assert any(secret in path.read_bytes() for path in files if "swap" in path.parts)
    index.erase(["a"])
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(secret in path.read_bytes() for path in files)
    evict(cache)
    assert index.words("plain", ["a"], 50) == []
    assert len(index.words("plain", ["b"], 50)) == 48


@pytest.mark.parametrize("gone", ["swap", "swap/shown.arrow", "swap/arrays", "swap/contents.json"])
def test_a_swap_that_someone_tidied_away_costs_only_time(
    opened: Opener, cache: MatrixCache, tmp_path: Path, gone: str
) -> None:
    index = filled(opened)
    before = found(index)
    evict(cache)
    path = tmp_path / "user" / "vectors" / gone
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert found(index) == before
    evict(cache)
    assert found(index) == before


def test_a_disk_that_takes_no_swap_costs_only_time(
    opened: Opener, cache: MatrixCache, tmp_path: Path
) -> None:
    index = filled(opened)
    in_the_way = tmp_path / "user" / "vectors" / "swap"
    in_the_way.mkdir()
    before = found(index)
    assert len(before[1]) == 20
    evict(cache)
    assert found(index) == before


def test_no_swap_outlives_its_index(opened: Opener, tmp_path: Path) -> None:
    swap = tmp_path / "user" / "vectors" / "swap"
    index = filled(opened)
    found(index)
    assert swap.exists()
    killed = tmp_path / "killed"
    shutil.copytree(swap, killed)
    index.close()
    assert not swap.exists()
    shutil.copytree(killed, swap)
    opened(shared=MatrixCache())
    assert not swap.exists()
