"""The swap: rows that left memory, or a process that ended, come back quickly and the same, or not from there."""

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from unit.lance.conftest import Opener
from unit.lance.making import DIMS, MODEL, embedded, kill_at, vectors
from vademecum.engines.lance import Hit, IndexDamaged, MatrixCache, VectorIndex
from vademecum.engines.lance.segment import Part, Snapshot
from vademecum.engines.lance.swap import known
from vademecum.engines.lance.table import ChunkTable

SCOPE = ["a", "b", "c"]
PAGE = 4096


def swap_of(folder: Path) -> Path:
    return folder / "user" / "vectors" / "swap"


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
    assert any(secret in path.read_bytes() for path in files if path.name == "swap")
    index.erase(["a"])
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(secret in path.read_bytes() for path in files)
    evict(cache)
    assert index.words("plain", ["a"], 50) == []
    assert len(index.words("plain", ["b"], 50)) == 48


def test_a_swap_that_someone_tidied_away_costs_only_time(
    opened: Opener, cache: MatrixCache, tmp_path: Path
) -> None:
    index = filled(opened)
    before = found(index)
    for _ in range(2):
        evict(cache)
        swap_of(tmp_path).unlink()
        assert found(index) == before


def test_a_disk_that_takes_no_swap_costs_only_time(
    opened: Opener, cache: MatrixCache, tmp_path: Path
) -> None:
    index = filled(opened)
    in_the_way = tmp_path / "user" / "vectors" / "swap"
    in_the_way.mkdir()
    before = found(index)
    assert len(before[1]) == 20
    assert not list(in_the_way.parent.glob("swap*"))
    evict(cache)
    assert found(index) == before


@pytest.mark.parametrize(("model", "dims"), [(MODEL, DIMS), (None, None)])
def test_after_a_restart_the_first_answer_needs_no_lance(
    opened: Opener, monkeypatch: pytest.MonkeyPatch, model: str | None, dims: int | None
) -> None:
    index = filled(opened, model, dims)
    before = found(index)
    index.close()
    monkeypatch.delattr("vademecum.engines.lance.table._connect")
    assert found(opened(model, dims, shared=MatrixCache())) == before


def flip_a_bit(content: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(content))
    return content[:at] + bytes([content[at] ^ 1 << chance.randrange(8)]) + content[at + 1 :]


def flip_a_bit_near_the_end(content: bytes, chance: random.Random) -> bytes:
    """Where the contents are written down."""
    return content[:-1000] + flip_a_bit(content[-1000:], chance)


def cut(content: bytes, chance: random.Random) -> bytes:
    return content[: chance.randrange(len(content))]


def lose_the_beginning(content: bytes, chance: random.Random) -> bytes:
    return content[chance.randrange(1, len(content)) :]


def lose_a_page(content: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(content) // PAGE) * PAGE
    return content[:at] + bytes(PAGE) + content[at + PAGE :]


def change_places(content: bytes, chance: random.Random) -> bytes:
    first, second = (at * PAGE for at in sorted(chance.sample(range(len(content) // PAGE), 2)))
    pages = content[first : first + PAGE], content[second : second + PAGE]
    middle = content[first + PAGE : second]
    return content[:first] + pages[1] + middle + pages[0] + content[second + PAGE :]


def other_bytes(content: bytes, chance: random.Random) -> bytes:
    return chance.randbytes(chance.choice([0, 1, 20, len(content)]))


@pytest.mark.parametrize(
    "damage",
    [flip_a_bit, flip_a_bit_near_the_end, cut, lose_the_beginning, lose_a_page, change_places, other_bytes],
)
def test_a_damaged_swap_is_never_believed(
    opened: Opener, tmp_path: Path, damage: Callable[[bytes, random.Random], bytes]
) -> None:
    index = filled(opened)
    before = found(index)
    index.close()
    path, chance = swap_of(tmp_path), random.Random(7)
    whole = path.read_bytes()
    for _ in range(40 if os.environ.get("SOAK") else 10):
        path.write_bytes(damage(whole, chance))
        index = opened(shared=MatrixCache())
        assert found(index) == before
        index.close()
        assert path.read_bytes() == whole, "it is written anew"


def spoil(path: Path, part: Part) -> None:
    """Its first page, in place, so that who has the file mapped sees it."""
    begin = known(path).contents.parts[part].begin
    with path.open("r+b") as file:
        file.seek(begin)
        spoilt = bytes(byte ^ 16 for byte in file.read(PAGE))
        file.seek(begin)
        file.write(spoilt)


@pytest.mark.parametrize("part", ["text", "matrix", "postings"])
def test_damage_under_an_open_swap_is_noticed_when_the_part_is_needed(
    opened: Opener, tmp_path: Path, part: Part
) -> None:
    index = filled(opened)
    before, few = found(index), index.meaning(vectors(7, 1)[0], ["a"], 20)
    index.close()
    index = opened(shared=MatrixCache())
    assert index.without_vectors() == [] and index.words("absent", SCOPE, 1) == []
    if part == "postings":
        index.close()
        index = opened(shared=MatrixCache())
        assert index.meaning(vectors(7, 1)[0], SCOPE, 20) == before[0]
    whole = swap_of(tmp_path).read_bytes()
    spoil(swap_of(tmp_path), part)
    # Rows of one document of three are gathered, those of all are not.
    assert index.meaning(vectors(7, 1)[0], ["a"], 20) == few
    assert found(index) == before
    assert swap_of(tmp_path).read_bytes() == whole, "it is written anew"


@pytest.mark.parametrize("part", ["text", "matrix", "postings"])
def test_a_write_takes_no_damaged_rows_along(opened: Opener, tmp_path: Path, part: Part) -> None:
    index = filled(opened)
    found(index)
    index.close()
    index = opened(shared=MatrixCache())
    if part == "postings":
        index.meaning(vectors(7, 1)[0], SCOPE, 1)
    else:
        index.words("absent", SCOPE, 1)
    spoil(swap_of(tmp_path), part)
    index.apply([embedded("b", at, 16, word="fresh") for at in range(9)], [], ["c"], ("e", 2))
    assert index.checkpoint == ("e", 2)
    anew = opened(shared=MatrixCache())
    assert len(anew.words("chunk", SCOPE, 200)) == 192
    assert index.words("chunk", SCOPE, 200) == anew.words("chunk", SCOPE, 200)
    assert index.meaning(vectors(7, 1)[0], SCOPE, 200) == anew.meaning(vectors(7, 1)[0], SCOPE, 200)


def test_after_a_restart_a_search_checks_only_what_it_uses(
    opened: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = filled(opened)
    before, few = found(index), index.meaning(vectors(7, 1)[0], ["c"], 20)
    index.close()
    spoil(swap_of(tmp_path), "matrix")  # rows of a and b
    spoil(swap_of(tmp_path), "postings")
    index = opened(shared=MatrixCache())
    with monkeypatch.context() as patch:
        patch.delattr("vademecum.engines.lance.table._connect")
        assert index.meaning(vectors(7, 1)[0], ["c"], 20) == few
    assert found(index) == before


def test_a_swap_that_was_exchanged_before_it_is_read_is_never_believed(
    opened: Opener, tmp_path: Path
) -> None:
    index = filled(opened)
    before = found(index)
    index.close()
    index = opened(shared=MatrixCache())
    another = VectorIndex.open(tmp_path / "another", MODEL, DIMS, cache=MatrixCache())
    another.apply([embedded(name, at, 16, seed=1) for name in "abc" for at in range(3)], [], [], ("e", 1))
    assert found(another) != before
    another.close()
    shutil.copy(tmp_path / "another" / "swap", swap_of(tmp_path))
    assert found(index) == before


def test_a_swap_older_than_the_table_is_never_believed(opened: Opener, tmp_path: Path) -> None:
    index = filled(opened)
    found(index)
    older = swap_of(tmp_path).read_bytes()
    index.apply([embedded("b", 0, 2, word="fresh")], [], ["a"], ("e", 2))
    index.close()
    swap_of(tmp_path).write_bytes(older)
    index = opened(shared=MatrixCache())
    assert not swap_of(tmp_path).exists()
    assert index.words("plain", ["a"], 50) == []
    assert len(index.words("fresh", ["b"], 50)) == 2


def test_a_swap_of_a_copy_that_went_its_own_way_is_never_believed(opened: Opener, tmp_path: Path) -> None:
    filled(opened).close()
    own, copy = tmp_path / "user" / "vectors", tmp_path / "copy"
    shutil.copytree(own, copy)
    for folder, word in ((copy, "copied"), (own, "fresh")):
        index = VectorIndex.open(folder, MODEL, DIMS, cache=MatrixCache())
        index.apply([embedded("b", 0, 2, word=word)], [], ["a"], ("e", 2))
        found(index)
        index.close()
    shutil.copy(copy / "swap", own / "swap")
    index = opened(shared=MatrixCache())
    assert index.words("copied", SCOPE, 50) == []
    assert len(index.words("fresh", SCOPE, 50)) == 2


def test_a_whole_folder_may_be_moved_with_its_swap(
    opened: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = filled(opened)
    before = found(index)
    index.close()
    shutil.move(tmp_path / "user" / "vectors", tmp_path / "moved")
    monkeypatch.delattr("vademecum.engines.lance.table._connect")
    index = VectorIndex.open(tmp_path / "moved", MODEL, DIMS, cache=MatrixCache())
    assert found(index) == before
    index.close()


# Answers a question, and dies by kill -9 while the swap is written.
CRASH = """
from vademecum.engines.lance import swap
die = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)
if place == "between arrays":
    put, left = swap._put, iter(range(4))
    swap._put = lambda file, array: put(file, array) if next(left, None) is not None else (file.flush(), die())
else:
    Path.replace = die
VectorIndex.open(folder, MODEL, DIMS, cache=MatrixCache()).words("plain", ["a"], 1)
"""


def test_a_kill_while_the_swap_is_written_leaves_nothing_of_it(opened: Opener, tmp_path: Path) -> None:
    index = filled(opened)
    before = found(index)
    index.close()
    swap_of(tmp_path).unlink()
    for place in (places := ["between arrays", "before the rename"]):
        shutil.copytree(tmp_path / "user" / "vectors", tmp_path / place)
    kill_at(CRASH, tmp_path, places)
    for place in places:
        folder = tmp_path / place
        assert [path.name for path in folder.glob("swap*")] == ["swap.tmp"], place
        index = VectorIndex.open(folder, MODEL, DIMS, cache=MatrixCache())
        assert not list(folder.glob("swap*")), place
        assert found(index) == before, place
        index.close()


def test_a_delete_after_a_restart_takes_the_swap_with_it(opened: Opener, tmp_path: Path) -> None:
    index = filled(opened)
    found(index)
    index.close()
    index = opened(shared=MatrixCache())
    assert b"chunk 3 of a" in swap_of(tmp_path).read_bytes()
    index.apply([], [], ["a"], ("e", 2))
    assert not swap_of(tmp_path).exists()


def test_a_table_made_anew_takes_the_swap_with_it(opened: Opener, tmp_path: Path) -> None:
    index = filled(opened)
    before = found(index)
    assert index.optimise(1)
    assert not swap_of(tmp_path).exists()
    index.close()
    assert found(opened(shared=MatrixCache())) == before


def test_a_swap_larger_than_the_memory_is_not_mapped(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    index = filled(opened)
    before = found(index)
    index.close()
    monkeypatch.delattr(Snapshot, "words")
    monkeypatch.delattr(Snapshot, "meaning")
    assert found(opened(shared=MatrixCache(1000))) == before


def test_a_table_lost_under_a_good_swap_is_said_at_the_next_write(opened: Opener, tmp_path: Path) -> None:
    index = filled(opened)
    before = found(index)
    index.close()
    for path in tmp_path.rglob("data/*.lance"):
        path.write_bytes(b"")
    index = opened(shared=MatrixCache())
    assert found(index) == before
    with pytest.raises(IndexDamaged):
        index.apply([], ["a.1"], [], ("e", 2))
    assert index.checkpoint == ("", 0) and found(index) == ([], [])
