"""An account's folder is replaced by an older copy. The ledger lists the rows that were erased after the copy."""

import shutil

import pytest

from property.rows import dead, fact, project, session
from property.sync_wire import epoch, forget, page, send, stored
from server.in_process_server import check_problem, reconnect, run, serve
from vademecum.cli.doctor import _examine_rollbacks
from vademecum.engines.duckdb.paths import user_ledger
from vademecum.model.records.paths import user_folder
from vademecum.services.sync.stream import CLOSED


def replace_by_copy(data, erase, check, *rows):
    """Push `rows`, copy the account's folder, run `erase`, put the copy back, and run `check` on a new server."""
    copy, seen = data.parent / "copy", {}

    async def scenario():
        async with serve(data) as h:
            ada = seen["ada"] = await h.person()
            for name, row in rows:
                assert await send(ada, name, (row, None)) == []
        shutil.copytree(user_folder(data, ada.id), copy)
        async with serve(data) as h:
            await erase(reconnect(h, ada))
            await h.drain_jobs(ada)
            seen["checkpoint"] = (await page(ada, "facts"))["checkpoint"]
            seen["epoch"] = await epoch(ada)
        shutil.rmtree(user_folder(data, ada.id))
        copy.rename(user_folder(data, ada.id))
        async with serve(data) as h:
            await check(h, reconnect(h, ada), seen)

    run(scenario)


def test_rows_erased_after_a_folder_copy_stay_erased(tmp_path):
    async def erase(ada):
        await send(ada, "facts", (dead(fact("erased")), fact("erased", value="secret")))

    async def check(h, ada, seen):
        records = user_folder(tmp_path / "data", ada.id) / "records.duckdb"
        assert b"secret" in records.read_bytes()
        checkpoint = seen["checkpoint"]
        with h.services.hub.subscribe(ada.id, frozenset({"facts"}), named=False) as stream:
            answer = await ada.call("GET", "/v1/sync/facts/0/pull", params=checkpoint)
            check_problem(answer, 409, "EPOCH")
            assert await stream.next() is CLOSED
        assert set(await ada.live("facts")) == {"kept"}
        assert (await stored(ada, "facts", "erased"))["_deleted"]
        await h.drain_jobs(ada)
        assert b"secret" not in records.read_bytes()
        finding = _examine_rollbacks(tmp_path / "data")
        assert not finding.ok and ada.id in finding.detail
        new = await epoch(ada)
        async with h.services.users.detached(ada.id):
            pass
        assert await epoch(ada) == new, "only one new epoch must begin"
        # A device that edited the kept row after the copy was made can still push its edit.
        edited = fact("kept", value="newer", updatedAt="2026-05-01T00:00:00.000Z")
        assert await send(ada, "facts", (edited, None)) == []
        user_ledger(tmp_path / "data", ada.id).delete()
        assert _examine_rollbacks(tmp_path / "data").ok

    rows = ("facts", fact("erased", value="secret")), ("facts", fact("kept"))
    replace_by_copy(tmp_path / "data", erase, check, *rows)


def test_account_forgotten_after_a_folder_copy_stays_forgotten(tmp_path):
    async def check(h, ada, seen):
        assert await ada.live("facts") == {}
        assert (await page(ada, "facts"))["forgottenAt"]
        assert await epoch(ada) != seen["epoch"]

    replace_by_copy(tmp_path / "data", forget, check, ("facts", fact("f")))


def test_row_revived_after_a_folder_copy_is_pushed_again_by_devices(tmp_path):
    async def erase(ada):
        tomb = dead(fact("f"))
        await send(ada, "facts", (tomb, fact("f")))
        blanked = await stored(ada, "facts", "f")
        again = fact("f", value="second", updatedAt="2026-05-01T00:00:00.000Z")
        assert await send(ada, "facts", (again, blanked)) == []

    async def check(h, ada, seen):
        assert await stored(ada, "facts", "f") is None
        assert await epoch(ada) != seen["epoch"]
        assert await send(ada, "facts", (fact("f", value="second"), None)) == []

    replace_by_copy(tmp_path / "data", erase, check, ("facts", fact("f")))


@pytest.mark.parametrize("restarts", [1, 2])
def test_ordinary_server_restart_keeps_the_epoch(tmp_path, restarts):
    seen = {}

    async def scenario():
        async with serve(tmp_path) as h:
            ada = seen["ada"] = await h.person()
            await send(ada, "projects", (project("p"), None))
            await send(ada, "sessions", (session("s", projectId="p"), None))
            await send(ada, "projects", (dead(project("p")), project("p")))
            await send(ada, "facts", (fact("f"), None))
            await forget(ada)
            await send(ada, "facts", (fact("g", createdAt="2099-01-01T00:00:00.000Z"), None))
            seen["epoch"] = await epoch(ada)
        for _ in range(restarts):
            async with serve(tmp_path) as h:
                assert await epoch(reconnect(h, ada)) == seen["epoch"]
                await send(ada, "facts", (fact("h", createdAt="2099-01-01T00:00:00.000Z"), None))
        assert _examine_rollbacks(tmp_path).ok

    run(scenario)
