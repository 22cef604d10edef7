"""Failures of the spool are reported once. After a failure ends, the server ingests or deletes the events."""

from __future__ import annotations

import asyncio
import errno
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from server.agents.agent_events import event, list_observations, send_events
from server.agents.test_spool import SMALL_QUOTA, email_of, fill_account, spool_events, wait_until_empty
from server.in_process_server import Harness, Person, check_problem, run, run_for_one, serve
from vademecum.model.agents.spool_layout import BLOCK_COUNT_FILE, REASON_FILE, count_blocks
from vademecum.model.records.paths import user_folder
from vademecum.model.schema.constants import OWNER
from vademecum.services.accounts.deleted_accounts import read_deleted_ids, record_deletion, was_deleted
from vademecum.services.agents import spool, spool_files
from vademecum.services.data.erase import scan
from vademecum.services.runtime import background_jobs
from wait_until import soon

LEAVE = {"confirm": "leave for good"}
FORGET = {"confirm": "forget everything"}


def shorten_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "POLL_S", 0.02)
    monkeypatch.setattr(spool, "RETRY_S", 0.05)


@pytest.mark.parametrize("name", ["list_user_folders", "delete_leftovers"])
def test_ingest_continues_after_a_transient_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    shorten_intervals(monkeypatch)
    monkeypatch.setattr(spool, "CLEANUP_INTERVAL_S", 0.0)
    real, failures = getattr(spool_files, name), [0]

    def fail(*given: Any) -> Any:
        if failures[0] < 3:
            failures[0] += 1
            raise OSError(errno.EMFILE, "Too many open files")
        return real(*given)

    async def scenario(h: Harness, ada: Person) -> None:
        with capture_logs() as logs:
            monkeypatch.setattr(spool_files, name, fail)
            await soon(lambda: failures[0] == 3)
            folder = spool_events(h, email_of(h, ada), event("after"))
            await wait_until_empty(folder)
        assert [row["content"] for row in await list_observations(ada)] == ["after"]
        assert [log["event"] for log in logs].count("ingesting agent events failed") == 1, (
            "the failure must be logged once"
        )

    run_for_one(tmp_path, scenario)


def test_request_succeeds_if_spool_cannot_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(h: Harness, ada: Person) -> None:
        await send_events(ada, event())

        def fail(_: Path) -> list[Path]:
            raise OSError(errno.EIO, "Input/output error")

        monkeypatch.setattr(spool_files, "list_user_folders", fail)
        answer = await ada.call("GET", "/v1/agents/context", params={"project": "app"})
        assert answer.status_code == 200, answer.text

    run_for_one(tmp_path, scenario)


def test_events_of_full_account_are_ingested_later_and_logged_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten_intervals(monkeypatch)

    async def scenario() -> None:
        async with serve(tmp_path, **SMALL_QUOTA) as h:
            full_user = await h.person("FREE")
            batch = await fill_account(full_user)
            with capture_logs() as logs:
                folder = spool_events(h, email_of(h, full_user), *batch)
                await soon(lambda: any(log["event"] == "agent events wait" for log in logs))
                await asyncio.sleep(0.5)  # long enough for several attempts
            (entry,) = [log for log in logs if "agent events" in log["event"]]
            assert entry["event"] == "agent events wait" and "exc_info" not in entry
            assert "full" in entry["reason"] and (folder / REASON_FILE).read_text() == entry["reason"]
            expected = sum(count_blocks(path.stat().st_size) for path in folder.glob("*.json"))
            assert (folder / BLOCK_COUNT_FILE).stat().st_size == expected == 2 * len(batch)
            (one,) = spool_files.find_waiting(tmp_path / "spool")
            assert (one.email, one.events, one.reason) == (
                email_of(h, full_user),
                len(batch),
                entry["reason"],
            )
            for row in await list_observations(full_user):
                await full_user.call("DELETE", f"/v1/observations/{row['id']}", params={"project": "*"})
            await wait_until_empty(folder)
            await soon(lambda: not list(folder.iterdir()))

    run(scenario)


async def delete_account(h: Harness, person: Person) -> None:
    answer = await person.call("DELETE", "/v1/me", json=LEAVE)
    assert answer.status_code == 200, answer.text


def test_spool_read_error_from_lack_of_resources_advises_only_to_retry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(h: Harness, ada: Person) -> None:
        out_of_files = OSError(errno.EMFILE, "Too many open files")

        def no_content(path: Path) -> bytes:
            raise out_of_files

        monkeypatch.setattr(spool_files, "read_content", no_content)
        folder = spool_events(h, email_of(h, ada), event())
        with pytest.raises(OSError, match="Too many"):
            await h.services.spool.delete_project_events(h.services.accounts.accounts[ada.id], "p1")
        await soon((folder / REASON_FILE).exists)
        assert (folder / REASON_FILE).read_text() == spool.SEE_LOG
        for error, by_hand in (
            (out_of_files, False),
            (OSError(errno.EIO, ""), False),
            (PermissionError(13, ""), True),
        ):
            assert ("another user" in spool_files.read_error_message(folder, error)) is by_hand

    run_for_one(tmp_path, scenario)


def test_forget_fails_without_a_receipt_if_spool_cannot_be_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool, "POLL_S", 3600.0)

    async def scenario(h: Harness, ada: Person) -> None:
        await send_events(ada, event("in the rows"))
        folder = spool_events(h, email_of(h, ada).upper(), event("waits"))
        real, failures = spool_files.list_user_folders, [1, 1]

        def fail_twice(parent: Path) -> list[Path]:
            if failures:
                failures.pop()
                raise OSError(errno.EMFILE, "Too many open files")
            return real(parent)

        monkeypatch.setattr(spool_files, "list_user_folders", fail_twice)
        message = check_problem(await ada.call("POST", "/v1/forget", json=FORGET), 500, "BROKEN")["detail"]
        assert message.startswith("All other data is erased.") and "Try again." in message and folder.exists()
        assert await list_observations(ada) == []
        assert (await ada.call("POST", "/v1/forget", json=FORGET)).json()["leftovers"] == 0
        assert not folder.exists()

    run_for_one(tmp_path, scenario)


def test_spooled_events_of_deleted_account_are_deleted(tmp_path: Path) -> None:
    async def scenario(h: Harness, ada: Person) -> None:
        address = email_of(h, ada)
        spool_events(h, address, event("before"))
        await delete_account(h, ada)
        late = [spool_events(h, spelled, event("late")) for spelled in (address, address.upper())]
        stranger = spool_events(h, "nobody@example.org", event("of nobody"))
        await h.services.spool.ingest_all()
        assert not any(folder.exists() for folder in late)
        rejected = tmp_path / "spool" / "rejected"
        assert [folder.name for folder in rejected.iterdir()] == [stranger.name]
        assert len(list((rejected / stranger.name).iterdir())) == 1, (
            "events of an unknown email must be rejected instead of deleted"
        )

    run_for_one(tmp_path, scenario)


def test_spooled_events_of_recreated_account_are_ingested(tmp_path: Path) -> None:
    async def scenario(h: Harness, ada: Person) -> None:
        address = email_of(h, ada)
        await delete_account(h, ada)
        assert was_deleted(tmp_path, address)
        recreated = await h.services.account_service.create(address, "JIGGA")
        folder = spool_events(h, address, event("later"))
        await h.services.spool.ingest_all()
        assert not list(folder.iterdir())
        async with h.services.users.open(recreated.id) as store:
            assert sum(key.startswith("observations/") for key in store.row_index.rows) == 1

    run_for_one(tmp_path, scenario)


def test_spooled_events_of_deleted_owner_are_deleted(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serve(tmp_path) as h:
            await h.services.account_service.ensure_owner()
            owner = h.services.accounts.by_email(OWNER)
            assert owner is not None
            await h.services.account_deletion.delete(owner)
            folder = spool_events(h, "owner", event("late"))
            await h.services.spool.ingest_all()
            assert not folder.exists()

    run(scenario)


@pytest.mark.parametrize("account_exists", [True, False], ids=["before the account was deleted", "after it"])
def test_server_start_completes_interrupted_account_deletion(tmp_path: Path, account_exists: bool) -> None:
    async def scenario() -> None:
        async with serve(tmp_path) as h:
            ada, ben = await h.person(), await h.person()
            address = email_of(h, ada)
            record_deletion(tmp_path, ada.id, address)
            if not account_exists:
                await h.services.accounts.remove_account(ada.id)
        # Hooks write these files while no server runs.
        others = spool_events(h, email_of(h, ben), event("his"))
        for name in (address, f"rejected/{address}"):
            folder = tmp_path / "spool" / name
            folder.mkdir(parents=True)
            (folder / "one.json").write_text(json.dumps(event("hers")))
        async with serve(tmp_path) as h:
            assert ada.id not in h.services.accounts.accounts
            await wait_until_empty(others)
            remaining = [path for path in (tmp_path / "spool").rglob("*") if address in path.name]
            assert remaining == [] and len(await list_observations(ben)) == 1

    run(scenario)


def test_deletion_records_in_old_format_are_readable(tmp_path: Path) -> None:
    (tmp_path / "ledger").mkdir()
    (tmp_path / "ledger" / "left").write_text("old-id\n")
    record_deletion(tmp_path, "new-id", "Ada@example.org")
    assert read_deleted_ids(tmp_path) == {"old-id", "new-id"}
    assert was_deleted(tmp_path, " ada@EXAMPLE.org") and not was_deleted(tmp_path, "old-id")
    assert b"example" not in (tmp_path / "ledger" / "left").read_bytes()


def test_forget_reports_spool_folder_that_cannot_be_deleted(tmp_path: Path) -> None:
    async def scenario(h: Harness, ada: Person) -> None:
        await send_events(ada, event("an aubergine in the rows"))
        await h.drain_jobs(ada)
        elsewhere = tmp_path.with_name(f"{tmp_path.name}-elsewhere")
        elsewhere.mkdir()
        (tmp_path / "spool").mkdir(exist_ok=True)
        link = tmp_path / "spool" / email_of(h, ada)
        link.symlink_to(elsewhere)  # the server must not delete the target, which is not part of the spool
        link.joinpath("a.json.tmp").write_text("an aubergine in the spool")
        message = check_problem(await ada.call("POST", "/v1/forget", json=FORGET), 500, "BROKEN")["detail"]
        assert f"spool/{link.name} of" in message and "Delete them by hand" in message
        assert message.startswith("All other data is erased.") and await list_observations(ada) == []
        assert scan(user_folder(tmp_path, ada.id), [b"an aubergine in"]) == 0
        check_problem(await ada.call("DELETE", "/v1/me", json=LEAVE), 500, "BROKEN")
        assert ada.id not in h.services.accounts.accounts
        assert not user_folder(tmp_path, ada.id).exists(), "all other data must be deleted"

    run_for_one(tmp_path, scenario)


def test_failed_start_of_embedding_is_retried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_jobs, "RETRY_S", 0.05)

    async def scenario() -> None:
        (tmp_path / "embedded").mkdir(parents=True)  # a folder at the path of a file makes writing fail
        async with serve(tmp_path, model=True) as h:
            assert await h.services.inference.get() is not None
            await asyncio.sleep(0.3)
            (tmp_path / "embedded").rmdir()
            await soon((tmp_path / "embedded").is_file)

    run(scenario)


def test_leftover_cleanup_never_deletes_waiting_events(tmp_path: Path) -> None:
    """The status files of a spool folder do not count as leftovers either."""
    folder = tmp_path / "owner"
    folder.mkdir()
    for name in (BLOCK_COUNT_FILE, REASON_FILE, "a.json"):
        (folder / name).write_text("x")
    spool_files.delete_leftovers(tmp_path)
    assert len(list(folder.iterdir())) == 3
    assert spool_files.list_contents(folder) == [folder / "a.json"]


def test_reason_file_of_spool_folder_is_written_atomically(tmp_path: Path) -> None:
    whole = "Nothing of it is lost. " * 4000
    spool_files.write_status(tmp_path, whole, keep_reason=True)
    with ThreadPoolExecutor() as pool:
        looks = [pool.submit(spool_files.write_status, tmp_path, whole, keep_reason=True) for _ in range(300)]
        while not all(look.done() for look in looks):
            assert (tmp_path / REASON_FILE).read_text() == whole
    for look in looks:
        look.result()
    assert [path.name for path in tmp_path.iterdir()] == [REASON_FILE]


def test_block_count_of_spool_folder_is_updated_atomically(tmp_path: Path) -> None:
    for number in range(20):
        with (tmp_path / f"{number}.json").open("wb") as file:
            file.truncate(2**30)
    spool_files.write_status(tmp_path)
    counted = (tmp_path / BLOCK_COUNT_FILE).stat().st_size
    assert counted == 20 * count_blocks(2**30)
    with ThreadPoolExecutor() as pool:
        looks = [pool.submit(spool_files.write_status, tmp_path) for _ in range(300)]
        while not all(look.done() for look in looks):
            assert (tmp_path / BLOCK_COUNT_FILE).stat().st_size == counted
    for look in looks:
        look.result()
