"""The accounts file is removed or replaced while the server runs. Commits to the attached file would be lost."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from property.rows import fact
from server.in_process_server import run, serve
from vademecum.engines.duckdb import maintenance
from vademecum.errors import Busy
from wait_until import soon

FILE = "accounts.duckdb"


@pytest.mark.parametrize("is_removed", [True, False], ids=["removed", "replaced"])
def test_missing_or_replaced_accounts_file_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_removed: bool
) -> None:
    monkeypatch.setattr(maintenance, "CHECKPOINT_EVERY_S", 0.05)

    async def scenario() -> None:
        async with serve(tmp_path) as h:
            ada = await h.person()
            path, aside = tmp_path / FILE, tmp_path / "aside"
            with capture_logs() as logs:
                path.rename(aside)
                if not is_removed:
                    shutil.copyfile(aside, path)
                await soon(lambda: any(FILE in str(entry.get("exc_info")) for entry in logs))
            ready = await ada.call("GET", "/ready")
            assert ready.status_code == 503 and f"{FILE} was removed or replaced" in ready.json()["store"]
            with pytest.raises(Busy, match=FILE):
                await h.person()
            with pytest.raises(Busy, match=FILE):  # rejects the token all the same
                await h.services.accounts.revoke_tokens(h.services.accounts.tokens_of(ada.id))
            assert (await ada.call("GET", "/v1/export")).status_code == 401
            assert path.exists() != is_removed

            aside.replace(path)
            bob = await h.person()
            await bob.add("facts", fact("f1"))
            assert (await bob.call("GET", "/ready")).status_code == 200
        async with serve(tmp_path) as h:  # the change that failed was stored with the next one
            assert [h.services.accounts.tokens_of(one.id) != [] for one in (ada, bob)] == [False, True]

    run(scenario)
