"""A data folder that was replaced by an older copy: devices push the missing rows and receive all new rows."""

import asyncio
import itertools
import shutil

import pytest

from property.rows import fact
from property.sync_wire import epoch, epoch_of, page, send, stored
from server.in_process_server import check_problem, reconnect, run, serve
from vademecum.engines.duckdb import user_database

NEWER = fact("kept", value="newer", updatedAt="2026-05-01T00:00:00.000Z")


async def ask(person, lwt, name):
    return await person.call("GET", "/v1/sync/facts/0/pull", params={"lwt": lwt, "id": name, "limit": 10})


@pytest.fixture(params=[1, -1], ids=["longer gap", "shorter gap"])
def gaps(request, monkeypatch):
    """Make each server start leave a gap of different length in `seq`."""
    gaps = itertools.count(500, request.param)
    monkeypatch.setattr(user_database.secrets, "randbelow", lambda _: next(gaps))


@pytest.fixture
def folder(tmp_path):
    """Replace a data folder by an older copy, which contains one row.

    Return the folder, the person, and the checkpoint of a device that has pulled three writes.
    """
    data, copy, seen = tmp_path / "data", tmp_path / "copy", {}

    async def scenario():
        async with serve(data) as h:
            seen["ada"] = await h.person()
            await send(seen["ada"], "facts", (fact("kept"), None))
        shutil.copytree(data, copy)
        async with serve(data) as h:
            seen["ada"] = reconnect(h, seen["ada"])
            await send(seen["ada"], "facts", (NEWER, fact("kept")), (fact("later"), None))
            seen["checkpoint"] = (await page(seen["ada"], "facts"))["checkpoint"]
        shutil.rmtree(data)
        copy.rename(data)

    run(scenario)
    return data, seen["ada"], seen["checkpoint"]


def test_signed_checkpoint_ahead_of_records_begins_a_new_epoch(folder):
    data, ada, (lwt, old) = folder[0], folder[1], folder[2].values()

    async def scenario():
        async with serve(data) as h:
            device = reconnect(h, ada)
            answers = await asyncio.gather(*(ask(device, lwt, old) for _ in range(5)))
            for answer in answers:
                check_problem(answer, 409, "EPOCH")
            new = await epoch(device)
            assert new != epoch_of(folder[2])
            # A client that sends no epoch may push an edit of a row that the copy does not contain.
            assert await send(device, "facts", (NEWER | {"value": "newest"}, NEWER)) == []
            assert (await page(device, "facts", 0, new))["checkpoint"]["lwt"] > lwt, (
                "seq must continue above the checkpoint"
            )
        async with serve(data) as h:
            device = reconnect(h, ada)
            check_problem(await ask(device, lwt, old), 409, "EPOCH")
            assert await epoch(device) == new, "the new epoch must begin only once"
            assert (await stored(device, "facts", "kept"))["value"] == "newest"
            await send(device, "facts", (fact("after"), None))
            assert (await page(device, "facts", lwt, new))["documents"][-1]["id"] == "after"

    run(scenario)


def test_new_epoch_closes_open_streams(folder):
    data, ada, (lwt, old) = folder[0], folder[1], folder[2].values()

    async def scenario():
        async with serve(data) as h:
            device = reconnect(h, ada)
            with h.services.hub.subscribe(device.id, frozenset({"facts"}), named=False) as stream:
                await ask(device, lwt, old)
                assert stream.closed

    run(scenario)


def test_checkpoint_that_is_not_ahead_of_records_begins_no_epoch(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            await send(ada, "facts", (fact("f"), None))
            checkpoint = (await page(ada, "facts"))["checkpoint"]
            lwt, name = checkpoint.values()
            assert (await ask(ada, lwt, name)).status_code == 200
            assert (await ask(ada, 2**53 - 1, "")).json()["checkpoint"] == checkpoint
            assert await epoch(ada) == epoch_of(checkpoint)

    run(scenario)


def test_checkpoint_ahead_of_seq_without_valid_signature_begins_no_epoch(tmp_path):
    """A client may send the time as `lwt`. The server rejects this or returns its checkpoint, without a new epoch."""
    ahead = 1_795_700_000_000

    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            await send(ada, "facts", (fact("f"), None))
            checkpoint = (await page(ada, "facts"))["checkpoint"]
            lwt, signed = checkpoint.values()
            empty = (await ask(ada, ahead, "")).json()
            assert empty == {"documents": [], "checkpoint": checkpoint}
            bare = epoch_of(checkpoint)
            for name in (bare, signed, f"{bare}.AAAAAAAAAAAAAAAAAAAA", f"{bare}.é"):
                body = check_problem(await ask(ada, ahead, name), 409, "EPOCH")
                assert body["epoch"] == bare
                assert "lwt=0" in body["detail"]
            assert h.services.users.unsigned_ahead == {ada.id: 1}, (
                "only the request with a bare epoch must be counted for doctor"
            )
            assert await epoch(ada) == bare
            assert (await ask(ada, lwt, bare)).json()["checkpoint"] == checkpoint, (
                "a checkpoint with a bare epoch must be accepted"
            )
            assert (await ask(ada, "", "")).json()["checkpoint"] == checkpoint, "an empty lwt must count as 0"

    run(scenario)


def test_checkpoint_inside_seq_gap_is_not_signed(tmp_path):
    """A restart leaves a gap in `seq`. A signed checkpoint inside the gap would wrongly prove a rollback."""

    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            await send(ada, "facts", (fact("f"), None))
        async with serve(tmp_path) as h:
            ada = reconnect(h, ada)
            await send(ada, "facts", (fact("g"), None))
            last = (await page(ada, "facts"))["checkpoint"]
            assert last["lwt"] > 2**20
            inside = (await ask(ada, last["lwt"] - 2, "")).json()
            assert [row["id"] for row in inside["documents"]] == ["g"]
            for _ in range(2):
                empty = (await page(ada, "projects", last["lwt"] - 2))["checkpoint"]
                assert empty["id"] == epoch_of(last), "a checkpoint inside a gap must not be signed"
                assert (await ask(ada, empty["lwt"], empty["id"])).status_code == 200
            assert await epoch(ada) == epoch_of(last)

    run(scenario)


@pytest.mark.usefixtures("gaps")
def test_rollback_is_detected_after_other_devices_push(folder):
    """Other devices push many rows to the restored server before the device with the newer checkpoint reconnects."""
    data, ada, checkpoint = folder

    async def scenario():
        async with serve(data) as h:
            device = reconnect(h, ada)
            await send(device, "facts", *((fact(f"other{i}"), None) for i in range(50)))
            check_problem(await ask(device, *checkpoint.values()), 409, "EPOCH")
            assert await epoch(device) != epoch_of(checkpoint)

    run(scenario)
