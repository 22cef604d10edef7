"""The doctor counts requests with a checkpoint that is ahead of the records but has no valid signature."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cli.command_runner import Home

EMAIL = "ada@example.org"


def clients(home: Home) -> dict[str, Any]:
    (one,) = [one for one in home.run("doctor", "--json").json if one["check"] == "clients"]
    return dict(one)


def test_doctor_counts_unsigned_newer_checkpoints_until_new_epoch(tmp_path: Path) -> None:
    home = Home(tmp_path / "data")
    home.add_with_document(EMAIL)
    token = home.token(EMAIL)
    with home.serve() as running, running.client(token) as client:
        checkpoint = client.get("/v1/sync/facts/0/pull?lwt=0&limit=1").json()["checkpoint"]
        assert clients(home)["ok"]
        query = {"lwt": 2**40, "id": checkpoint["id"].partition(".")[0]}
        for _ in range(2):
            assert client.get("/v1/sync/facts/0/pull", params=query).status_code == 409
        found = clients(home)
        assert not found["ok"] and f"{EMAIL} (2 requests)" in found["detail"]
        home.ok("epoch", EMAIL)
        assert clients(home)["ok"]
