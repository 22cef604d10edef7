"""`vademecum doctor` reports events that wait in the spool: their number, their age and the reason."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from cli.command_runner import Home
from unprivileged_user import without_root_access
from vademecum.cli.doctor import _examine_spool
from vademecum.model.agents.spool_layout import REASON_FILE
from wait_until import soon_outside

EMAIL = "ada@example.org"
STEP = json.dumps({"hook_event_name": "Stop", "last_assistant_message": "The canary is fed."})


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "data", {"tiers": json.dumps({"FREE": {"storageBytes": 1}})})
    home.add(EMAIL, "FREE")
    return home


def found(home: Home) -> dict[str, Any]:
    (one,) = [one for one in home.run("doctor", "--json").json if one["check"] == "agent events"]
    return dict(one)


def record(home: Home) -> str:
    done = home.run("record", "--user", EMAIL, stdin=STEP)
    assert (done.code, done.out) == (0, "")
    return done.err


def test_doctor_reports_waiting_events_and_the_reason(home: Home) -> None:
    assert found(home) == {"check": "agent events", "ok": True, "detail": "none wait"}
    assert [record(home) for _ in range(3)] == [""] * 3
    today = time.strftime("%Y-%m-%d %H:")
    waits = found(home)
    assert waits["ok"] and f"3 of {EMAIL} waiting since {today}" in waits["detail"]
    assert "when a server runs" in waits["detail"]
    with home.serve():
        why = home.data / "spool" / quote(EMAIL, safe="") / REASON_FILE
        soon_outside(why.exists)
        assert "not ingested yet: " in record(home) and "full" in record(home)
        waits = found(home)
    assert not waits["ok"] and f"5 of {EMAIL} waiting since {today}" in waits["detail"]
    assert "full" in waits["detail"] and "canary" not in waits["detail"]


def test_doctor_reports_rejected_events(home: Home) -> None:
    aside = home.data / "spool" / "rejected" / "nobody"
    aside.mkdir(parents=True)
    (aside / "x.json").write_text("{")
    finding = found(home)
    assert finding["ok"] and finding["detail"].startswith("1 in ")


def test_doctor_reports_unreadable_spool_folder(tmp_path: Path) -> None:
    names = ("a-shut", "a-half-shut", quote(EMAIL, safe=""))
    shut, half_shut, other = (tmp_path / "spool" / name for name in names)
    for folder in (shut, half_shut, other):
        folder.mkdir(parents=True)
        (folder / "x.json").write_text(STEP)
    shut.chmod(0)
    half_shut.chmod(0o400)  # allows listing the folder, but not opening its files
    with without_root_access():
        finding = _examine_spool(tmp_path, running=True)
    assert (
        not finding.ok
        and f"1 of {EMAIL} waiting" in finding.detail
        and "1 of a-half-shut waiting" in finding.detail
    )
    assert "spool/a-shut of the server's spool cannot be read (Permission denied)" in finding.detail
