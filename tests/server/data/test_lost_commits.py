"""If an account's records lack acknowledged commits, one new epoch begins, so that devices push the lost rows."""

import shutil

import pytest
from structlog.testing import capture_logs

from property.rows import day, dead, fact
from property.sync_wire import epoch, page, send
from server.in_process_server import check_problem, reconnect, run, serve
from vademecum.cli.doctor import _examine_rollbacks
from vademecum.model.records.paths import user_folder

ROWS = 6
LOG = "records.duckdb.wal"


class LoggedAccount:
    """An account with one row per commit, and a copy of its folder in which all commits are still in the log.

    `ends`: the length of the log after each commit.
    """

    def __init__(self, folder):
        self.data, self.copy, self.ends = folder / "data", folder / "copy", []

    async def write(self):
        async with serve(self.data) as h:
            self.ada = await h.person()
            folder = user_folder(self.data, self.ada.id)
            for number in range(ROWS):
                assert await send(self.ada, "facts", (fact(f"f{number}"), None)) == []
                self.ends.append((folder / LOG).stat().st_size)
            shutil.copytree(folder, self.copy)
            self.checkpoint = (await page(self.ada, "facts"))["checkpoint"]
            self.epoch = await epoch(self.ada)

    def put_back(self, log):
        """Replace the account's folder by the copy, with the log cut to `log` bytes, or without a log if None."""
        folder = user_folder(self.data, self.ada.id)
        shutil.rmtree(folder)
        shutil.copytree(self.copy, folder)
        if log is None:
            (folder / LOG).unlink()
        else:
            (folder / LOG).write_bytes((self.copy / LOG).read_bytes()[:log])

    @property
    def marks(self):
        return self.data / "ledger" / "marks"


def run_on_account(folder, scenario):
    """Create a `LoggedAccount` account and run the scenario on it."""
    account = LoggedAccount(folder)

    async def whole():
        await account.write()
        await scenario(account)

    run(whole)


CUTS = {
    "one byte of the last commit": (lambda ends: ends[-1] - 1, ROWS - 1),
    "the last commit": (lambda ends: ends[-2], ROWS - 1),
    "half of the commits": (lambda ends: ends[ROWS // 2 - 1], ROWS // 2),
    "all commits but a part of the first": (lambda ends: ends[0] - 1, 0),
    "the whole log": (lambda ends: None, 0),
}


@pytest.mark.parametrize("lost", CUTS)
def test_losing_the_end_of_a_log_begins_one_new_epoch(tmp_path, lost):
    cut, left = CUTS[lost]

    async def scenario(account):
        account.put_back(cut(account.ends))
        ada, lwt = account.ada, account.checkpoint["lwt"]
        with capture_logs() as logs:
            async with serve(account.data) as h:
                reconnect(h, ada)
                answer = await ada.call("GET", "/v1/sync/facts/0/pull", params=account.checkpoint)
                check_problem(answer, 409, "EPOCH")
                assert set(await ada.live("facts")) == {f"f{n}" for n in range(left)}
                new = await epoch(ada)
                assert new != account.epoch
                answered = await send(ada, "facts", *((fact(f"f{n}"), None) for n in range(ROWS)))
                assert answered == [], "the server must accept the device's rows"
                assert (await page(ada, "facts"))["checkpoint"]["lwt"] > lwt
        (line,) = [log for log in logs if log["event"] == "records lack acknowledged changes"]
        assert (line["account"], line["log_level"]) == (ada.id, "warning")
        finding = _examine_rollbacks(account.data)
        assert not finding.ok and ada.id in finding.detail and "write-ahead log" in finding.detail
        for _ in range(2):
            async with serve(account.data) as h:
                reconnect(h, ada)
                assert await epoch(ada) == new
                assert len(await ada.live("facts")) == ROWS

    run_on_account(tmp_path, scenario)


def test_new_epoch_after_lost_commits_begins_once_without_device_pushes(tmp_path):
    async def scenario(account):
        account.put_back(account.ends[2])
        found = set()
        for _ in range(3):
            async with serve(account.data) as h:
                found.add(await epoch(reconnect(h, account.ada)))
                async with h.services.users.detached(account.ada.id):
                    pass
                found.add(await epoch(account.ada))
        assert len(found) == 1 and account.epoch not in found

    run_on_account(tmp_path, scenario)


def test_server_restart_with_intact_log_keeps_the_epoch(tmp_path):
    async def scenario(account):
        account.put_back(account.ends[-1])
        async with serve(account.data) as h:
            assert await epoch(reconnect(h, account.ada)) == account.epoch
            assert len(await account.ada.live("facts")) == ROWS
        assert _examine_rollbacks(account.data).ok

    run_on_account(tmp_path, scenario)


@pytest.mark.parametrize("damage", ["missing", "empty", "flipped", "garbage", "a folder"])
def test_epoch_is_kept_if_high_water_marks_are_unreadable(tmp_path, damage):
    async def scenario(account):
        content = account.marks.read_bytes()
        account.marks.unlink()
        if damage == "a folder":
            account.marks.mkdir()
        elif damage != "missing":
            flipped = bytes(byte ^ 1 for byte in content)
            account.marks.write_bytes({"empty": b"", "flipped": flipped, "garbage": b"\0\xff" * 99}[damage])
        account.put_back(account.ends[2])
        async with serve(account.data) as h:
            ada = reconnect(h, account.ada)
            assert await epoch(ada) == account.epoch
            assert len(await ada.live("facts")) == 3
            assert await send(ada, "facts", (fact("new"), None)) == []
        assert _examine_rollbacks(account.data).ok

    run_on_account(tmp_path, scenario)


def test_outdated_high_water_mark_keeps_epoch_and_is_raised(tmp_path):
    """A kill after a COMMIT and before the write of its high-water mark leaves such a mark."""

    async def scenario(account):
        lines = account.marks.read_bytes().splitlines(keepends=True)
        account.marks.write_bytes(b"".join(lines[: len(lines) // 2]))
        account.put_back(account.ends[-1])
        async with serve(account.data) as h:
            assert await epoch(reconnect(h, account.ada)) == account.epoch
        assert _examine_rollbacks(account.data).ok
        account.put_back(account.ends[-2])
        async with serve(account.data) as h:
            assert await epoch(reconnect(h, account.ada)) != account.epoch

    run_on_account(tmp_path, scenario)


def test_epoch_is_kept_if_records_and_high_water_marks_are_both_old(tmp_path):
    """If the whole data folder is replaced by a copy, only a checkpoint of a device proves that rows are missing."""

    async def scenario(account):
        marks = account.marks.read_bytes()
        async with serve(account.data) as h:
            await send(reconnect(h, account.ada), "facts", (fact("later"), None))
        account.put_back(account.ends[-1])
        account.marks.write_bytes(marks)
        async with serve(account.data) as h:
            assert await epoch(reconnect(h, account.ada)) == account.epoch

    run_on_account(tmp_path, scenario)


def test_lost_delete_is_reapplied_from_ledger_and_begins_one_epoch(tmp_path):
    async def scenario(account):
        async with serve(account.data) as h:
            ada = reconnect(h, account.ada)
            await send(ada, "facts", (dead(fact("f0")), fact("f0")), (fact("later"), None))
            await h.drain_jobs(ada)
        account.put_back(account.ends[-1])
        for _ in range(2):
            async with serve(account.data) as h:
                reconnect(h, ada)
                assert set(await ada.live("facts")) == {f"f{n}" for n in range(1, ROWS)}
                account.epochs = {*getattr(account, "epochs", ()), await epoch(ada)}
        assert len(account.epochs) == 1 and account.epoch not in account.epochs

    run_on_account(tmp_path, scenario)


def test_erasure_of_newest_rows_keeps_the_epoch(tmp_path):
    """The test deletes or edits the newest rows. The erasure then rewrites the file without their old versions."""

    async def scenario(account):
        async with serve(account.data) as h:
            ada = reconnect(h, account.ada)
            await send(ada, "facts", (fact("f0") | {"value": "v", "updatedAt": day(5)}, fact("f0")))
            await send(ada, "facts", (dead(fact("f5")), fact("f5")))
            await h.drain_jobs(ada)
            await h.services.users.rewrite(ada.id)
            assert await epoch(ada) == account.epoch
        async with serve(account.data) as h:
            assert await epoch(reconnect(h, ada)) == account.epoch
        assert _examine_rollbacks(account.data).ok

    run_on_account(tmp_path, scenario)


def test_restored_backup_begins_one_epoch(tmp_path):
    async def scenario(account):
        async with serve(account.data) as h:
            ada = reconnect(h, account.ada)
            await h.services.backup.create(tmp_path / "backup")
            await send(ada, "facts", (fact("later"), None))
            await h.services.restore.restore_all(tmp_path / "backup")
            new = await epoch(ada)
            assert new != account.epoch
            async with h.services.users.detached(ada.id):
                pass
            assert await epoch(ada) == new
        async with serve(account.data) as h:
            assert await epoch(reconnect(h, ada)) == new
        assert _examine_rollbacks(account.data).ok

    run_on_account(tmp_path, scenario)


def test_restored_records_continue_above_the_high_water_mark(tmp_path):
    async def scenario(account):
        async with serve(account.data) as h:
            await h.services.backup.create(tmp_path / "backup")
        # The restart makes `seq` jump, so the mark is far above the backup.
        async with serve(account.data) as h:
            await send(reconnect(h, account.ada), "facts", (fact("later"), None))
            last = (await page(account.ada, "facts"))["checkpoint"]["lwt"]
        (user_folder(account.data, account.ada.id) / "records.duckdb").unlink()
        async with serve(account.data) as h:
            await h.services.restore.restore_all(tmp_path / "backup")
            new = await epoch(reconnect(h, account.ada))
            await send(account.ada, "facts", (fact("again"), None))
            assert (await page(account.ada, "facts"))["checkpoint"]["lwt"] > last
            assert await epoch(account.ada) == new
        assert _examine_rollbacks(account.data).ok

    run_on_account(tmp_path, scenario)


def test_backup_on_another_server_begins_one_epoch(tmp_path):
    async def scenario(account):
        async with serve(account.data) as h:
            await h.services.backup.create(tmp_path / "backup")
        other = tmp_path / "other"
        async with serve(other) as h:
            await h.services.restore.restore_all(tmp_path / "backup")
            new = await epoch(reconnect(h, account.ada))
            assert len(await account.ada.live("facts")) == ROWS
        async with serve(other) as h:
            assert await epoch(reconnect(h, account.ada)) == new
        assert _examine_rollbacks(other).ok

    run_on_account(tmp_path, scenario)


def test_recreated_account_with_same_id_has_no_high_water_mark(tmp_path):
    async def scenario(account):
        ada = account.ada
        async with serve(account.data) as h:
            await h.services.users.remove(ada.id)
            assert h.services.users.marks.of(ada.id) == 0
            new = await epoch(reconnect(h, ada))
            await send(ada, "facts", (fact("f"), None))
        async with serve(account.data) as h:
            assert await epoch(reconnect(h, ada)) == new
        assert _examine_rollbacks(account.data).ok

    run_on_account(tmp_path, scenario)
