"""The scan of a folder for erased text, while an index adds and removes files in it."""

import shutil
import tracemalloc

from vademecum.services.data import erase
from vademecum.services.data.erase import files_below, scan


def test_folder_deleted_during_the_walk_is_skipped(tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_bytes(b"x")
    files = files_below(tmp_path)
    gone = next(files).parent
    for folder in {tmp_path / "a", tmp_path / "b", tmp_path / "c"} - {gone}:
        shutil.rmtree(folder)
    assert list(files) == []


def test_file_deleted_before_the_read_is_skipped(tmp_path):
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    (tmp_path / "stays").write_bytes(b"some secret text")
    assert scan(tmp_path, [b"secret text", b"another text"]) == 1


def test_scan_finds_utf8_utf16_and_raw_bytes(tmp_path):
    (tmp_path / "wide").write_bytes("über uns die Sterne".encode("utf-16-le"))
    (tmp_path / "raw").write_bytes(b"\x00" + bytes(range(200, 216)))
    assert scan(tmp_path, ["über uns".encode()]) == 1
    assert scan(tmp_path, [bytes(range(200, 216))]) == 1
    assert scan(tmp_path, [b"not there at all"]) == 0


def test_needle_across_two_pieces_is_found(tmp_path, monkeypatch):
    short, long = b"a secret", b"a long and well kept secret indeed"
    for size in range(1, 50):
        monkeypatch.setattr(erase, "PIECE", size)
        (tmp_path / "file").write_bytes(b"x" * 40 + short + b"y" * 40 + long + b"z")
        assert scan(tmp_path, [short, long, b"another secret"]) == 2, size


def test_large_file_is_scanned_in_pieces(tmp_path):
    with (tmp_path / "large").open("wb") as file:
        file.seek(64 * 2**20)
        file.write(b"at the very end")
    tracemalloc.start()
    try:
        assert scan(tmp_path, [b"the very end"]) == 1
        assert tracemalloc.get_traced_memory()[1] < 8 * 2**20
    finally:
        tracemalloc.stop()
