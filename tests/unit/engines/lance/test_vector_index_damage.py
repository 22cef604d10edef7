"""After a crash, repeated writes restore the index. A damaged index is rebuilt and never returns partial results."""

import os
import random
import shutil
from pathlib import Path

import pytest

from unit.engines.lance.conftest import Opener
from unit.engines.lance.sample_blocks import DIMS, MODEL, embedded, kill_at
from vademecum.engines.lance import IndexDamaged, MatrixCache, VectorIndex
from vademecum.engines.lance import checkpoint as states

# A program that makes the writes that the test repeats, and kills itself with SIGKILL at the named place.
CRASH = """
from vademecum.engines.lance import checkpoint as state, chunk_table as table
index = VectorIndex.open(folder, MODEL, DIMS, cache=MatrixCache())
index.apply([embedded("a", 0, 5, word="old"), embedded("b", 0, 5)], [], [], ("e", 1))
die = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)
if place == "before checkpoint":
    state.save = die
elif place == "between delete and add":
    replace = table.ChunkTable.replace
    def half(self, rows, blocks, documents):
        replace(self, rows.slice(0, 0), blocks, documents)
        die()
    table.ChunkTable.replace = half
elif place == "in erase":
    state.save = die
    index.erase(["b"])
elif place == "after erase":
    index._sweep = die
    index.erase(["b"])
index.apply([embedded("a", 0, 3, word="new")], [], ["b"], ("e", 2))
die()
"""


PLACES = ["before checkpoint", "between delete and add", "in erase", "after erase", "after all"]


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("killed")
    kill_at(CRASH, folder, PLACES)
    return folder


@pytest.mark.parametrize("place", PLACES)
def test_repeated_apply_after_kill_gives_the_same_rows(killed: Path, place: str) -> None:
    folder = killed / place
    index = VectorIndex.open(folder, MODEL, DIMS, cache=MatrixCache())
    assert index.checkpoint == ("e", 2 if place == "after all" else 1)
    for _ in range(2):
        index.apply([embedded("a", 0, 3, word="new")], [], ["b"], ("e", 2))
        assert [hit.text for hit in index.keyword_search("plain old new", ["a", "b"], 50)] == [
            f"new chunk {at} of a" for at in range(3)
        ]
        assert index.stats().rows == 3
    assert len([path for path in folder.iterdir() if path.is_dir()]) == 1


def filled(opened: Opener) -> VectorIndex:
    index = opened()
    index.apply([embedded("a", at, 8) for at in range(3)], [], [], ("e", 1))
    index.apply([embedded("b", 0, 8)], ["a.1"], [], ("e", 2))
    return index


def rebuilt(index: VectorIndex) -> bool:
    """Return whether the index starts empty and accepts new writes."""
    assert index.checkpoint == ("", 0)
    index.apply([embedded("c", 0, 4)], [], [], ("e", 3))
    return [len(index.keyword_search("plain", [name], 50)) for name in "abc"] == [0, 0, 4]


def test_reopened_index_finds_all_rows(opened: Opener) -> None:
    filled(opened)
    index = opened(shared=MatrixCache())
    assert index.checkpoint == ("e", 2)
    assert len(index.keyword_search("plain", ["a", "b"], 50)) == 24


@pytest.mark.parametrize(("model", "dims"), [("model-b", DIMS), (MODEL, DIMS * 2), (None, None)])
def test_index_of_another_model_is_rebuilt(opened: Opener, model: str | None, dims: int | None) -> None:
    filled(opened)
    assert rebuilt(opened(model, dims))


def test_index_of_an_older_layout_is_rebuilt(
    opened: Opener, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    filled(opened)
    path = tmp_path / "user" / "vectors" / states.FILE
    older = f'"layout":{states.LAYOUT - 1}'.encode()
    path.write_bytes(path.read_bytes().replace(f'"layout":{states.LAYOUT}'.encode(), older))
    assert older in path.read_bytes()
    assert rebuilt(opened())


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"seq":"x"}', b"\xff\xfe"])
def test_index_with_unreadable_checkpoint_is_rebuilt(opened: Opener, tmp_path: Path, content: bytes) -> None:
    filled(opened)
    (tmp_path / "user" / "vectors" / states.FILE).write_bytes(content)
    assert rebuilt(opened())


def test_folder_with_foreign_files_is_emptied(opened: Opener, tmp_path: Path) -> None:
    folder = tmp_path / "user" / "vectors"
    (folder / "chunks.lance").mkdir(parents=True)
    (folder / "chunks.lance" / "x").write_text("not ours")
    assert rebuilt(opened())
    assert not (folder / "chunks.lance").exists()


def test_table_older_than_its_checkpoint_is_rebuilt(opened: Opener, tmp_path: Path) -> None:
    """A power cut can lose Lance's newest files, which Lance does not sync, and keep the checkpoint."""
    filled(opened)
    manifests = sorted((tmp_path / "user").rglob("*.manifest"))
    manifests[0].unlink()  # the newest one, because the file names count down
    for hint in (tmp_path / "user").rglob("latest_version_hint.json"):
        hint.unlink()
    assert rebuilt(opened())


def test_search_after_loss_of_table_files_raises_and_resets_index(opened: Opener, tmp_path: Path) -> None:
    index = filled(opened)
    for path in (tmp_path / "user").rglob("data/*.lance"):
        path.write_bytes(b"")
    with pytest.raises(IndexDamaged):
        index.keyword_search("plain", ["a"], 5)
    assert rebuilt(index)


def test_index_is_rebuilt_after_its_folder_was_deleted(opened: Opener, tmp_path: Path) -> None:
    index = filled(opened)
    shutil.rmtree(tmp_path / "user")
    with pytest.raises(IndexDamaged):
        index.apply([embedded("b", 1, 1)], [], [], ("e", 3))
    assert rebuilt(index)


def test_disk_error_does_not_reset_the_index(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    index = filled(opened)
    index.keyword_search("plain", ["a"], 1)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(states, "save", full)
        with pytest.raises(OSError, match="No space"):
            index.apply([embedded("c", 0, 1)], [], [], ("e", 3))
    assert index.checkpoint == ("e", 2)
    index.apply([embedded("c", 0, 1)], [], [], ("e", 3))
    assert len(index.keyword_search("plain", ["a", "b", "c"], 50)) == 25


def test_programming_error_does_not_reset_the_index(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    index = filled(opened)

    def broken(*_: object) -> None:
        raise TypeError("a mistake")

    with monkeypatch.context() as patched:
        patched.setattr("vademecum.engines.lance.chunk_table.ChunkTable.replace", broken)
        with pytest.raises(TypeError):
            index.apply([embedded("c", 0, 1)], [], [], ("e", 3))
    assert index.checkpoint == ("e", 2)
    assert len(index.keyword_search("plain", ["a", "b"], 50)) == 24


def test_index_stays_usable_with_damaged_files(opened: Opener, tmp_path: Path) -> None:
    """Truncate, empty or zero a random file: the index then finds all rows, or is empty and usable."""
    filled(opened)
    folder, gold = tmp_path / "user" / "vectors", tmp_path / "gold"
    shutil.copytree(folder, gold)
    chance = random.Random(7)
    outcomes = set()
    for _ in range(40 if os.environ.get("SOAK") else 20):
        shutil.rmtree(folder)
        shutil.copytree(gold, folder)
        path = chance.choice(sorted(path for path in folder.rglob("*") if path.is_file()))
        content = path.read_bytes()
        at = chance.randrange(len(content))
        path.write_bytes(chance.choice([b"", content[:at], content[:at] + bytes(len(content) - at)]))
        index = opened(shared=MatrixCache())
        whole = index.checkpoint == ("e", 2)
        try:
            assert not whole or len(index.keyword_search("plain", ["a", "b"], 50)) == 24
        except IndexDamaged:
            assert index.checkpoint == ("", 0)
            whole = False
        outcomes.add(whole)
        index.apply([embedded("z", 0, 3)], [], [], ("e", 9))
        assert len(index.keyword_search("plain", ["z"], 50)) == 3
        index.close()
    assert outcomes == {True, False}


def test_reset_empties_index_and_drop_deletes_folder(opened: Opener, tmp_path: Path) -> None:
    index = filled(opened)
    index.reset()
    assert rebuilt(index)
    index.drop()
    assert not (tmp_path / "user" / "vectors").exists()
    assert opened().checkpoint == ("", 0)
