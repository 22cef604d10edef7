"""Recovery of fenced accounts: interrupted recoveries, damaged logs, and files that fail again afterwards."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import duckdb
import pytest

from property.rows import fact
from server.data.test_damaged_accounts import file_of
from server.in_process_server import Harness, Person, run, serve
from vademecum.engines.duckdb import recovery
from vademecum.engines.duckdb.user_database import publish_file
from vademecum.engines.duckdb.user_store import remove_leftovers
from wait_until import soon

LOG = "records.duckdb.wal"


async def copy_with_log(data: Path, ada: Person, to: Path) -> None:
    """Add rows and copy the account's folder while the log contains their commits."""
    for number in range(4):
        await ada.add("facts", fact(f"f{number}", key=f"k{number}"))
    shutil.copytree(file_of(data, ada).parent, to)
    assert (to / LOG).stat().st_size > 0


async def put_back(h: Harness, ada: Person, copy: Path) -> None:
    """Detach the account's file and replace its folder by `copy`."""
    async with h.services.users.detached(ada.id) as folder:
        shutil.copytree(copy, folder, dirs_exist_ok=True)


async def recovered(h: Harness, ada: Person) -> None:
    await ada.call("GET", "/v1/sync/facts/0/pull?lwt=0&limit=1")

    async def is_open() -> bool:
        return h.services.users.fences.reason(ada.id) is None

    await soon(is_open)


def test_recovery_completes_after_kill_before_log_removal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with serve(tmp_path) as h:
            ada = await h.person()
            await copy_with_log(tmp_path, ada, tmp_path / "copy")
            await put_back(h, ada, tmp_path / "copy")
            async with h.services.users.detached(ada.id) as folder:
                with monkeypatch.context() as patch:
                    patch.setattr(recovery, "_publish", lambda new, path, log: publish_file(new, path))
                    await recovery.recover(folder / "records.duckdb", set())
                assert (folder / LOG).exists()
            h.services.users.fences.fence(ada.id, "it was damaged")
            await recovered(h, ada)
            assert set(await ada.live("facts")) == {"f0", "f1", "f2", "f3"}

    run(scenario)


def test_recovery_truncates_damaged_log_of_fenced_account(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serve(tmp_path) as h:
            ada = await h.person()
            await copy_with_log(tmp_path, ada, tmp_path / "copy")
            log = tmp_path / "copy" / LOG
            damaged = log.read_bytes()[:-30] + bytes(30)
            log.write_bytes(damaged)
            async with h.services.users.open(ada.id) as store:
                epoch, seq = store.epoch, store.seq
            await put_back(h, ada, tmp_path / "copy")
            h.services.users.fences.fence(ada.id, "it was damaged")
            await recovered(h, ada)
            assert {"f0", "f1", "f2"} <= set(await ada.live("facts"))
            assert (file_of(tmp_path, ada).parent / f"{LOG}.damaged").read_bytes() == damaged
            async with h.services.users.open(ada.id) as store:
                assert store.epoch != epoch and store.seq > seq + 1000

    run(scenario)


def test_detach_keeps_the_log_of_a_replaced_file(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serve(tmp_path) as h:
            ada = await h.person()
            await copy_with_log(tmp_path, ada, tmp_path / "copy")
            folder = file_of(tmp_path, ada).parent
            for name in ("records.duckdb", LOG):
                shutil.copyfile(tmp_path / "copy" / name, folder / f"{name}.copied")
                (folder / f"{name}.copied").replace(folder / name)
            log = (folder / LOG).read_bytes()
            async with h.services.users.detached(ada.id):
                assert (folder / LOG).read_bytes() == log
                assert not (folder / f"{LOG}.moved").exists()
            assert set(await ada.live("facts")) == {"f0", "f1", "f2", "f3"}

    run(scenario)


def test_leftover_removal_moves_renamed_log_back(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serve(tmp_path) as h:
            ada = await h.person()
            await copy_with_log(tmp_path, ada, tmp_path / "copy")
            await put_back(h, ada, tmp_path / "copy")
            folder = file_of(tmp_path, ada).parent
            (folder / LOG).replace(folder / f"{LOG}.moved")
            remove_leftovers(h.services.settings.data)
            assert set(await ada.live("facts")) == {"f0", "f1", "f2", "f3"}

    run(scenario)


def test_recovery_of_file_with_invalid_segment_is_attempted_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        attempts = 0

        async def counted(path: Path, children: set[asyncio.subprocess.Process]) -> None:
            nonlocal attempts
            attempts += 1
            await recover(path, children)

        recover = recovery.recover
        monkeypatch.setattr(recovery, "recover", counted)
        async with serve(tmp_path) as h:
            ada = await h.person()
            await ada.add("facts", fact("f1"))
            async with h.services.users.detached(ada.id) as folder:
                with duckdb.connect(folder / "records.duckdb") as connection:
                    connection.execute("UPDATE packs SET checksum = NULL, heads = replace(heads, '\"', '')")
            for _ in range(4):
                assert (await ada.call("GET", "/v1/sync/facts/0/pull?lwt=0&limit=1")).status_code == 503
                await soon(lambda: not h.services.users.recovery._tasks)
            assert attempts == 1 and h.services.users.fences.reason(ada.id) is not None

    run(scenario)


def test_account_fenced_again_after_recovery_is_not_recovered_immediately(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serve(tmp_path) as h:
            ada = await h.person()
            await ada.add("facts", fact("f1"))
            h.services.users.fences.fence(ada.id, "it was damaged")
            await recovered(h, ada)
            await soon(lambda: not h.services.users.recovery._tasks)
            h.services.users.fences.fence(ada.id, "it was damaged again")
            await ada.call("GET", "/v1/sync/facts/0/pull?lwt=0&limit=1")
            assert not h.services.users.recovery._tasks

    run(scenario)
