"""The erasure ledger has a line for every deletion, even after a crash or a full disk, and drops outdated lines."""

import subprocess
import sys

import pytest

from vademecum.cli.doctor import _examine_ledgers
from vademecum.engines.duckdb.erasure_ledger import SPARE, ErasureLedger, LedgerLine, newest
from vademecum.model.sync.transaction import Change, RowHead, RowIndex


def deletion(name, seq, *, expired=False):
    return Change(f"facts/{name}", None, RowHead(seq, True, (), (), 0), b"", expired=expired)


def row_index(*changes, alive=()):
    found = RowIndex()
    found.apply({change.key: change for change in changes})
    found.rows.update({f"facts/{name}": RowHead(seq, False, (), (), 0) for name, seq in alive})
    return found


def append_to(path, *changes, forgotten_at=""):
    """Return the ledger after these changes were appended."""
    ledger = ErasureLedger(path / "ada.jsonl")
    ledger.append(changes, forgotten_at)
    return ledger


def reopen(path, *changes, alive=(), forgotten_at=""):
    """Return the ledger after the records were reopened."""
    ledger = ErasureLedger(path / "ada.jsonl")
    ledger.catch_up(ledger.read(), row_index(*changes, alive=alive), forgotten_at)
    return ledger


def last_seqs(ledger):
    """Return the seq of the last deletion or revival of each row, read from the file."""
    return {
        line.key.partition("/")[2]: line.seq for line in newest(ErasureLedger(ledger.path).read()).values()
    }


def count(ledger):
    return len(ledger.path.read_bytes().splitlines())


def test_opening_the_ledger_adds_a_deletion_missing_between_others(tmp_path):
    append_to(tmp_path, deletion("a", 1), deletion("c", 3))
    ledger = reopen(tmp_path, deletion("a", 1), deletion("b", 2), deletion("c", 3))
    assert last_seqs(ledger) == {"a": 1, "b": 2, "c": 3} and count(ledger) == 3


def test_opening_a_complete_ledger_does_not_change_the_file(tmp_path):
    ledger = append_to(tmp_path, deletion("a", 1), deletion("b", 2))
    before = ledger.path.read_bytes()
    assert reopen(tmp_path, deletion("a", 1), deletion("b", 2)).path.read_bytes() == before


def test_opening_the_ledger_adds_last_deletion_of_revived_row(tmp_path):
    append_to(tmp_path, deletion("a", 1), deletion("other", 9))
    assert last_seqs(reopen(tmp_path, deletion("a", 5), deletion("other", 9))) == {"a": 5, "other": 9}


def revived_names(ledger):
    return {line.key.partition("/")[2] for line in newest(ledger.read()).values() if line.revived}


def revival(name, seq, deleted_at):
    return Change(f"facts/{name}", deletion(name, deleted_at).head, RowHead(seq, False, (), (), 0), b"")


def test_ledger_records_the_revival_of_a_deleted_row(tmp_path):
    ledger = append_to(tmp_path, deletion("a", 1), deletion("b", 2))
    ledger.append([revival("a", 3, deleted_at=1)])
    ledger.append([revival("b", 4, deleted_at=2), deletion("b", 5)])
    assert last_seqs(ledger) == {"a": 3, "b": 5} and revived_names(ledger) == {"a"}
    assert last_seqs(reopen(tmp_path, deletion("b", 5), alive=[("a", 9)])) == {"a": 3, "b": 5}
    assert revived_names(ledger) == {"a"}


def test_opening_the_ledger_adds_a_missing_revival(tmp_path):
    ledger = append_to(tmp_path, deletion("a", 1), deletion("b", 2))
    assert last_seqs(reopen(tmp_path, deletion("b", 2), alive=[("a", 3)])) == {"a": 3, "b": 2}
    assert revived_names(ledger) == {"a"}
    before = ledger.path.read_bytes()
    assert reopen(tmp_path, deletion("b", 2), alive=[("a", 3)]).path.read_bytes() == before


def test_revival_of_an_expired_row_is_compacted_away(tmp_path):
    ledger = append_to(tmp_path, deletion("a", 1, expired=True), deletion("b", 2))
    ledger.append([revival("a", 3, deleted_at=1), revival("b", 4, deleted_at=2)])
    append_to(tmp_path, deletion("c", 5))
    assert last_seqs(reopen(tmp_path, deletion("c", 5), alive=[("a", 3), ("b", 4)])) == {"b": 4, "c": 5}


def test_opening_adds_missing_forget_everything_line_that_spares_newer_rows(tmp_path):
    ledger = reopen(tmp_path, deletion("a", 1), deletion("b", 5), alive=[("new", 4)], forgotten_at="2026")
    assert last_seqs(ledger) == {"a": 1, "b": 5, "": 0}
    assert max(line.forgotten_at for line in ledger.read()) == "2026"
    before = ledger.path.read_bytes()
    again = reopen(tmp_path, deletion("a", 1), deletion("b", 5), alive=[("new", 4)], forgotten_at="2026")
    assert again.path.read_bytes() == before


def test_failed_append_is_repeated_with_the_next_append(tmp_path):
    blocker = tmp_path / "ledger"
    blocker.touch()
    ledger = ErasureLedger(blocker / "ada.jsonl")
    with pytest.raises(OSError, match="ledger"):
        ledger.append([deletion("a", 1)])
    blocker.unlink()
    ledger.append([deletion("b", 2)])
    assert last_seqs(ledger) == {"a": 1, "b": 2}


def test_append_after_truncated_line_starts_a_new_line(tmp_path):
    ledger = append_to(tmp_path, deletion("a", 1))
    first = ledger.path.read_bytes()
    complete = append_to(tmp_path, deletion("b", 2)).path.read_bytes()
    for cut in range(len(first) + 1, len(complete)):
        ledger.path.write_bytes(complete[:cut])
        assert last_seqs(append_to(tmp_path, deletion("c", 3))).keys() >= {"a", "c"}
        assert last_seqs(reopen(tmp_path, deletion("a", 1), deletion("b", 2), deletion("c", 3))) == {
            "a": 1,
            "b": 2,
            "c": 3,
        }


@pytest.mark.parametrize(
    "content", [b"\0" * 30, b'{"seq":2,"key":"\xff"}', b"[]", b'{"seq":"x"}', b""], ids=str
)
def test_unreadable_line_is_skipped(tmp_path, content):
    ledger = append_to(tmp_path, deletion("a", 1))
    ledger.path.write_bytes(ledger.path.read_bytes() + content + b"\n")
    assert last_seqs(append_to(tmp_path, deletion("b", 2))) == {"a": 1, "b": 2}


def test_opening_the_ledger_removes_outdated_deletions(tmp_path):
    for seq in range(1, 31, 3):
        append_to(tmp_path, deletion("a", seq), deletion("b", seq + 1), forgotten_at=f"20{seq:02d}")
    ledger = reopen(tmp_path, deletion("a", 28), deletion("b", 29), forgotten_at="2028")
    assert last_seqs(ledger) == {"a": 28, "b": 29, "": 29} and count(ledger) == 3
    assert ledger.last_seq() == 29 and [p.name for p in tmp_path.iterdir()] == ["ada.jsonl"]


def test_two_forget_lines_are_combined():
    lines = [LedgerLine(7, forgotten_at="2025"), LedgerLine(0, forgotten_at="2026")]
    assert list(newest(lines).values()) == [LedgerLine(7, forgotten_at="2026")]


def test_deletion_line_is_kept_beside_a_later_forget_line(tmp_path):
    for seq in range(1, 5):
        append_to(tmp_path, deletion("a", seq))
    append_to(tmp_path, forgotten_at="2026")
    assert last_seqs(reopen(tmp_path, deletion("a", 4), forgotten_at="2026")) == {"a": 4, "": 0}


def test_repeated_deletions_are_compacted_while_open(tmp_path):
    ledger = reopen(tmp_path)
    longest = 0
    for seq in range(1, 20 * SPARE, 100):
        ledger.append([deletion(f"f{n}", seq + n) for n in range(100)])
        longest = max(longest, count(ledger))
    assert longest <= 3 * 100 + SPARE + 100
    assert last_seqs(ledger) == {f"f{n}": seq + n for n in range(100)}


KILLED = """
import os, sys
from pathlib import Path
from vademecum.engines.duckdb import erasure_ledger as ledger
from vademecum.model.sync.transaction import RowIndex
ledger.publish_file = lambda new, path: os._exit(9)
one = ledger.ErasureLedger(Path(sys.argv[1]))
one.catch_up(one.read(), RowIndex(), "")
"""


def test_kill_during_compaction_loses_no_line(tmp_path):
    for seq in range(1, 11):
        ledger = append_to(tmp_path, deletion("a", seq), deletion("b", seq))
    before = ledger.path.read_bytes()
    assert subprocess.run([sys.executable, "-c", KILLED, ledger.path], check=False).returncode == 9
    new = tmp_path / "ada.jsonl.new"
    assert ledger.path.read_bytes() == before and new.exists()
    new.write_bytes(new.read_bytes()[:-5])  # as if the process had been killed during the write
    ledger = reopen(tmp_path, deletion("a", 10), deletion("b", 10))
    assert last_seqs(ledger) == {"a": 10, "b": 10} and count(ledger) == 2 and not new.exists()


def test_failed_compaction_leaves_the_ledger_complete(tmp_path):
    for seq in range(1, 11):
        append_to(tmp_path, deletion("a", seq))
    (tmp_path / "ada.jsonl.new").mkdir()
    ledger = reopen(tmp_path, deletion("a", 10))
    ledger.append([deletion("b", 11)])
    assert last_seqs(ledger) == {"a": 10, "b": 11}


def test_deleting_the_ledger_removes_a_partial_compaction(tmp_path):
    ledger = append_to(tmp_path, deletion("a", 1))
    (tmp_path / "ada.jsonl.new").write_bytes(b"facts/a")
    ledger.delete()
    assert list(tmp_path.iterdir()) == []


def test_expired_rows_leave_the_ledger_with_their_tombstones(
    tmp_path,
):
    ledger = append_to(tmp_path, *(deletion(f"old{n}", n, expired=True) for n in range(1, 9)))
    ledger.append([deletion("old1", 9), deletion("mine", 10)])  # deleted by the user, so they do not expire
    remaining = [deletion(f"old{n}", n) for n in range(2, 9)]
    assert len(last_seqs(reopen(tmp_path, *remaining, deletion("old1", 9), deletion("mine", 10)))) == 9
    ledger.append([deletion("old3", 11, expired=True)])
    ledger.append([deletion("last", 12, expired=True)])
    assert last_seqs(reopen(tmp_path, deletion("old2", 2))) == {"old1": 9, "mine": 10, "old2": 2, "last": 12}
    assert reopen(tmp_path).last_seq() == 12


@pytest.mark.parametrize(
    "damaged",
    [
        b"\0" * 30,
        b"[]",
        b'{"seq":"x"}',
        b'{"seq":4503599627370497,"key":"facts/a"}',
        b'{"seq":-4,"key":"facts/a"}',
    ],
    ids=str,
)
def test_damaged_line_is_reported_and_survives_compaction(tmp_path, damaged):
    ledger = append_to(tmp_path, deletion("a", 1))
    with ledger.path.open("ab") as file:
        file.write(damaged + b"\n")
    for seq in range(2, 20):
        append_to(tmp_path, deletion("a", seq))
    assert ledger.damaged_lines() == [2]
    ledger = reopen(tmp_path, deletion("a", 19))
    assert last_seqs(ledger) == {"a": 19} and ledger.last_seq() == 19 and ledger.damaged_lines() == [2]
    assert count(ledger) == 2


def test_flipped_bit_damages_only_its_line(tmp_path):
    complete = append_to(tmp_path, deletion("a", 12), deletion("b", 34)).path.read_bytes()
    first = complete.index(b"\n")
    facts = {("facts/a", 12), ("facts/b", 34)}
    for at in range(first):
        for bit in range(8):
            content = bytearray(complete)
            content[at] ^= 1 << bit
            (tmp_path / "ada.jsonl").write_bytes(content)
            ledger = ErasureLedger(tmp_path / "ada.jsonl")
            found = {(line.key, line.seq) for line in ledger.read()}
            assert ("facts/b", 34) in found and found <= facts, bytes(content)
            assert found == facts or ledger.damaged_lines(), bytes(content)


def test_line_of_an_older_version_needs_no_checksum(tmp_path):
    (tmp_path / "ada.jsonl").write_bytes(b'{"seq":3,"key":"facts/a"}\n')
    ledger = reopen(tmp_path, deletion("a", 3))
    assert last_seqs(ledger) == {"a": 3} and ledger.damaged_lines() == []


def test_truncated_line_is_not_reported_as_damaged(tmp_path):
    complete = append_to(tmp_path, deletion("a", 1)).path.read_bytes()
    for cut in range(1, len(complete) - 1):
        (tmp_path / "ada.jsonl").write_bytes(complete[:cut])
        assert append_to(tmp_path, deletion("b", 2)).damaged_lines() == [], complete[:cut]


def test_doctor_names_damaged_lines(tmp_path):
    (tmp_path / "ledger").mkdir()
    ledger = append_to(tmp_path / "ledger", deletion("a", 1))
    assert _examine_ledgers(tmp_path).ok
    with ledger.path.open("ab") as file:
        file.write(b'{"seq":9007199254740993,"key":"facts/b"}\n')
    finding = _examine_ledgers(tmp_path)
    assert not finding.ok and "ledger/ada.jsonl line 2" in finding.detail
