"""The ledger holds a line for all that died, whatever a crash or a full disk did to it, and no more than it needs."""

import subprocess
import sys

import pytest

from vademecum.cli.doctor import _examine_ledgers
from vademecum.engines.duckdb.erasure_ledger import SPARE, ErasureLedger, LedgerLine, newest
from vademecum.model.sync.transaction import Change, RowHead, RowIndex


def died(name, seq):
    return Change(f"facts/{name}", None, RowHead(seq, True, (), (), 0), b"")


def row_index(*changes, alive=()):
    found = RowIndex()
    found.apply({change.key: change for change in changes})
    found.rows.update({f"facts/{name}": RowHead(seq, False, (), (), 0) for name, seq in alive})
    return found


def noted(path, *changes, forgotten_at="", aged=()):
    ledger = ErasureLedger(path / "ada.jsonl")
    ledger.append(changes, forgotten_at, aged)
    return ledger


def opened(path, *changes, alive=(), forgotten_at=""):
    """The ledger as opening the records leaves it."""
    ledger = ErasureLedger(path / "ada.jsonl")
    ledger.catch_up(ledger.read(), row_index(*changes, alive=alive), forgotten_at)
    return ledger


def told(ledger):
    """Key -> seq of its last death, as somebody who reads the whole file learns it."""
    return {
        line.key.partition("/")[2]: line.seq for line in newest(ErasureLedger(ledger.path).read()).values()
    }


def count(ledger):
    return len(ledger.path.read_bytes().splitlines())


def test_a_death_that_is_missing_between_others_is_made_up_at_opening(tmp_path):
    noted(tmp_path, died("a", 1), died("c", 3))
    ledger = opened(tmp_path, died("a", 1), died("b", 2), died("c", 3))
    assert told(ledger) == {"a": 1, "b": 2, "c": 3} and count(ledger) == 3


def test_what_is_there_already_is_not_written_again(tmp_path):
    ledger = noted(tmp_path, died("a", 1), died("b", 2))
    before = ledger.path.read_bytes()
    assert opened(tmp_path, died("a", 1), died("b", 2)).path.read_bytes() == before


def test_a_row_that_came_alive_and_died_again_gets_the_line_of_its_last_death(tmp_path):
    noted(tmp_path, died("a", 1), died("other", 9))
    assert told(opened(tmp_path, died("a", 5), died("other", 9))) == {"a": 5, "other": 9}


def revived(ledger):
    return {line.key.partition("/")[2] for line in newest(ledger.read()).values() if line.revived}


def came_alive(name, seq, died_at):
    return Change(f"facts/{name}", died(name, died_at).head, RowHead(seq, False, (), (), 0), b"")


def test_of_a_row_that_came_alive_it_is_noted(tmp_path):
    ledger = noted(tmp_path, died("a", 1), died("b", 2))
    ledger.append([came_alive("a", 3, died_at=1)])
    ledger.append([came_alive("b", 4, died_at=2), died("b", 5)])
    assert told(ledger) == {"a": 3, "b": 5} and revived(ledger) == {"a"}
    assert told(opened(tmp_path, died("b", 5), alive=[("a", 9)])) == {"a": 3, "b": 5}
    assert revived(ledger) == {"a"}


def test_a_revival_that_is_missing_is_made_up_at_opening(tmp_path):
    ledger = noted(tmp_path, died("a", 1), died("b", 2))
    assert told(opened(tmp_path, died("b", 2), alive=[("a", 3)])) == {"a": 3, "b": 2}
    assert revived(ledger) == {"a"}
    before = ledger.path.read_bytes()
    assert opened(tmp_path, died("b", 2), alive=[("a", 3)]).path.read_bytes() == before


def test_the_revival_of_what_died_of_its_age_does_not_stay(tmp_path):
    ledger = noted(tmp_path, died("a", 1), died("b", 2), aged={"facts/a"})
    ledger.append([came_alive("a", 3, died_at=1), came_alive("b", 4, died_at=2)])
    noted(tmp_path, died("c", 5))
    assert told(opened(tmp_path, died("c", 5), alive=[("a", 3), ("b", 4)])) == {"b": 4, "c": 5}


def test_a_lost_forgetting_is_made_up_and_does_not_cover_what_was_written_since(tmp_path):
    ledger = opened(tmp_path, died("a", 1), died("b", 5), alive=[("new", 4)], forgotten_at="2026")
    assert told(ledger) == {"a": 1, "b": 5, "": 0}
    assert max(line.forgotten_at for line in ledger.read()) == "2026"
    before = ledger.path.read_bytes()
    again = opened(tmp_path, died("a", 1), died("b", 5), alive=[("new", 4)], forgotten_at="2026")
    assert again.path.read_bytes() == before


def test_what_could_not_be_written_is_written_with_the_next(tmp_path):
    in_the_way = tmp_path / "ledger"
    in_the_way.touch()
    ledger = ErasureLedger(in_the_way / "ada.jsonl")
    with pytest.raises(OSError, match="ledger"):
        ledger.append([died("a", 1)])
    in_the_way.unlink()
    ledger.append([died("b", 2)])
    assert told(ledger) == {"a": 1, "b": 2}


def test_wherever_a_crash_cuts_the_last_line_the_next_one_is_whole(tmp_path):
    ledger = noted(tmp_path, died("a", 1))
    first = ledger.path.read_bytes()
    whole = noted(tmp_path, died("b", 2)).path.read_bytes()
    for cut in range(len(first) + 1, len(whole)):
        ledger.path.write_bytes(whole[:cut])
        assert told(noted(tmp_path, died("c", 3))).keys() >= {"a", "c"}
        assert told(opened(tmp_path, died("a", 1), died("b", 2), died("c", 3))) == {"a": 1, "b": 2, "c": 3}


@pytest.mark.parametrize(
    "rubbish", [b"\0" * 30, b'{"seq":2,"key":"\xff"}', b"[]", b'{"seq":"x"}', b""], ids=str
)
def test_a_line_that_cannot_be_read_is_passed_over(tmp_path, rubbish):
    ledger = noted(tmp_path, died("a", 1))
    ledger.path.write_bytes(ledger.path.read_bytes() + rubbish + b"\n")
    assert told(noted(tmp_path, died("b", 2))) == {"a": 1, "b": 2}


def test_opening_a_ledger_of_mostly_older_deaths_leaves_the_last_of_each(tmp_path):
    for seq in range(1, 31, 3):
        noted(tmp_path, died("a", seq), died("b", seq + 1), forgotten_at=f"20{seq:02d}")
    ledger = opened(tmp_path, died("a", 28), died("b", 29), forgotten_at="2028")
    assert told(ledger) == {"a": 28, "b": 29, "": 29} and count(ledger) == 3
    assert ledger.last_seq() == 29 and [p.name for p in tmp_path.iterdir()] == ["ada.jsonl"]


def test_two_forgettings_become_one_that_covers_both():
    lines = [LedgerLine(7, forgotten_at="2025"), LedgerLine(0, forgotten_at="2026")]
    assert list(newest(lines).values()) == [LedgerLine(7, forgotten_at="2026")]


def test_a_key_keeps_its_line_beside_a_later_forgetting(tmp_path):
    for seq in range(1, 5):
        noted(tmp_path, died("a", seq))
    noted(tmp_path, forgotten_at="2026")
    assert told(opened(tmp_path, died("a", 4), forgotten_at="2026")) == {"a": 4, "": 0}


def test_rows_that_die_again_and_again_do_not_make_it_grow_while_it_is_open(tmp_path):
    ledger = opened(tmp_path)
    longest = 0
    for seq in range(1, 20 * SPARE, 100):
        ledger.append([died(f"f{n}", seq + n) for n in range(100)])
        longest = max(longest, count(ledger))
    assert longest <= 3 * 100 + SPARE + 100
    assert told(ledger) == {f"f{n}": seq + n for n in range(100)}


KILLED = """
import os, sys
from pathlib import Path
from vademecum.engines.duckdb import erasure_ledger as ledger
from vademecum.model.sync.transaction import RowIndex
ledger.publish_file = lambda new, path: os._exit(9)
one = ledger.ErasureLedger(Path(sys.argv[1]))
one.catch_up(one.read(), RowIndex(), "")
"""


def test_a_kill_between_the_new_file_and_its_rename_loses_nothing(tmp_path):
    for seq in range(1, 11):
        ledger = noted(tmp_path, died("a", seq), died("b", seq))
    before = ledger.path.read_bytes()
    assert subprocess.run([sys.executable, "-c", KILLED, ledger.path], check=False).returncode == 9
    new = tmp_path / "ada.jsonl.new"
    assert ledger.path.read_bytes() == before and new.exists()
    new.write_bytes(new.read_bytes()[:-5])  # killed a little earlier
    ledger = opened(tmp_path, died("a", 10), died("b", 10))
    assert told(ledger) == {"a": 10, "b": 10} and count(ledger) == 2 and not new.exists()


def test_a_ledger_that_cannot_be_written_anew_stays_whole_and_in_use(tmp_path):
    for seq in range(1, 11):
        noted(tmp_path, died("a", seq))
    (tmp_path / "ada.jsonl.new").mkdir()
    ledger = opened(tmp_path, died("a", 10))
    ledger.append([died("b", 11)])
    assert told(ledger) == {"a": 10, "b": 11}


def test_an_account_that_leaves_leaves_no_half_written_ledger_either(tmp_path):
    ledger = noted(tmp_path, died("a", 1))
    (tmp_path / "ada.jsonl.new").write_bytes(b"facts/a")
    ledger.delete()
    assert list(tmp_path.iterdir()) == []


def test_what_died_of_its_age_is_known_until_its_tombstone_is_gone_and_what_a_person_deleted_for_ever(
    tmp_path,
):
    ledger = noted(
        tmp_path, *(died(f"old{n}", n) for n in range(1, 9)), aged={f"facts/old{n}" for n in range(1, 9)}
    )
    ledger.append([died("old1", 9), died("mine", 10)])  # by a person
    still = [died(f"old{n}", n) for n in range(2, 9)]
    assert len(told(opened(tmp_path, *still, died("old1", 9), died("mine", 10)))) == 9
    ledger.append([died("old3", 11)], aged={"facts/old3"})
    ledger.append([died("last", 12)], aged={"facts/last"})
    assert told(opened(tmp_path, died("old2", 2))) == {"old1": 9, "mine": 10, "old2": 2, "last": 12}
    assert opened(tmp_path).last_seq() == 12


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
def test_damaged_line_is_reported_and_stays_through_compaction(tmp_path, damaged):
    ledger = noted(tmp_path, died("a", 1))
    with ledger.path.open("ab") as file:
        file.write(damaged + b"\n")
    for seq in range(2, 20):
        noted(tmp_path, died("a", seq))
    assert ledger.damaged_lines() == [2]
    ledger = opened(tmp_path, died("a", 19))
    assert told(ledger) == {"a": 19} and ledger.last_seq() == 19 and ledger.damaged_lines() == [2]
    assert count(ledger) == 2


def test_any_flipped_bit_damages_no_other_line_and_changes_no_fact(tmp_path):
    whole = noted(tmp_path, died("a", 12), died("b", 34)).path.read_bytes()
    first = whole.index(b"\n")
    facts = {("facts/a", 12), ("facts/b", 34)}
    for at in range(first):
        for bit in range(8):
            content = bytearray(whole)
            content[at] ^= 1 << bit
            (tmp_path / "ada.jsonl").write_bytes(content)
            ledger = ErasureLedger(tmp_path / "ada.jsonl")
            found = {(line.key, line.seq) for line in ledger.read()}
            assert ("facts/b", 34) in found and found <= facts, bytes(content)
            assert found == facts or ledger.damaged_lines(), bytes(content)


def test_line_of_an_older_version_needs_no_checksum(tmp_path):
    (tmp_path / "ada.jsonl").write_bytes(b'{"seq":3,"key":"facts/a"}\n')
    ledger = opened(tmp_path, died("a", 3))
    assert told(ledger) == {"a": 3} and ledger.damaged_lines() == []


def test_line_that_a_crash_cut_short_is_not_damaged(tmp_path):
    whole = noted(tmp_path, died("a", 1)).path.read_bytes()
    for cut in range(1, len(whole) - 1):
        (tmp_path / "ada.jsonl").write_bytes(whole[:cut])
        assert noted(tmp_path, died("b", 2)).damaged_lines() == [], whole[:cut]


def test_doctor_names_the_lines_of_a_ledger_that_are_damaged(tmp_path):
    (tmp_path / "ledger").mkdir()
    ledger = noted(tmp_path / "ledger", died("a", 1))
    assert _examine_ledgers(tmp_path).ok
    with ledger.path.open("ab") as file:
        file.write(b'{"seq":9007199254740993,"key":"facts/b"}\n')
    finding = _examine_ledgers(tmp_path)
    assert not finding.ok and "ledger/ada.jsonl line 2" in finding.detail
