"""The doctor reports damaged and missing high-water marks. The check of the accounts then repairs the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cli.command_runner import Home
from migrations.test_released_data_folders import STORED, unpack
from property.rows import session
from wait_until import soon_outside


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


def test_doctor_reports_accounts_without_mark_until_they_are_opened(tmp_path: Path) -> None:
    home = Home(tmp_path / "data")
    file = home.data / "ledger" / "marks"
    ids = [home.add(email) for email in ("ada@example.org", "bob@example.org", "never-used@example.org")]
    with home.serve() as server:
        for email, rows in (
            ("ada@example.org", [{"newDocumentState": session("s")}]),
            ("bob@example.org", []),
        ):
            with server.client(home.token(email)) as client:
                assert client.post("/v1/sync/sessions/1/push", json=rows).json() == []
        assert marks(home)["ok"]
    assert marks(home) == {"check": "marks", "ok": True, "detail": "complete"}
    file.unlink()
    found = marks(home)
    assert not found["ok"] and "lacks 2 accounts" in found["detail"] and "vademecum epoch" in found["detail"]
    assert ids[0] in found["detail"] and ids[1] in found["detail"] and ids[2] not in found["detail"]
    assert marks(home)["ok"], "the first run opened the accounts, which set their marks"


def test_doctor_reports_no_missing_marks_before_first_use_after_upgrade(tmp_path: Path) -> None:
    """The first run opens the accounts, so a loss of their marks is reported from then on."""
    data, _ = unpack(STORED[0], tmp_path)  # from a version that wrote no marks
    home = Home(data)
    assert marks(home) == {"check": "marks", "ok": True, "detail": "complete"}
    with home.serve():  # the template keeps its age when the server starts again
        pass
    (data / "ledger" / "marks").unlink()
    found = marks(home)
    assert not found["ok"] and "lacks 2 accounts" in found["detail"]


def test_server_recreates_deleted_marks_file_at_next_commit(tmp_path: Path) -> None:
    home = Home(tmp_path / "data")
    home.add("ada@example.org")
    file = home.data / "ledger" / "marks"
    with home.serve() as server, server.client(home.token("ada@example.org")) as ada:
        for row_id in ("s", "t"):
            file.unlink(missing_ok=True)
            ada.post(
                "/v1/sync/sessions/1/push", json=[{"newDocumentState": session(row_id)}]
            ).raise_for_status()
            soon_outside(file.exists)
    assert marks(home)["ok"]
