"""A failed restore changes nothing. A successful restore never exposes erased rows."""

import asyncio
import errno
import os
import stat
import threading

import pytest

from folder_listing import files_below
from property.rows import bumped, day, dead, episode, session
from property.sync_wire import epoch, forget, send
from server.in_process_server import reconnect, run, serve
from vademecum.engines.duckdb.erasure_replay import replay_erasures
from vademecum.engines.duckdb.user_database import publish_file
from vademecum.errors import Broken
from vademecum.services.data.backup_staging import backup_staging_folder
from vademecum.services.sync.stream import CLOSED


async def create_backup(h, tmp_path):
    """Make a backup with two sessions, then erase one of them and add a third."""
    ada = await h.person()
    await send(ada, "sessions", (session("kept"), None), (session("erased", title="secret"), None))
    await h.services.backup.create(tmp_path / "backup")
    await send(ada, "sessions", (dead(session("erased")), session("erased")), (session("later"), None))
    return ada


def files_containing(folder, text):
    """Return the files below the folder that contain the text."""
    return [path for path, content in files_below(folder).items() if text.encode() in content]


def test_interrupted_restore_leaves_records_unchanged(tmp_path, monkeypatch):
    async def scenario():
        async with serve(tmp_path / "data") as h:
            ada = await create_backup(h, tmp_path)
            await h.drain_jobs(ada)
            assert not files_containing(tmp_path / "data" / "users", "secret")
            before = await epoch(ada), await ada.pull("sessions")

            def cut(*_):
                raise OSError(28, "No space left on device")

            for name in (
                "vademecum.engines.duckdb.user_stores.publish_file",
                "vademecum.services.data.restore.replay_erasures",
            ):
                with monkeypatch.context() as patch:
                    patch.setattr(name, cut)
                    with pytest.raises(Broken, match=r"(?s)space.*Restored before: no account\."):
                        await h.services.restore.restore_all(tmp_path / "backup")
                assert h.services.background_jobs.jobs["index"].is_pending(ada.id)
                assert not files_containing(tmp_path / "data" / "users", "secret")
                assert (await epoch(ada), await ada.pull("sessions")) == before
        async with serve(tmp_path / "data") as h:
            reconnect(h, ada)
            assert (await epoch(ada), await ada.pull("sessions")) == before

    run(scenario)


def test_failed_restore_names_accounts_already_restored(tmp_path, monkeypatch):
    async def scenario():
        async with serve(tmp_path / "data") as h:
            people = sorted([await h.person(), await h.person(), await h.person()], key=lambda p: p.id)
            emails = [h.services.accounts.accounts[person.id].email for person in people]
            for person in people:
                await send(person, "sessions", (session("kept"), None))
            await h.services.backup.create(tmp_path / "backup")
            before = [await epoch(person) for person in people]
            times = iter(range(3))

            def cut(new, path):
                if next(times) == 1:
                    raise OSError(28, "No space left on device")
                publish_file(new, path)

            monkeypatch.setattr("vademecum.engines.duckdb.user_stores.publish_file", cut)
            with pytest.raises(Broken) as failure:
                await h.services.restore.restore_all(tmp_path / "backup")
            assert f"stopped at {emails[1]}," in failure.value.message
            assert f"Restored before: {emails[0]}." in failure.value.message
            after = [await epoch(person) for person in people]
            assert [old != new for old, new in zip(before, after, strict=True)] == [True, False, False]

    run(scenario)


def test_backup_and_restore_name_an_unusable_records_folder(tmp_path):
    async def scenario():
        async with serve(tmp_path / "data") as h:
            ada = await create_backup(h, tmp_path)
            (folder,) = (tmp_path / "data").glob(f"users/*/{ada.id}")
            (folder / "records.duckdb.new").mkdir()
            [damaged] = (await h.services.backup.create(tmp_path / "again")).damaged
            assert (
                "cannot be rewritten: " in damaged.problem
                and "records.duckdb.new cannot be used" in damaged.problem
            )
            with pytest.raises(Broken, match=r"stopped at .*records\.duckdb\.new"):
                await h.services.restore.restore_all(tmp_path / "backup")
            assert set(await ada.live("sessions")) == {"kept", "later"}

    run(scenario)


def test_restore_leaves_no_forgotten_text_on_disk(tmp_path):
    async def scenario():
        async with serve(tmp_path / "data", erase_delay_s=600) as h:
            ada = await h.person()
            await send(ada, "sessions", (session("edited", title="first secret"), None))
            await send(ada, "sessions", (session("gone", title="second secret"), None))
            await send(ada, "sessions", (session("kept", title="no riddle"), None))
            rewritten = session("edited", title="third secret")
            await send(ada, "sessions", (rewritten, session("edited", title="first secret")))
            await h.drain_jobs(ada)
            await h.services.backup.create(tmp_path / "backup")
            assert files_containing(tmp_path / "backup", "second secret"), (
                "control: the scan must find stored text"
            )
            await forget(ada)
            restored = await h.services.restore.restore_all(tmp_path / "backup")
            assert restored.erased_again == 3
            for text in ("first secret", "second secret", "third secret", "no riddle"):
                assert not files_containing(tmp_path / "data", text)
            assert await ada.live("sessions") == {}

    run(scenario)


def test_restore_never_shows_erased_rows_to_concurrent_pulls(tmp_path):
    async def scenario():
        async with serve(tmp_path / "data") as h:
            ada = await create_backup(h, tmp_path)
            seen = []
            done = asyncio.Event()

            async def look():
                while not done.is_set():
                    seen.extend(await ada.pull("sessions"))
                    await asyncio.sleep(0.005)

            looking = asyncio.create_task(look())
            restored = await h.services.restore.restore_all(tmp_path / "backup")
            await asyncio.sleep(0.1)
            done.set()
            await looking
            assert restored.erased_again == 1
            assert [row for row in seen if row["id"] == "erased" and not row["_deleted"]] == []
            assert set(await ada.live("sessions")) == {"kept"}

    run(scenario)


def test_stream_opened_during_restore_closes_afterwards(tmp_path, monkeypatch):
    async def scenario():
        async with serve(tmp_path / "data") as h:
            ada = await create_backup(h, tmp_path)
            begun, gate = threading.Event(), threading.Event()

            def held(*asked):
                begun.set()
                gate.wait()
                return replay_erasures(*asked)

            monkeypatch.setattr("vademecum.services.data.restore.replay_erasures", held)
            restoring = asyncio.create_task(h.services.restore.restore_all(tmp_path / "backup"))
            await asyncio.to_thread(begun.wait)
            with h.services.hub.subscribe(ada.id, frozenset({"sessions"}), named=False) as stream:
                pushing = asyncio.create_task(send(ada, "sessions", (session("new"), None)))
                gate.set()
                await asyncio.gather(restoring, pushing)
                assert await stream.next() is CLOSED

    run(scenario)


def test_push_without_epoch_after_restore_keeps_newer_restored_rows(tmp_path):
    async def scenario():
        async with serve(tmp_path / "data") as h:
            ada = await h.person()
            first = session("s", title="first")
            second = {**first, "title": "second", "updatedAt": day(3)}
            third = {**second, "mode": "authoritative", "updatedAt": day(4)}
            await send(ada, "sessions", (first, None), (session("other"), None))
            await h.services.backup.create(tmp_path / "backup")
            await send(ada, "sessions", (second, first))
            await h.services.restore.restore_all(tmp_path / "backup")
            assert await send(ada, "sessions", (third, second)) == []
            assert (await ada.live("sessions"))["s"] == third
            # An edit that assumes the stored row replaces it. An edit that assumes an older row is merged.
            later = {**third, "title": "later", "updatedAt": day(2)}
            assert await send(ada, "sessions", (later, third)) == []
            (merged,) = await send(ada, "sessions", ({**second, "title": "stale"}, second))
            assert merged["title"] == "later"
            old = session("other", title="old", updatedAt="2020-01-01T00:00:00.000Z")
            (merged,) = await send(ada, "sessions", ({**old, "mode": "authoritative"}, old))
            assert merged == bumped(session("other", mode="authoritative"))

    run(scenario)


def test_seq_after_restore_continues_above_all_earlier_values(tmp_path):
    async def scenario():
        async with serve(tmp_path / "data") as h:
            ada = await create_backup(h, tmp_path)
            async with h.services.users.open(ada.id) as store:
                before = store.seq
            await h.services.restore.restore_all(tmp_path / "backup")
            await send(ada, "sessions", (session("new"), None))
            async with h.services.users.open(ada.id) as store:
                assert store.row_index.rows["sessions/new"].seq > before
                assert store.row_index.rows["sessions/erased"].seq > before

    run(scenario)


def test_restore_does_not_revive_forgotten_waiting_rows(tmp_path):
    async def scenario():
        async with serve(tmp_path / "data") as h:
            ada = await h.person()
            await send(
                ada, "episodes", (episode("e", "s", userMessage="a secret question", createdAt=day(1)), None)
            )
            await h.services.backup.create(tmp_path / "backup")
            await forget(ada)
            await h.services.restore.restore_all(tmp_path / "backup")
            await send(ada, "sessions", (session("s", createdAt="2099-01-01T00:00:00.000Z"), None))
            assert await ada.live("episodes") == {}
            async with h.services.users.detached(ada.id):
                assert files_containing(tmp_path / "data" / "users", "a secret question") == []

    run(scenario)


def test_backup_with_incomplete_copy_is_discarded(tmp_path, monkeypatch):
    async def scenario():
        async with serve(tmp_path / "data") as h:
            await create_backup(h, tmp_path)

            def torn(source, target):
                target.write_bytes(source.read_bytes()[:-100])

            monkeypatch.setattr("shutil.copy2", torn)
            with pytest.raises(Exception, match="differs from the original"):
                await h.services.backup.create(tmp_path / "second")
            assert names(tmp_path) == {"data", "backup"}

    run(scenario)


@pytest.mark.parametrize("step", ["copy2", "rename", "sync_folder"])
def test_failed_backup_on_full_disk_leaves_no_files(tmp_path, monkeypatch, step):
    """This also applies to a backup that fails after it was renamed to its final name."""

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def full_for_the_name(folder):
        return full() if folder == tmp_path else None

    async def scenario():
        async with serve(tmp_path / "data") as h:
            ada = await create_backup(h, tmp_path)
            with monkeypatch.context() as patch:
                places = {
                    "copy2": ("shutil.copy2", full),
                    "rename": ("pathlib.Path.rename", full),
                    "sync_folder": ("vademecum.services.data.backup.sync_folder", full_for_the_name),
                }
                patch.setattr(*places[step])
                with pytest.raises(
                    Broken, match=r"second cannot be written \(No space left on device\)\. No backup"
                ):
                    await h.services.backup.create(tmp_path / "second")
            assert names(tmp_path) == {"data", "backup"}
            await send(ada, "sessions", (session("after"), None))
            await h.services.backup.create(tmp_path / "second")

    run(scenario)


def test_backup_removes_leftovers_of_crashed_but_not_of_running_backups(tmp_path, monkeypatch):
    """A crashed backup leaves a copy in a hidden folder, where forgotten rows would survive unnoticed."""

    async def scenario():
        async with serve(tmp_path / "data") as h:
            await create_backup(h, tmp_path)
            before = names(tmp_path)
            with monkeypatch.context() as patch:
                patch.setattr("shutil.rmtree", lambda *_, **__: None)  # a killed process does not clean up
                patch.setattr("vademecum.services.data.backup._checksums", lambda _: 1 // 0)
                with pytest.raises(ZeroDivisionError):
                    await h.services.backup.create(tmp_path / "second")
            (left,) = names(tmp_path) - before
            assert list((tmp_path / left).rglob("records.duckdb"))
            os.utime(tmp_path / left, (0, 0))
            with backup_staging_folder(tmp_path / "slow") as slow:
                os.utime(slow, (0, 0))
                await h.services.backup.create(tmp_path / "third")
                assert names(tmp_path) == before | {"third", slow.name}

    run(scenario)


def names(folder):
    with os.scandir(folder) as found:
        return {entry.name for entry in found}


def test_backup_is_synced_to_disk_before_it_returns(tmp_path, monkeypatch):
    synced = {}  # maps inode to file size, or to folder content, at its last fsync
    fsync, made = os.fsync, tmp_path / "second"

    def noted(descriptor):
        fsync(descriptor)
        found = os.fstat(descriptor)
        synced[found.st_ino] = names(descriptor) if stat.S_ISDIR(found.st_mode) else found.st_size

    async def scenario():
        async with serve(tmp_path / "data") as h:
            await create_backup(h, tmp_path)
            monkeypatch.setattr(os, "fsync", noted)
            await h.services.backup.create(made)
            monkeypatch.undo()

    run(scenario)
    files = [path for path in made.rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {"backup.json", "accounts.duckdb", "records.duckdb"}
    for path in files:
        assert synced.get(path.stat().st_ino) == path.stat().st_size, path
    for folder in (made.parent, made, *(path for path in made.rglob("*") if path.is_dir())):
        assert synced.get(folder.stat().st_ino) == names(folder), folder


def test_restore_after_forget_everything_keeps_the_new_id_key(tmp_path):
    async def scenario():
        async with serve(tmp_path / "data") as h:
            ada = await create_backup(h, tmp_path)

            async def key():
                async with h.services.users.open(ada.id) as store:
                    return await store.write(lambda tx: tx.meta.id_key)

            first = await key()
            await h.services.restore.restore_all(tmp_path / "backup")
            assert await key() == first, "the id key must stay the same, because no data was forgotten"
            await forget(ada)
            assert await key() != first
            await h.services.restore.restore_all(tmp_path / "backup")
            assert await key() != first

    run(scenario)
