"""The doctor reports damaged lines of the high-water marks. The check of the accounts then repairs the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cli.command_runner import Home


def marks(home: Home) -> dict[str, Any]:
    (one,) = [one for one in home.run("doctor", "--json").json if one["check"] == "marks"]
    return dict(one)


def test_doctor_reports_damaged_marks_before_repair(tmp_path: Path) -> None:
    home = Home(tmp_path / "data")
    home.add("ada@example.org")
    file = home.data / "ledger" / "marks"
    file.parent.mkdir(exist_ok=True)
    with file.open("ab") as out:
        out.write(b"\nada 9 00000000\nada 9\n")
    found = marks(home)
    assert not found["ok"] and "2 damaged lines" in found["detail"]
    assert marks(home)["ok"], "the first run opened the accounts, which repaired the file"
