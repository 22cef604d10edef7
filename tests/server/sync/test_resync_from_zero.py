"""After a restore, a client starts from zero and pushes its rows without an assumed state or with an outdated one."""

import pytest

from property.rows import document, fact, session
from property.sync_wire import send, stored
from server.in_process_server import run, serve
from vademecum.services.sync import stale_restore

DAY1, DAY2, DAY3 = (f"2026-05-0{day}T00:00:00.000Z" for day in (1, 2, 3))
FUTURE = "2099-01-01T00:00:00.000Z"


def restored(tmp_path, collection, row, scenario, *others):
    """Run a scenario on a server whose rows count as restored."""

    async def whole():
        async with serve(tmp_path) as h:
            ada = await h.person()
            row["userId"] = ada.id
            for name, other in others:
                assert await send(ada, name, (other, None)) == []
            if collection != "documents":
                del row["userId"]
            assert await send(ada, collection, (row, None)) == []
            await stale_restore.start_new_epoch(h.services.users, h.services.background_jobs, ada.id)
            await scenario(ada)

    run(whole)


def test_resync_accepts_row_edited_after_the_backup(tmp_path):
    row = session("s", title="before the backup", createdAt=DAY1, updatedAt=DAY1)

    async def scenario(ada):
        edited = row | {"title": "edited after", "updatedAt": DAY2}
        assert await send(ada, "sessions", (edited, None)) == []
        assert (await stored(ada, "sessions", "s"))["title"] == "edited after"
        # The row has changed since the restore, so the server returns it to another device that starts from zero.
        late = row | {"title": "of another device", "updatedAt": DAY3}
        assert [r["title"] for r in await send(ada, "sessions", (late, None))] == ["edited after"]

    restored(tmp_path, "sessions", row, scenario)


def test_resync_merges_borrows_of_both_devices(tmp_path):
    row = document("", "d", activeSessions=["s1", "s2"], accessCount=3, createdAt=DAY1, updatedAt=DAY2)
    sessions = [("sessions", session(f"s{number}")) for number in (1, 2, 3)]

    async def scenario(ada):
        offline = row | {
            "activeSessions": ["s1", "s3"],
            "accessCount": 2,
            "filename": "renamed.pdf",
            "updatedAt": DAY3,
        }
        (answer,) = await send(ada, "documents", (offline, None))
        assert answer["activeSessions"] == ["s1", "s2", "s3"]
        assert (answer["accessCount"], answer["filename"]) == (3, "renamed.pdf")
        assert answer["updatedAt"] == "2026-05-03T00:00:00.001Z", "the merged row must have a new timestamp"
        assert await stored(ada, "documents", "d") == answer

    restored(tmp_path, "documents", row, scenario, *sessions)


def test_resync_returns_stored_row_for_an_older_row(tmp_path):
    row = fact("f", value="of the backup", createdAt=DAY1, updatedAt=DAY2)

    async def scenario(ada):
        assert [
            r["value"] for r in await send(ada, "facts", (row | {"value": "old", "updatedAt": DAY1}, None))
        ] == ["of the backup"]
        equal_time = row | {"value": "zz"}
        assert [r["value"] for r in await send(ada, "facts", (equal_time, None))] == ["of the backup"]

    restored(tmp_path, "facts", row, scenario)


def test_resync_does_not_overwrite_restored_row_with_other_row_of_same_id(tmp_path):
    row = fact("f", value="of the backup", createdAt=DAY1, updatedAt=DAY1)

    async def scenario(ada):
        other = row | {"value": "made elsewhere", "createdAt": DAY2, "updatedAt": DAY3}
        assert [r["value"] for r in await send(ada, "facts", (other, None))] == ["of the backup"]

    restored(tmp_path, "facts", row, scenario)


@pytest.mark.parametrize("assumed_at", [FUTURE, "2098-01-01T00:00:00.000Z"])
def test_resync_ignores_timestamps_ahead_of_the_server_clock(tmp_path, assumed_at):
    """Both timestamps are ahead of the server's clock, so neither counts as later."""
    row = fact("f", value="of the backup", createdAt=DAY1, updatedAt="2098-06-01T00:00:00.000Z")

    async def scenario(ada):
        assumed = row | {"value": "assumed", "updatedAt": assumed_at}
        edited = assumed | {"value": "edited", "updatedAt": FUTURE}
        await send(ada, "facts", (edited, assumed))
        assert (await stored(ada, "facts", "f"))["value"] == "of the backup"
        await send(ada, "facts", (edited, None))
        assert (await stored(ada, "facts", "f"))["value"] == "of the backup"

    restored(tmp_path, "facts", row, scenario)
