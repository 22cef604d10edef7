"""A data folder with one damaged item: the server starts or explains the remedy. It loses no data and brings back no
deleted data.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from property.rows import fact
from server.in_process_server import check_problem, reconnect, run, serve
from vademecum.engines.duckdb.paths import user_ledger
from vademecum.errors import Broken
from vademecum.model.records.paths import user_folder
from vademecum.model.sync.transaction import SEQ_JUMP

GARBAGE = b"\xff\xfe \0 {"


def _folder(path: Path) -> None:
    path.unlink(missing_ok=True)
    (path / "x").mkdir(parents=True)


def _garbage(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(GARBAGE)


async def _start(data: Path) -> None:
    async with serve(data):
        pass


@pytest.mark.parametrize("damage", [_folder, _garbage])
@pytest.mark.parametrize("name", ["model", "reembed.json", "jobs"])
def test_failed_server_start_names_damaged_file_and_remedy(
    tmp_path: Path, name: str, damage: Callable[[Path], None]
) -> None:
    run(lambda: _start(tmp_path))
    if name == "jobs":
        name = "jobs/erase"
        (tmp_path / name).rmdir()
        damage = _garbage
    damage(tmp_path / name)
    with pytest.raises(Broken, match="Nothing was changed") as said:
        run(lambda: _start(tmp_path))
    assert str(tmp_path / name) in said.value.message


def test_server_starts_despite_leftover_that_cannot_be_removed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serve(tmp_path) as h:
            ada, bob = await h.person(), await h.person()
            for one in (ada, bob):
                assert await one.push("facts", fact("f1")) == []
        (user_folder(tmp_path, ada.id) / "records.duckdb.new").mkdir()
        async with serve(tmp_path) as h:
            reconnect(h, bob)
            assert set(await bob.live("facts")) == {"f1"}

    run(scenario)


def test_server_start_removes_stray_job_markers(tmp_path: Path) -> None:
    async def scenario() -> None:
        await _start(tmp_path)
        odd, link = tmp_path / "jobs" / "erase" / "odd name é.tmp", tmp_path / "jobs" / "erase" / "link"
        odd.touch()
        link.symlink_to(tmp_path / "nowhere")
        async with serve(tmp_path):
            async with asyncio.timeout(60):
                while odd.exists() or link.is_symlink():
                    await asyncio.sleep(0.02)

    run(scenario)


@pytest.mark.parametrize("content", [b"", os.urandom(9000)])
def test_damaged_template_is_not_used_for_new_accounts(tmp_path: Path, content: bytes) -> None:
    async def scenario() -> None:
        await _start(tmp_path)
        (template,) = tmp_path.glob(".template-*")
        template.write_bytes(content)
        (tmp_path / ".template-0.duckdb").mkdir()
        async with serve(tmp_path) as h:
            ada = await h.person()
            assert await ada.push("facts", fact("f1")) == []

    run(scenario)


def test_missing_records_file_is_not_replaced_by_an_empty_file(tmp_path: Path) -> None:
    data, saved = tmp_path / "data", tmp_path / "backup"

    async def scenario() -> None:
        async with serve(data) as h:
            ada, bob = await h.person(), await h.person()
            await ada.push("facts", fact("f1"), fact("f2"))
            await bob.push("facts", fact("f1"))
            await h.services.backup.create(saved)
            await ada.push("facts", {**fact("f1"), "_deleted": True}, assumed=fact("f1"))
        for one in (ada, bob):
            (user_folder(data, one.id) / "records.duckdb").unlink()
        async with serve(data) as h:
            for one in (ada, bob):
                reconnect(h, one)
                said = check_problem(
                    await one.call("GET", "/v1/sync/facts/0/pull?lwt=0&limit=1"), 500, "BROKEN"
                )
                detail = said["detail"]
                assert (await one.call("GET", "/v1/me")).json()["problem"] == detail, (
                    "the profile, which doctor reads, must have the same explanation"
                )
                assert "vademecum restore" in detail and str(user_ledger(data, one.id).path) in detail
            done = await h.services.backup.create(tmp_path / "without them")
            name_of = h.services.accounts.name_of
            assert {one.email for one in done.damaged} == {name_of(ada.id), name_of(bob.id)}
            assert all("vademecum restore" in one.problem for one in done.damaged)
            await h.services.restore.restore_all(saved)
            async with h.services.users.open(ada.id) as store:
                assert store.seq > SEQ_JUMP, "a seq must not be reused"
            assert set(await ada.live("facts")) == {"f2"} and set(await bob.live("facts")) == {"f1"}

    run(scenario)


def test_inaccessible_account_folder_is_reported_and_other_accounts_work(tmp_path, monkeypatch):
    """A command that another system user ran may have created such a folder.

    The test simulates the missing permission because tests may run as root.
    """
    exists = Path.exists

    async def scenario() -> None:
        async with serve(tmp_path) as h:
            ada, bob = await h.person(), await h.person()
            shut = user_folder(tmp_path, ada.id)

            def guarded(path: Path) -> bool:
                if path.is_relative_to(shut):
                    raise PermissionError(13, "Permission denied", str(path))
                return exists(path)

            monkeypatch.setattr(Path, "exists", guarded)
            told = (await ada.call("GET", "/v1/me")).json()["problem"]
            assert (
                str(shut) in told
                and "Permission denied" in told
                and "other accounts are not affected" in told
            )
            assert (await bob.call("GET", "/v1/me")).json()["problem"] is None

    run(scenario)


def test_missing_records_of_account_with_ledger_are_an_error(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with serve(tmp_path) as h:
            bob, carl = await h.person(), await h.person()
            assert await bob.push("facts", fact("f1")) == []
        shutil.rmtree(tmp_path / "users")  # as if the disk were not mounted
        async with serve(tmp_path) as h:
            for one in (bob, carl):
                reconnect(h, one)
            assert "problem" in (await bob.call("GET", "/v1/me")).json()
            (damaged,) = (await h.services.backup.create(tmp_path.with_name("of nothing"))).damaged
            assert damaged.email == h.services.accounts.name_of(bob.id) and "is missing" in damaged.problem
            assert await carl.push("facts", fact("f2")) == [], "an account without rows must not be blocked"
            user_ledger(tmp_path, bob.id).path.unlink()
            assert await bob.live("facts") == {}

    run(scenario)


def test_server_start_does_not_recreate_missing_accounts_file(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serve(tmp_path) as h:
            ada = await h.person()
            assert await ada.push("facts", fact("f1")) == []
        (tmp_path / "accounts.duckdb").unlink()
        with pytest.raises(Broken, match=r"accounts\.duckdb is missing"):
            async with serve(tmp_path):
                pass
        assert not (tmp_path / "accounts.duckdb").exists()

    run(scenario)


def test_unreadable_ledger_blocks_only_its_own_account(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serve(tmp_path) as h:
            ada, bob = await h.person(), await h.person()
            for one in (ada, bob):
                await one.push("facts", fact("f1"))
        _folder(user_ledger(tmp_path, ada.id).path)
        async with serve(tmp_path) as h:
            for one in (ada, bob):
                reconnect(h, one)
            detail = check_problem(
                await ada.call("GET", "/v1/sync/facts/0/pull?lwt=0&limit=1"), 500, "BROKEN"
            )["detail"]
            assert (
                str(user_ledger(tmp_path, ada.id).path) in detail
                and "other accounts are not affected" in detail
            )
            assert set(await bob.live("facts")) == {"f1"}

    run(scenario)


def test_restore_ignores_invalid_ledger_lines(tmp_path: Path) -> None:
    data, saved = tmp_path / "data", tmp_path / "backup"

    async def scenario() -> None:
        async with serve(data) as h:
            ada = await h.person()
            await ada.push("facts", fact("f1"), fact("f2"))
            await h.services.backup.create(saved)
            await ada.push("facts", {**fact("f1"), "_deleted": True}, assumed=fact("f1"))
            with user_ledger(data, ada.id).path.open("ab") as file:
                file.write(b'{"seq":9,"key":"nowhere/x"}\n["x"]\n{"seq":-4}\n\xff\n{"seq":9,"key":"fac')
            await h.services.restore.restore_all(saved)
            assert set(await ada.live("facts")) == {"f2"}

    run(scenario)
