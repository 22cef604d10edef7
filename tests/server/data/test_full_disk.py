"""A temporarily full disk: the server explains rejected requests, loses no data and continues once there is space.

After a failed CHECKPOINT, DuckDB rejects all statements on the file until it is detached and attached again.
"""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from structlog.testing import capture_logs

from property.rows import dead, fact
from server.data.export_reader import exported, rows_of
from server.in_process_server import Harness, Person, browser, check_problem, reconnect, run, serve
from vademecum.cli.doctor import _examine_erasures
from vademecum.errors import Busy, NotYetErased
from vademecum.model.sync.transaction import SEQ_JUMP
from vademecum.services.data.erase import scan
from vademecum.services.runtime import job_queue
from wait_until import soon

LOG = 5  # number of pushes, each of which adds one megabyte to the log
FULL = 3 * 2**20


@contextmanager
def full(at: int = FULL) -> Iterator[None]:
    """Make writes fail as on a full disk, by limiting the size of files to `at` bytes."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (at, limit[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)


async def with_a_long_log(h: Harness) -> Person:
    ada = await h.person()
    for number in range(LOG):
        await ada.add("facts", *(fact(f"f{number}-{i}", value="x" * 100_000) for i in range(10)))
    return ada


async def seq(h: Harness, person: Person) -> int:
    async with h.services.users.open(person.id) as store:
        return store.seq


def log_of(data: Path, person: Person) -> Path:
    [log] = data.glob(f"users/*/{person.id}/records.duckdb.wal")
    return log


async def ready(h: Harness) -> tuple[int, str]:
    async with browser(h) as anonymous:
        answer = await anonymous.get("/ready")
        return answer.status_code, answer.json()["store"]


def test_failed_duckdb_checkpoint_keeps_account_readable_until_space_returns(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with serve(tmp_path) as h:
            await h.services.inference.get()
            ada, bob = await with_a_long_log(h), await h.person()
            await with_a_long_log(h)
            before = await seq(h, ada)
            log = log_of(tmp_path, ada)
            with full():
                await h.services.users.checkpoint_idle()
                assert log.stat().st_size > FULL
                status, store = await ready(h)
                assert status == 503 and "cannot write the changes of 2 accounts" in store
                assert len(await ada.pull("facts")) == 10 * LOG
                batch = [{"newDocumentState": fact("late")}]
                answer = await ada.call("POST", "/v1/sync/facts/0/push", json=batch)
                assert "disk" in check_problem(answer, 503, "BUSY")["detail"]
                assert int(answer.headers["retry-after"]) > 0
                await bob.add("facts", fact("b"))
            await ada.add("facts", fact("late"))
            assert await seq(h, ada) == before + 1, "seq must not jump as after a crash"
            await h.services.users.checkpoint_idle()
            assert not log.exists() or log.stat().st_size < 100_000
            assert await ready(h) == (200, "ok")
        async with serve(tmp_path) as h:
            reconnect(h, ada)
            assert len(await ada.live("facts")) == 10 * LOG + 1

    run(scenario)


def test_opening_and_rewriting_files_fail_only_while_disk_is_full(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with serve(tmp_path) as h:
            ada, bob = await with_a_long_log(h), await h.person()
            with full(20_000):
                batch = [{"newDocumentState": fact("b")}]
                answer = await bob.call("POST", "/v1/sync/facts/0/push", json=batch)
                assert "The disk may be full" in check_problem(answer, 503, "BUSY")["detail"]
                with pytest.raises(Busy, match="The disk may be full"):
                    await h.services.users.rewrite(ada.id)
            await bob.add("facts", fact("b"))
            await h.services.users.rewrite(ada.id)
            assert len(await ada.live("facts")) == 10 * LOG
            with full(4096), pytest.raises(Busy, match="The disk may be full"):
                await h.services.users.rewrite(ada.id)
            assert len(await ada.live("facts")) == 10 * LOG

    run(scenario)


def test_full_disk_error_does_not_affect_next_user_of_the_file(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with serve(tmp_path) as h:
            ada = await with_a_long_log(h)
            async with asyncio.timeout(60):
                async with h.services.users.open(ada.id) as store:
                    with full(), pytest.raises(Busy):
                        await store.checkpoint()
                    waiting = asyncio.create_task(ada.pull("facts"))
                    with pytest.raises(Busy, match="No acknowledged change is lost"):
                        await store.read_bodies(["facts/f0-0"])
                    with pytest.raises(Busy):
                        await store.write(lambda tx: tx.row("facts/f0-1"))
                assert len(await waiting) == 10 * LOG
            assert await seq(h, ada) < SEQ_JUMP

    run(scenario)


def test_full_disk_does_not_prevent_evicting_a_file(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with serve(tmp_path, attached_max=1) as h:
            ada, bob = await with_a_long_log(h), await h.person()
            with full():
                await bob.add("facts", fact("b"))
                assert len(h.services.users.attached_stores()) == 1
            assert len(await ada.live("facts")) == 10 * LOG and len(await bob.live("facts")) == 1

    run(scenario)


def test_accounts_can_be_changed_after_full_disk_has_space(tmp_path: Path) -> None:
    data, saved = tmp_path / "data", tmp_path / "backup"

    async def scenario() -> None:
        async with serve(data) as h:
            await h.services.inference.get()
            file = data / "accounts.duckdb"
            with full(file.stat().st_size):
                await h.services.account_service.create("ada@example.org", "FREE")
                status, store = await ready(h)
                assert status == 503 and "disk" in store
                with pytest.raises(Busy, match="disk"):
                    await h.services.backup.create(saved)
                assert not saved.exists(), "a backup must not be created without the new account"
            assert await ready(h) == (200, "ok")
            assert not file.with_name(f"{file.name}.wal").exists(), (
                "the log must be checkpointed into the file"
            )
            bob = await h.services.account_service.create("bob@example.org", "FREE")
            await h.services.account_service.change_tier(bob, "JIGGA")
        async with serve(data) as h:
            found = h.services.accounts
            assert found.by_email("ada@example.org") and (again := found.by_email("bob@example.org"))
            assert again.tier == "JIGGA"

    run(scenario)


def test_backup_before_checkpoint_contains_all_accounts(tmp_path: Path) -> None:
    saved = tmp_path / "backup"

    async def scenario() -> None:
        async with serve(tmp_path / "data") as h:
            with full((tmp_path / "data" / "accounts.duckdb").stat().st_size):
                await h.services.account_service.create("ada@example.org", "FREE")
            await h.services.backup.create(saved)
        async with serve(tmp_path / "other") as h:
            await h.services.restore.restore_all(saved)
            assert h.services.accounts.by_email("ada@example.org")

    run(scenario)


def test_full_disk_does_not_stop_an_export(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serve(tmp_path) as h:
            ada = await h.person()
            await ada.add("facts", *(fact(f"f{i}", value=os.urandom(50_000).hex()) for i in range(10)))
            with full(100_000):
                assert len(rows_of(await exported(ada), "facts")) == 10

    run(scenario)


def test_erasure_on_full_disk_evicts_indexes_and_retries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_queue, "RETRY_S", (0.1,))
    secret = "the xylophone of Bartholomew"

    async def scenario() -> None:
        async with serve(tmp_path, erase_delay_s=600) as h:
            ada = await with_a_long_log(h)
            await ada.upload("roses.txt", "Roses are planted in the garden every spring.")
            await ada.add("facts", fact("secret", value=secret))
            await h.drain_jobs(ada)
            [vectors] = tmp_path.glob(f"users/*/{ada.id}/vectors")
            await ada.add("facts", dead(fact("secret")))
            erasing = h.services.background_jobs.jobs["erase"]
            with full(200_000):
                with pytest.raises(
                    NotYetErased,
                    match=r"not yet erased from the disk, because that needs \d+ MB of free space",
                ):
                    await erasing.run_and_wait(ada.id)
                assert not vectors.exists(), "derived data must be deleted to free space"
                assert (tmp_path / "jobs" / "erase" / ada.id).exists()
                assert scan(tmp_path, [secret.encode()]) == 1
            await soon(lambda: not erasing.is_pending(ada.id))
            assert scan(tmp_path, [secret.encode()]) == 0
            assert (await ada.search("roses in the garden"))["results"], "the index must be rebuilt"

    run(scenario)


def test_forget_on_full_disk_deletes_files_and_reports_leftovers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with serve(tmp_path, erase_delay_s=600) as h:
            ada = await with_a_long_log(h)
            await ada.upload("roses.txt", "Roses are planted in the garden every spring.")
            await h.drain_jobs(ada)
            [vectors] = tmp_path.glob(f"users/*/{ada.id}/vectors")
            body = {"confirm": "forget everything"}
            with full(4096):
                check_problem(await ada.call("POST", "/v1/forget", json=body), 503, "BUSY")
                assert not vectors.exists(), "files must be deleted before others are written"
            assert len(await ada.live("facts")) == 10 * LOG
            rewriting = h.services.users.rewrite

            async def no_room(user_id: str) -> None:
                with full(4096):
                    await rewriting(user_id)

            monkeypatch.setattr(h.services.users, "rewrite", no_room)
            receipt = (await ada.call("POST", "/v1/forget", json=body)).json()
            assert receipt["rows"] > 0 and receipt["note"].startswith("The deleted data is not yet erased")
            monkeypatch.setattr(h.services.users, "rewrite", rewriting)
            # The forget request has scheduled this erasure.
            await h.services.background_jobs.jobs["erase"].run_and_wait(ada.id)
            receipt = (await ada.call("POST", "/v1/forget", json=body)).json()
            assert receipt["leftovers"] == 0 and "not yet erased" not in receipt["note"]

    with capture_logs():  # keeps log output in memory, because writing it would fail too
        run(scenario)


def test_doctor_reports_overdue_erasure_and_needed_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with serve(tmp_path, erase_delay_s=600) as h:
            ada = await with_a_long_log(h)
            await ada.add("facts", dead(fact("f0-0")))
            marker = tmp_path / "jobs" / "erase" / ada.id
            await soon(marker.exists)
            assert _examine_erasures(tmp_path).ok
            os.utime(marker, (0, 0))
            assert _examine_erasures(tmp_path).ok, "doctor must report no problem while there is space"
            monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10**6))
            found = _examine_erasures(tmp_path)
            assert not found.ok and f"not yet erased: {ada.id} needs " in found.detail

    run(scenario)


def test_server_starts_on_full_disk_with_expired_sessions(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serve(tmp_path) as h:
            ada = await h.person()
            await ada.add("facts", fact("f1"))
            [token] = h.services.accounts.tokens_of(ada.id)
            expired = msgspec.structs.replace(
                token, id="old", hash="0" * 64, kind="cookie", expires_at="2020-01-01T00:00:00.000Z"
            )
            await h.services.accounts.save_token(expired)
        with capture_logs(), full(10):
            async with serve(tmp_path) as h:
                reconnect(h, ada)
                assert set(await ada.live("facts")) == {"f1"}
                assert h.services.accounts.tokens_of(ada.id) == [token]

    run(scenario)
