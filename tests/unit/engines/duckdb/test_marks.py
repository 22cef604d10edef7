"""The file never yields a high-water mark above the recorded one, even after a crash, damage or a full disk."""

import pytest

from vademecum.engines.duckdb import marks
from vademecum.engines.duckdb.marks import HighWaterMarks


def noted(data, **seqs):
    """Record these seqs as marks and close the file."""
    found = HighWaterMarks(data)
    for user_id, seq in seqs.items():
        found.raise_to(user_id, seq)
    found.close()


def read(data, *user_ids):
    found = HighWaterMarks(data)
    found.close()
    return [found.of(user_id) for user_id in user_ids]


@pytest.fixture
def file(tmp_path):
    return tmp_path / "ledger" / "marks"


def test_high_water_mark_never_decreases(tmp_path, file):
    noted(tmp_path, ada=5, bob=2)
    noted(tmp_path, ada=9)
    size = file.stat().st_size
    noted(tmp_path, ada=7, bob=2)
    assert read(tmp_path, "ada", "bob", "eve") == [9, 2, 0]
    assert file.stat().st_size == size


def test_truncated_last_line_of_marks_file_is_ignored(tmp_path, file):
    noted(tmp_path, ada=5)
    first = len(file.read_bytes())
    noted(tmp_path, ada=123456)
    whole = file.read_bytes()
    for cut in range(first, len(whole) - 1):
        file.write_bytes(whole[:cut])
        assert read(tmp_path, "ada") == [5]
        noted(tmp_path, bob=3)  # starts a new line after the truncated one
        assert read(tmp_path, "ada", "bob") == [5, 3]


def test_damaged_byte_yields_no_wrong_high_water_mark(tmp_path, file):
    noted(tmp_path, ada=5)
    noted(tmp_path, bob=6)
    whole = file.read_bytes()
    for at in range(len(whole)):
        for bit in (1, 16):
            file.write_bytes(whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1 :])
            found = read(tmp_path, "ada", "bob")
            assert found in ([5, 6], [0, 6], [5, 0], [0, 0])


@pytest.mark.parametrize(
    "line",
    [b"\0" * 40, b"ada 9 00000000", b"ada 9", b"ada -9 00000000", b"\xff\xfe", marks._line("ada", 2**52 + 1)],
    ids=str,
)
def test_invalid_line_of_marks_file_is_ignored(tmp_path, file, line):
    noted(tmp_path, ada=5)
    file.write_bytes(file.read_bytes() + line + b"\n")
    assert read(tmp_path, "ada") == [5]


def test_damaged_lines_are_counted_until_the_marks_file_is_opened(tmp_path, file):
    noted(tmp_path, ada=5)
    assert marks.count_damaged_lines(tmp_path) == 0
    file.write_bytes(file.read_bytes() + b"\nada 9 00000000\nada 9\n")
    assert marks.count_damaged_lines(tmp_path) == 2
    assert read(tmp_path, "ada") == [5]
    assert marks.count_damaged_lines(tmp_path) == 0


def test_deleted_account_has_no_high_water_mark(tmp_path, file):
    noted(tmp_path, ada=5, bob=6)
    found = HighWaterMarks(tmp_path)
    found.drop("ada")
    found.raise_to("bob", 7)
    found.close()
    assert read(tmp_path, "ada", "bob") == [0, 7]
    assert b"ada" not in file.read_bytes()


def test_outdated_mark_lines_are_removed_during_use(tmp_path, file, monkeypatch):
    monkeypatch.setattr(marks, "OUTDATED_MAX", 500)
    found = HighWaterMarks(tmp_path)
    for seq in range(1, 200):
        found.raise_to("ada", seq)
        found.raise_to("bob", seq + 1)
        if seq % 50 == 0:
            found.sync()
            assert file.stat().st_size < 100
    found.close()
    assert file.stat().st_size < 100
    assert read(tmp_path, "ada", "bob") == [199, 200]


def test_failed_compaction_keeps_all_marks(tmp_path, file, monkeypatch):
    noted(tmp_path, ada=5, bob=6)
    file.with_name("marks.new").mkdir()
    monkeypatch.setattr(marks, "OUTDATED_MAX", 0)
    noted(tmp_path, ada=8)
    noted(tmp_path, bob=9)
    assert read(tmp_path, "ada", "bob") == [8, 9]


def test_disk_failure_only_delays_writing_marks(tmp_path, file):
    file.mkdir(parents=True)
    found = HighWaterMarks(tmp_path)
    found.raise_to("ada", 5)
    found.sync()
    assert found.of("ada") == 5
    file.rmdir()
    found.raise_to("ada", 6)
    found.close()
    assert read(tmp_path, "ada") == [6]
