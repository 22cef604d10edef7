"""Backup and restore with a damaged account: they name it, and copy and serve all other accounts."""

import duckdb
import msgspec
import pytest

from property.rows import fact
from server.in_process_server import run, serve
from vademecum.errors import BadRequest
from vademecum.model.records.paths import user_folder
from vademecum.services.data.backup import MANIFEST, BackupManifest


async def two_people(h):
    people = [await h.person(), await h.person()]
    for person in people:
        await person.add("facts", fact("f1"))
    return people, [h.services.accounts.accounts[person.id].email for person in people]


def damage_fence(h, person):
    h.services.users.fences.fence(person.id, "a block of the file is corrupt")


def damage_records(h, person):
    path = user_folder(h.services.settings.data, person.id) / "records.duckdb"
    path.unlink()


def change_segment(h, person):
    """Change a segment so that the damage is detected only when the segment is read."""
    with duckdb.connect(user_folder(h.services.settings.data, person.id) / "records.duckdb") as connection:
        connection.execute("UPDATE packs SET bodies = replace(bodies, 'Ada', 'Eve')")


@pytest.mark.parametrize("damage", [damage_fence, damage_records, change_segment])
def test_backup_skips_damaged_accounts_and_names_them(tmp_path, damage):
    async def scenario():
        async with serve(tmp_path / "data") as h:
            (ada, bob), emails = await two_people(h)
            async with h.services.users.detached(ada.id):
                damage(h, ada)
            manifest = await h.services.backup.create(tmp_path / "saved")
            assert [one.email for one in manifest.damaged] == emails[:1]
            assert "restore" in manifest.damaged[0].problem
            stored = msgspec.json.decode((tmp_path / "saved" / MANIFEST).read_bytes(), type=BackupManifest)
            assert stored == manifest
            assert [name for name in manifest.files if bob.id in name]
            assert not [name for name in manifest.files if ada.id in name]
            assert set(await bob.live("facts")) == {"f1"}

    run(scenario)


def test_restore_of_one_account_leaves_other_accounts_unchanged(tmp_path):
    async def scenario():
        async with serve(tmp_path / "data") as h:
            (ada, bob), emails = await two_people(h)
            await h.services.backup.create(tmp_path / "saved")
            (user_folder(tmp_path / "saved", bob.id) / "records.duckdb").write_bytes(b"damaged")
            damage_fence(h, ada)
            await bob.add("facts", fact("f2", key="k2"))
            with pytest.raises(BadRequest, match="no account"):
                await h.services.restore.restore_account(tmp_path / "saved", "nobody@example.org")
            restored = await h.services.restore.restore_account(tmp_path / "saved", emails[0])
            assert restored.users == 1
            assert set(await ada.live("facts")) == {"f1"}
            assert set(await bob.live("facts")) == {"f1", "f2"}

    run(scenario)


def test_backup_repairs_truncated_write_ahead_log(tmp_path):
    async def scenario():
        async with serve(tmp_path / "data") as h:
            (ada, _), _ = await two_people(h)
            async with h.services.users.open(ada.id) as store:
                await store.checkpoint()
            await ada.add("facts", fact("f2", key="k2"))
            folder = user_folder(tmp_path / "data", ada.id)
            log = (folder / "records.duckdb.wal").read_bytes()
            content = (folder / "records.duckdb").read_bytes()
            async with h.services.users.detached(ada.id):
                (folder / "records.duckdb").write_bytes(content)
                (folder / "records.duckdb.wal").write_bytes(log[:-7])
            assert (await h.services.backup.create(tmp_path / "saved")).damaged == []
            assert "f1" in await ada.live("facts")

    run(scenario)
