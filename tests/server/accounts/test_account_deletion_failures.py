"""Failures during account deletion: an account is deleted completely or not at all, and other accounts work."""

from __future__ import annotations

import errno
import os
import resource
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from property.rows import fact
from server.agents.agent_events import event
from server.agents.test_spool import spool_events
from server.in_process_server import check_problem, run, serve
from unprivileged_user import without_root_access
from vademecum.cli.doctor import _examine_deleted_accounts
from vademecum.errors import Broken, Conflict
from vademecum.model.records.paths import user_folder
from vademecum.model.sync.quotas import Limits
from vademecum.services.accounts.deleted_accounts import (
    deleted_accounts_file,
    read_deleted_ids,
    record_deletion,
    was_deleted,
)
from vademecum.services.agents import spool_files
from vademecum.services.data.erase import scan
from vademecum.services.runtime import job_queue
from wait_until import soon

LEAVE = {"confirm": "leave for good"}
EMAIL = "bob@example.org"
OTHERS = 20  # so many that the deletion of one row does not overwrite its bytes by chance
NO_ROOM = {"tiers": {"FREE": Limits(storage_bytes=1)}}


def test_adding_an_existing_account_keeps_spooled_events(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serve(tmp_path, **NO_ROOM) as h:
            await h.services.account_deletion.delete(await h.services.account_service.create(EMAIL, "FREE"))
            await h.services.account_service.create(EMAIL, "FREE")
            folder = spool_events(h, EMAIL, event("waits"))
            with pytest.raises(Conflict, match="Nothing was changed"):
                await h.services.account_service.create(EMAIL, "FREE")
            assert len(list(folder.glob("*.json"))) == 1

    run(scenario)


def test_account_is_not_deleted_if_deletion_record_cannot_be_written(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serve(tmp_path) as h:
            ada = await h.person()
            deleted_accounts_file(tmp_path).parent.mkdir(exist_ok=True)
            deleted_accounts_file(tmp_path).symlink_to("/dev/full")
            assert (await ada.call("DELETE", "/v1/me", json=LEAVE)).status_code == 500
            assert (await ada.call("GET", "/v1/me")).status_code == 200
            deleted_accounts_file(tmp_path).unlink()
            assert (await ada.call("DELETE", "/v1/me", json=LEAVE)).status_code == 200
            check_problem(await ada.call("GET", "/v1/me"), 401, "SIGNED_OUT")

    run(scenario)


def test_account_recreated_after_interrupted_deletion_keeps_its_events(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serve(tmp_path, **NO_ROOM) as h:
            old = await h.services.account_service.create(EMAIL, "FREE")
            # Simulate a deletion that was interrupted after its record was written.
            await h.services.accounts.block(old.id, lambda one: record_deletion(tmp_path, one.id, one.email))
            new = await h.services.account_service.create(EMAIL, "FREE")
            folder = spool_events(h, EMAIL, event("waits"))
        async with serve(tmp_path, **NO_ROOM) as h:
            assert h.services.accounts.by_email(EMAIL) == new and not h.services.accounts.exists(old.id)
            assert len(list(folder.glob("*.json"))) == 1

    run(scenario)


def test_truncated_deletion_record_leaves_other_deletion_records_readable(tmp_path: Path) -> None:
    record_deletion(tmp_path, "ada-id", "ada@example.org")
    with deleted_accounts_file(tmp_path).open("ab") as file:
        file.write(b"eve-id 0123abcd")
    record_deletion(tmp_path, "bob-id", EMAIL)
    with deleted_accounts_file(tmp_path).open("ab") as file:
        file.write(b"\0\0\0\xff")
    assert read_deleted_ids(tmp_path) == {"ada-id", "bob-id"}
    assert was_deleted(tmp_path, "ada@example.org") and was_deleted(tmp_path, EMAIL)


def test_partly_written_deletion_record_is_rolled_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record_deletion(tmp_path, "ada-id", "ada@example.org")
    before = deleted_accounts_file(tmp_path).read_bytes()
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 20, limit[1]))
    try:
        with pytest.raises(OSError, match="No space left"):
            record_deletion(tmp_path, "bob-id", EMAIL)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert deleted_accounts_file(tmp_path).read_bytes() == before

    def broken(descriptor: int) -> None:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OSError, match="Input/output"):
        record_deletion(tmp_path, "bob-id", EMAIL)
    assert deleted_accounts_file(tmp_path).read_bytes() == before


def test_server_start_retries_failed_folder_erasure(tmp_path: Path) -> None:
    ids: list[str] = []

    async def before() -> None:
        async with serve(tmp_path) as h:
            for person in (await h.person(), await h.person(), await h.person()):
                await person.push("facts", fact("f1"))
                ids.append(person.id)
            for deleted_id in ids[:2]:
                record_deletion(tmp_path, deleted_id, h.services.accounts.accounts[deleted_id].email)

    async def start() -> None:
        async with serve(tmp_path) as h:
            assert set(h.services.accounts.accounts) == set(ids[2:])

    def there() -> list[bool]:
        return [user_folder(tmp_path, account_id).exists() for account_id in ids]

    run(before)
    # Two accounts, because one failure must not stop the erasures after it, whose order is unspecified.
    for deleted_id in ids[:2]:
        user_folder(tmp_path, deleted_id).chmod(0)
    with without_root_access():
        with capture_logs() as logs:
            run(start)
        assert there() == [True, True, True]
        assert [log["event"] for log in logs].count("cannot erase a deleted account yet") == 2
        for running, advice in (
            (False, "Delete by hand"),
            (True, "the server tries again"),
        ):
            finding = _examine_deleted_accounts(tmp_path, running)
            assert (
                not finding.ok
                and advice in finding.detail
                and all(deleted_id in finding.detail for deleted_id in ids[:2])
            )
        for deleted_id in ids[:2]:
            user_folder(tmp_path, deleted_id).chmod(0o700)
        run(start)
    assert there() == [False, False, True] and _examine_deleted_accounts(tmp_path, running=False).ok


def test_invalid_deletion_record_erases_no_files(tmp_path: Path) -> None:
    data, beside = tmp_path / "data", tmp_path / "notes.txt"
    beside.write_text("somebody's")

    async def scenario() -> None:
        async with serve(data) as h:
            ada = await h.person()
            await ada.push("facts", fact("f1"))
        deleted_accounts_file(data).parent.mkdir(exist_ok=True)
        deleted_accounts_file(data).write_text(f"\n..\n.\n{beside}\n../../../notes.txt\n")
        async with serve(data):
            assert beside.exists() and user_folder(data, ada.id).exists()

    run(scenario)


def _shut(path: Path) -> None:
    path.chmod(0)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _rotten(path: Path) -> None:
    path.write_bytes(os.urandom(2**16))


def _lost(path: Path) -> None:
    path.write_bytes(bytes(4096))


@pytest.mark.parametrize("damage", [_shut, _folder, _pipe, _rotten, _lost])
def test_unreadable_deletion_records_keep_accounts_and_block_restore(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    data, saved = tmp_path / "data", tmp_path / "backup"
    ids: list[str] = []

    async def before() -> None:
        async with serve(data) as h:
            ada, bob = await h.person(), await h.services.account_service.create(EMAIL, "FREE")
            ids.extend((ada.id, bob.id))
            await h.services.backup.create(saved)
            await h.services.account_deletion.delete(bob)

    async def unsure() -> None:
        with capture_logs() as logs:
            async with serve(data) as h:
                assert set(h.services.accounts.accounts) == {ids[0]}, (
                    "the server must start with all remaining accounts"
                )
                with pytest.raises(Broken, match="repaired"):
                    await h.services.restore.restore_all(saved)
                folder = spool_events(h, EMAIL, event("waits"))
                with pytest.raises(Broken, match="repaired"):
                    await h.services.account_service.create(EMAIL, "FREE")

                async def is_told() -> bool:
                    await h.services.spool.ingest_all()
                    (waiting,) = spool_files.find_waiting(folder.parent)
                    assert waiting.events == 1
                    return "repaired" in waiting.reason

                await soon(is_told)  # the server's own ingestion may delay the reason
                assert set(h.services.accounts.accounts) == {ids[0]}
                await h.services.account_service.create("eve@example.org", "FREE")
        assert "the list of deleted accounts is unreadable" in [log["event"] for log in logs]
        async with serve(data):  # the server must also start while events wait
            pass

    async def repaired() -> None:
        async with serve(data) as h:
            await h.services.restore.restore_all(saved)
            assert ids[1] not in h.services.accounts.accounts
            assert not (data / "spool" / EMAIL).exists()

    run(before)
    whole = deleted_accounts_file(data).read_bytes()
    damage(deleted_accounts_file(data))
    with without_root_access():
        finding = _examine_deleted_accounts(data, running=False)
        assert not finding.ok and str(deleted_accounts_file(data)) in finding.detail
        run(unsure)
    if deleted_accounts_file(data).is_dir():
        deleted_accounts_file(data).rmdir()
    deleted_accounts_file(data).unlink(missing_ok=True)
    deleted_accounts_file(data).write_bytes(whole)
    run(repaired)


def test_email_is_erased_from_accounts_file_before_folder_is_erased(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_queue, "RETRY_S", (0.05,))

    async def scenario() -> None:
        async with serve(tmp_path) as h:
            bob = await h.services.account_service.create(EMAIL, "FREE")
            removing, failures = h.services.users.remove, [Broken("The folder could not be erased.")] * 2

            async def failing(user_id: str) -> None:
                if failures:
                    raise failures.pop()
                await removing(user_id)

            monkeypatch.setattr(h.services.users, "remove", failing)
            assert scan(tmp_path, [EMAIL.encode()]) == 1, "the scan cannot see what is there"
            with pytest.raises(Broken, match="could not be erased"):
                await h.services.account_deletion.delete(bob)
            assert scan(tmp_path, [EMAIL.encode()]) == 0
            await soon(lambda: not h.services.account_deletion.queue.is_pending(bob.id))
            assert not failures, "the erasure must be retried without a restart"

    run(scenario)


@pytest.mark.parametrize("is_marked", [True, False], ids=["marked", "of 0.1.0"])
def test_server_start_erases_email_after_interrupted_account_deletion(
    tmp_path: Path, is_marked: bool
) -> None:
    """The server stopped after it deleted the account's row and before it rewrote the accounts file.

    Without a job marker, only the deletion record shows that the erasure is incomplete.
    """

    async def scenario() -> None:
        async with serve(tmp_path) as h:
            bob = await h.services.account_service.create(EMAIL, "FREE")
            for number in range(OTHERS):
                await h.services.account_service.create(f"person{number}@example.org", "FREE")
            await h.services.accounts.block(bob.id, lambda one: record_deletion(tmp_path, one.id, one.email))
            if is_marked:
                h.services.account_deletion.queue.schedule(bob.id)
            await h.services.accounts.remove_account(bob.id)
        assert scan(tmp_path, [EMAIL.encode()]) == 1, "the scan cannot see what is there"
        async with serve(tmp_path):
            assert scan(tmp_path, [EMAIL.encode()]) == 0

    run(scenario)


def test_erasure_marker_without_deletion_record_erases_no_account(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serve(tmp_path) as h:
            ada = await h.person()
            await ada.add("facts", fact("f1"))
            leaving = h.services.account_deletion.queue
            assert leaving is not None
            await leaving.run_and_wait(ada.id)
            assert (await ada.live("facts")).keys() == {"f1"}

    run(scenario)
