"""The shared cache is bounded in bytes and evicts the least recently used entry."""

from pathlib import Path

import pytest

from unit.engines.lance.sample_blocks import DIMS, MODEL, embedded
from vademecum.engines.lance import MatrixCache, VectorIndex


def test_least_recently_used_entry_is_evicted() -> None:
    cache = MatrixCache(100)
    assert cache.put("a", 1, 40) and cache.put("b", 2, 40)
    assert cache.get("a") == 1
    assert cache.put("c", 3, 40)
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (1, None, 3)
    assert cache.bytes == 80


def test_entry_larger_than_the_bound_is_not_cached() -> None:
    cache = MatrixCache(100)
    cache.put("a", 1, 90)
    assert not cache.put("a", 2, 101)
    assert (cache.get("a"), cache.bytes, len(cache)) == (None, 0, 0)


def test_replacing_and_dropping_entries_update_the_size() -> None:
    cache = MatrixCache(100)
    for size in (10, 60, 30):
        cache.put("a", size, size)
    assert (cache.bytes, len(cache)) == (30, 1)
    cache.drop("a")
    cache.drop("a")
    assert cache.bytes == 0


@pytest.mark.parametrize("users", [12])
def test_many_users_share_one_cache_bound(tmp_path: Path, users: int) -> None:
    cache = MatrixCache(200_000)
    indexes = [VectorIndex.open(tmp_path / f"{n}", MODEL, DIMS, cache=cache) for n in range(users)]
    for n, index in enumerate(indexes):
        index.apply([embedded("a", at, 16, seed=n, word=f"user{n}") for at in range(16)], [], [], ("e", 1))
    for _ in range(3):
        for n, index in enumerate(indexes):
            hits = index.keyword_search(f"user{n}", ["a"], 300)
            assert len(hits) == 256 and {hit.text.split()[0] for hit in hits} == {f"user{n}"}
            assert index.keyword_search(f"user{(n + 1) % users}", ["a"], 5) == []
            assert 0 < cache.bytes <= cache.max_bytes
    assert 1 <= len(cache) < users
    for index in indexes:
        index.close()
    assert cache.bytes == 0
