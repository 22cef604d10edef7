"""Requests of a fenced account are rejected with an explanation. Other accounts work, and a restore lifts the fence."""

from __future__ import annotations

import asyncio
from pathlib import Path

from property.rows import fact
from server.in_process_server import check_problem, reconnect, run, serve
from server.listening_server import listen, listen_on_port
from vademecum.model.records.paths import user_folder

PULL = "/v1/sync/facts/0/pull?lwt=0&limit=1"


def test_fenced_account_gets_explanation_and_other_accounts_work(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serve(tmp_path) as h:
            ada, bob = await h.person(), await h.person()
            await ada.push("facts", fact("f1"))
            h.services.users.fences.fence(ada.id, "a block of the file is corrupt")
            email = h.services.accounts.accounts[ada.id].email
        async with serve(tmp_path) as h:
            for one in (ada, bob):
                reconnect(h, one)
            detail = check_problem(await ada.call("GET", PULL), 503, "FENCED")["detail"]
            file = user_folder(tmp_path, ada.id) / "records.duckdb"
            assert email in detail and str(file) in detail and "a block of the file is corrupt" in detail
            assert f"vademecum restore BACKUP --user {email}" in detail
            assert (await ada.call("GET", "/v1/me")).json()["problem"] == detail
            assert await bob.push("facts", fact("f1")) == []
            ready = (await bob.call("GET", "/ready")).json()
            assert ready["fenced"] == 1 and ada.id not in str(ready) and email not in str(ready)
            check_problem(await bob.call("GET", "/v1/accounts"), 403, "FORBIDDEN")
            await h.services.account_service.change_admin(h.services.accounts.accounts[bob.id], admin=True)
            listed = (await bob.call("GET", "/v1/accounts")).json()
            assert [(one["email"], one["problem"]) for one in listed if one["problem"]] == [(email, detail)]
            metrics = (await bob.call("GET", "/metrics")).text
            assert "\nvademecum_fenced_accounts 1.0\n" in metrics
            assert ada.id not in metrics and email not in metrics

    run(scenario)


def test_fence_ends_open_streams_and_rejects_new_streams(tmp_path: Path) -> None:
    paths = ("/v1/sync/stream", "/v1/sync/facts/0/pullStream")

    async def scenario() -> None:
        async with serve(tmp_path) as h, listen_on_port(h.app) as url:
            ada, bob = await h.person(), await h.person()
            async with (
                listen(url, ada, paths[0]) as first,
                listen(url, ada, paths[1]) as second,
                listen(url, bob, paths[0]) as other,
            ):
                h.services.users.fences.fence(ada.id, "a block of the file is corrupt")
                async with asyncio.timeout(20):
                    await asyncio.gather(first.ended.wait(), second.ended.wait())
                for path in paths:
                    detail = check_problem(await ada.call("GET", path), 503, "FENCED")["detail"]
                    assert "a block of the file is corrupt" in detail
                await bob.add("facts", fact("f1"))
                await other.wait_until(lambda: other.rows("facts"))

    run(scenario)


def test_restore_lifts_the_fence_of_an_account(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serve(tmp_path / "data") as h:
            ada = await h.person()
            await ada.push("facts", fact("f1"))
            await h.services.backup.create(tmp_path / "saved")
            h.services.users.fences.fence(ada.id, "it is damaged")
            check_problem(await ada.call("GET", PULL), 503, "FENCED")
            await h.services.restore.restore_all(tmp_path / "saved")
            assert set(await ada.live("facts")) == {"f1"}
        async with serve(tmp_path / "data") as h:
            assert h.services.users.fences.fenced() == {}

    run(scenario)


def test_stuck_statement_of_deleted_account_does_not_end_the_process(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serve(tmp_path) as h:
            report = h.services.instance.on_damage
            assert report("an account that has left", "a statement does not end")
            assert h.services.users.fences.fenced() == {}
            for needed in ("", "#1", "accounts"):
                assert not report(needed, "a statement does not end")

    run(scenario)
