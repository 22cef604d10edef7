"""The doctor reports addresses that seem to be proxies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cli.command_runner import Home
from no_rate_limits import RATES_JSON

LIMIT = 200  # reads per minute


def proxies(home: Home) -> dict[str, Any]:
    (one,) = [one for one in home.run("doctor", "--json").json if one["check"] == "proxies"]
    return dict(one)


def test_doctor_names_address_over_shared_limit_and_proxy_setting(tmp_path: Path) -> None:
    home = Home(tmp_path / "data", {"rates": json.dumps({**json.loads(RATES_JSON), "read": LIMIT})})
    home.add("ada@example.org")
    with home.serve() as running:
        assert proxies(home)["ok"]
        with running.client() as anyone:
            for _ in range(3 * LIMIT):
                assert anyone.get("/health").status_code == 200
        found = proxies(home)
    assert not found["ok"]
    assert "127.0.0.1 exceeded" in found["detail"] and "--trusted-proxies" in found["detail"]
